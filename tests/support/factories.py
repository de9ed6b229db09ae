"""Rows of the ledger as its own code leaves them: for tests of what reads them."""

import itertools
import json
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from idempotency.models import Event, Key, Operation, Sender, Step
from idempotency.models.fields import uuid7
from idempotency.types import Ending, News, State

_numbers = itertools.count(1)


def ago(**parts: float) -> datetime:
    """Return a time before now, e.g. `ago(minutes=5)`."""
    return timezone.now() - timedelta(**parts)


def make_key(**fields: Any) -> Key:
    """Make a key that was claimed and is under way, unless the fields say otherwise."""
    number = next(_numbers)
    state = fields.pop("state", State.IN_PROGRESS)
    at = fields.pop("at", ago(minutes=2))
    reference = fields.pop("reference", str(880 + number))
    defaults: dict[str, Any] = {
        "id": uuid7_at(at),
        "scope": "tenant 1, user 7",
        "operation": "payments.create",
        "key": f"key-{number}",
        "fingerprint": b"\0" * 32,
        "fingerprint_version": 1,
        "fingerprint_secret": "test",
        "request_id": f"req-{number}",
        "state": state,
        "created_at": at,
        "claimed_at": at,
        "reference": reference,
        "summary": f"Charge of 12.00 UAH for order {reference}",
        "call_begun": True,
        **_BY_STATE[State(state)](at),
    }
    return Key.objects.create(**(defaults | fields))


_BY_STATE: dict[State, Any] = {
    State.IN_PROGRESS: lambda at: {"lease_until": at + timedelta(seconds=45)},
    State.UNKNOWN: lambda at: {
        "unknown_since": at + timedelta(seconds=12),
        "next_lookup_at": timezone.now() + timedelta(seconds=40),
    },
    State.RELEASED: lambda at: {
        "settled_at": at + timedelta(seconds=30),
        "settled_by": "reconciler",
    },
    State.COMPLETED: lambda at: {
        "settled_at": at + timedelta(seconds=1),
        "settled_by": "request",
        "status": 201,
        "body": json.dumps({"id": "0198", "amount": 1200, "customer": "Olena Koval"}).encode(),
        "content_type": "application/json",
    },
}


def uuid7_at(at: datetime) -> Any:
    """Return an id as it would have been made at that time."""
    made = uuid7()
    low = made.int & ((1 << 80) - 1)
    return type(made)(int=int(at.timestamp() * 1000) << 80 | low)


def make_waiting(**fields: Any) -> tuple[Key, Operation]:
    """Make a key whose deferred work waits for its time."""
    work = fields.pop("work", {})
    due = fields.pop("due_at", timezone.now() + timedelta(seconds=90))
    key = make_key(
        **{
            "operation": "refunds.create",
            "summary": "Refund of 5.00 UAH for payment 0198",
            "lease_until": None,
            "due_at": due,
            "deferred": True,
            "call_begun": False,
            "status": 202,
            "body": b'{"state": "in_progress"}',
            "content_type": "application/json",
        }
        | fields
    )
    return key, make_work(key, **work)


def make_work(key: Key, **fields: Any) -> Operation:
    """Make the deferred work of a key."""
    defaults: dict[str, Any] = {
        "name": "payments.refund",
        "input": {"payment": 7, "amount": 500},
        "max_attempts": 3,
    }
    return Operation.objects.create(key=key, **(defaults | fields))


def make_step(key: Key, *, ending: Ending | None = Ending.AMBIGUOUS, **fields: Any) -> Step:
    """Make an outside call of a key with one sender that ended so; None leaves it open."""
    number = next(_numbers)
    applied = ending is Ending.APPLIED
    at = key.created_at + timedelta(milliseconds=80)
    sender = fields.pop("sender", {})
    defaults: dict[str, Any] = {
        "generation": key.generation,
        "name": "charge",
        "downstream": "stripe",
        "downstream_key": f"down-{number}",
        "payload": b'{"amount": 1200, "currency": "uah", "card_holder": "Olena Koval"}',
        "subject": "payment 0198",
        "keyed": True,
        "settling_seconds": 20,
        "first_send_at": at,
        "resend_until": at + timedelta(hours=24),
        "applied_at": at + timedelta(seconds=1) if applied else None,
        "reference": f"pi_{number}" if applied else "",
        "result": {"id": f"pi_{number}", "status": "succeeded"} if applied else None,
    }
    step = Step.objects.create(key=key, **(defaults | fields))
    Sender.objects.create(
        **{
            "step": step,
            "token": key.token,
            "host": "web-1",
            "boot_id": "0000",
            "pid_namespace": "pid:[1]",
            "pid": 4711,
            "process_started": "100",
            "begun_at": at,
            "send_before": at + timedelta(seconds=12),
            "ending": ending,
            "ended_at": None if ending is None else at + timedelta(seconds=3),
            "attempts": 0 if ending is None else 3,
            "evidence": {"error": "ReadTimeout: no answer in 3 s"}
            if ending is Ending.AMBIGUOUS
            else {},
        }
        | sender
    )
    return step


def make_event(key: Key | None = None, **fields: Any) -> Event:
    """Make a line of a key's history."""
    defaults: dict[str, Any] = {
        "key_id": key.pk if key else None,
        "kind": "asked",
        "actor": "ops",
        "detail": {},
    }
    return Event.objects.create(**(defaults | fields))


def make_variety() -> dict[str, Key]:
    """Make one key of every kind that the console tells apart, by a short name."""
    keys = {
        "completed": make_key(
            state=State.COMPLETED,
            resource="/api/payments/0198c0de-881/",
            reference="881",
            at=ago(minutes=50),
        ),
        "refused": make_key(
            state=State.COMPLETED,
            status=402,
            body=b'{"title": "Declined"}',
            summary="Charge of 7.00 UAH for order 882",
            reference="882",
        ),
        "unknown": make_key(
            state=State.UNKNOWN, reference="881", summary="Charge of 12.00 UAH for order 881"
        ),
        "person": make_key(
            state=State.UNKNOWN,
            at=ago(hours=3),
            lookups=20,
            needs_person_since=ago(hours=1),
            needs_person_reason="It is unknown for too long.",
        ),
        "unfinished": make_key(state=State.UNKNOWN, unfinished=True),
        "running": make_key(at=ago(seconds=5)),
        "lapsed": make_key(at=ago(minutes=3)),
        "released": make_key(state=State.RELEASED),
        "late": make_key(
            state=State.RELEASED,
            at=ago(hours=5),
            needs_person_since=ago(hours=2),
            needs_person_reason="It happened at the other side after the key was settled otherwise.",
        ),
        "waiting": make_waiting()[0],
        "overdue": make_waiting(due_at=ago(minutes=9), at=ago(minutes=10))[0],
    }
    failed = make_key(
        state=State.COMPLETED,
        deferred=True,
        status=202,
        operation="payouts.create",
        summary="Payout of 90.00 UAH to acct_7",
        call_begun=True,
    )
    make_work(
        failed,
        name="payments.payout",
        attempts=3,
        cycle_attempts=3,
        last_error="GatewayDown: 503",
        error={"code": "gave-up", "detail": "The gateway did not take it."},
    )
    keys["gave-up"] = failed
    for name in ("unknown", "person"):
        make_step(keys[name])
    make_step(keys["completed"], ending=Ending.APPLIED)
    make_step(keys["unfinished"], ending=Ending.APPLIED)
    make_step(keys["running"], ending=None)
    make_step(keys["lapsed"], ending=None)
    make_step(keys["released"], ending=Ending.NOT_SENT)
    make_step(keys["late"], ending=Ending.APPLIED)
    make_event(
        keys["late"],
        kind="late-news",
        actor="webhook",
        alarming=True,
        reason="It happened, while the key was released.",
    )
    make_event(keys["person"], detail={"decision": "pending", "detail": ""})
    return keys


def make_rarities() -> dict[str, Key]:
    """Make one key of every kind that is seldom seen, by its situation."""
    done = {"state": State.COMPLETED, "needs_person_since": ago(minutes=20)}
    keys = {
        "done-twice": make_key(**done, needs_person_reason=News.TWICE.sentence),
        "done-differently": make_key(**done, needs_person_reason=News.DIFFERENT.sentence),
        "stuck-halfway": make_key(
            state=State.UNKNOWN,
            operation="payouts.create",
            summary="Payout of 90.00 UAH to acct_7",
            reference="",
            unfinished=True,
            deferred=True,
            status=202,
            body=b"{}",
            content_type="application/json",
            at=ago(hours=2),
            needs_person_since=ago(hours=1),
            needs_person_reason="No attempt is left, and the work is done only in part.",
        ),
        "cancelled": make_key(
            state=State.COMPLETED, deferred=True, status=202, settled_by="olga", call_begun=False
        ),
        "taken-in": make_message(reference="pi_7"),
    }
    news = {"gateway_reference": "pi_2", "our_books_said": "succeeded by pi_1"}
    for kind, detail in (
        (News.TWICE, news),
        (News.DIFFERENT, {"said": "99.00 UAH", "expected": "12.00 UAH"}),
    ):
        key = keys["done-twice" if kind is News.TWICE else "done-differently"]
        make_step(key, ending=Ending.APPLIED, reference=f"pi_{kind}")
        said = {"news": kind.value, "about": key.summary, **detail}
        make_event(key, kind="late-news", actor="event", alarming=True, detail=said)
    make_step(keys["stuck-halfway"], name="recipient", ending=Ending.APPLIED, reference="acct_7")
    make_work(keys["stuck-halfway"], name="payouts.create", attempts=3, cycle_attempts=3)
    make_work(keys["cancelled"], error={"code": "cancelled", "detail": "It was cancelled."})
    return keys


def make_message(message: bytes = b'{"id": "evt_1"}', **fields: Any) -> Key:
    """Make an event of the gateway that was taken in."""
    return make_key(
        **{
            "state": State.COMPLETED,
            "operation": "inbox",
            "scope": "stripe",
            "summary": "Event of the gateway: charge of 12.00 UAH succeeded",
            "settled_by": "message",
            "status": 204,
            "body": message,
            "content_type": "",
            "call_begun": False,
        }
        | fields
    )


def make_long_unknown(**fields: Any) -> Key:
    """Make a charge of three hours ago that an other side with a look-up knows nothing of."""
    key = make_key(
        **{
            "state": State.UNKNOWN,
            "operation": "test.charge",
            "at": ago(hours=3),
            "lookups": 20,
            "summary": "Charge of 12.00 UAH for order 990",
            "reference": "990",
            "needs_person_since": ago(hours=2),
            "needs_person_reason": "It is unknown for too long.",
        }
        | fields
    )
    make_step(key)
    return key
