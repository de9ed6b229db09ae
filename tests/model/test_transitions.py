"""The table of transitions, held against the ledger: each one happens, and every other pair is refused (R12, R15)."""

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connection, transaction
from django.db.models import Model

from idempotency.ledger import acquire, draft, due, journal, purge, settlement, work
from idempotency.ledger.draft import Draft
from idempotency.ledger.phases import Phases
from idempotency.ledger.transitions import EVENTS, Position, Transition, drawing, find, table
from idempotency.ledger.transitions import TRANSITIONS as EVERY
from idempotency.ledger.values import Identity, Settlement
from idempotency.models import Key, Operation, Sender, Step
from idempotency.models.fields import uuid7
from idempotency.operations.inbox import _Digest
from idempotency.types import Answer, Downstream, Ending, State

P = Position
IDENTITY = Identity(scope="s", operation="o", key="k")
ANSWER = Answer(status=201, body=b"{}", content_type="application/json")
BY = Settlement(by="test")
AGES = 10_000_000
CALL = Downstream(name="other", keyed=True, settling_time=20, key_memory=86_400)


class Subject:
    """One key, brought to a position by the ledger's own functions."""

    def __init__(self) -> None:
        self.phases = Phases(using="default")

    @property
    def key(self) -> Key:
        return Key.objects.get()

    def own(self) -> dict[str, Any]:
        return {"connection": connection, "key_id": self.key.id, "token": self.key.token}

    def claim(self) -> acquire.Acquired:
        return acquire.acquire(
            phases=self.phases, identity=IDENTITY, fingerprint=_Digest.of(b"body")
        )

    def draft(self) -> Draft:
        return Draft(id=uuid7(), identity=IDENTITY, fingerprint=_Digest.of(b"body"))

    def begin(self) -> bool:
        return draft.write(phases=self.phases, draft=self.draft())

    def answer(self) -> bool:
        new = self.draft()
        return settlement.complete(
            connection=connection,
            key_id=new.id,
            token=1,
            answer=ANSWER,
            settlement=BY,
            called=False,
            draft=new,
        )

    def call(self, ending: Ending) -> None:
        key = self.key
        sender = journal.begin(
            phases=self.phases,
            key_id=key.id,
            token=key.token,
            generation=key.generation,
            step="charge",
            rotation=0,
            payload=b"{}",
            subject="",
            downstream=CALL,
            send_within=20,
        )
        ended = journal.StepEnding(ending, 1, record={"id": "r"})
        journal.end(phases=self.phases, key_id=key.id, token=key.token, sender=sender, ending=ended)

    def promise(self) -> bool:
        with transaction.atomic():
            work.add(
                connection=connection,
                id=uuid.uuid4(),
                key_id=self.key.id,
                name="o",
                payload="{}",
                max_attempts=3,
            )
            done = settlement.promise(**self.own(), answer=ANSWER)
            transaction.set_rollback(not done)
        return done

    def take(self) -> due.Work | None:
        return due.take(connection=connection, leases={"o": 60})

    # -- positions -----------------------------------------------------------------------------------------------------

    def bring_to(self, position: Position) -> None:
        if position is P.NONE:
            return
        self.begin()
        match position:
            case P.WAITING:
                self.promise()
            case P.RUNNING:
                self.promise()
                self.take()
            case P.UNKNOWN | P.UNFINISHED:
                self.call(Ending.APPLIED if position is P.UNFINISHED else Ending.AMBIGUOUS)
                settlement.mark_unknown(**self.own(), lookup_after=5)
            case _:
                self.call(Ending.NOT_SENT)
        match position:
            case P.COMPLETED | P.EXPIRED:
                settlement.complete(**self.own(), answer=ANSWER, settlement=BY, called=True)
            case P.RELEASED:
                settlement.release(**self.own(), settlement=BY)
        if position is P.EXPIRED:
            self.move("settled_at", AGES)
        if position is P.LAPSED:
            self.move("lease_until", 3600)

    def move(self, column: str, seconds: float) -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                f"UPDATE idempotency_key SET {column} = {column} - %s * interval '1 second'",
                [seconds],
            )

    def position(self) -> Position:
        key = Key.objects.first()
        if key is None:
            return P.NONE
        if key.state == State.UNKNOWN:
            return P.UNFINISHED if key.unfinished else P.UNKNOWN
        if key.state != State.IN_PROGRESS:
            return P(key.state)
        if key.due_at is not None:
            return P.WAITING
        return P.RUNNING if key.deferred else P.LEASED


def _take_over(subject: Subject) -> bool:
    version = subject.key.journal_version
    return bool(settlement.take_over(**subject.own(), journal_version=version, lease=60))


TRY: dict[str, Callable[[Subject], object]] = {
    "begin": Subject.begin,
    "answer": Subject.answer,
    # Of a new identity it writes nothing yet.
    "claim": lambda s: getattr(s.claim(), "draft", ()) is None,
    "complete": lambda s: settlement.complete(**s.own(), answer=ANSWER, settlement=BY, called=True),
    "complete the work": lambda s: settlement.complete_deferred(
        **s.own(), settlement=BY, ended=work.Conclusion(result="null")
    ),
    "promise": Subject.promise,
    "take": Subject.take,
    "wait again": lambda s: settlement.wait_again(**s.own(), delay=0),
    "cancel": lambda s: due.cancel(connection=connection, key_id=s.key.id, settlement=BY),
    "release": lambda s: settlement.release(**s.own(), settlement=BY),
    "mark unknown": lambda s: settlement.mark_unknown(**s.own(), lookup_after=5),
    "lapse": lambda _: settlement.lapse(connection=connection, limit=10),
    "take over": _take_over,
    "purge": lambda _: purge.purge_batch(limit=10).keys,
}
NEEDS_A_ROW = set(EVENTS) - {"begin", "answer", "claim", "take", "lapse", "purge"}
TOKEN_STAYS = {"begin", "answer", "claim", "complete", "complete the work", "promise", "purge"}


def everything() -> list[dict[str, Any]]:
    kinds: tuple[type[Model], ...] = (Key, Step, Sender, Operation)
    return [row for kind in kinds for row in kind._default_manager.order_by("pk").values()]


@pytest.mark.django_db
@pytest.mark.parametrize("each", EVERY, ids=lambda each: f"{each.before}: {each.event}")
def test_r15_each_transition_happens(each: Transition) -> None:
    subject = Subject()
    subject.bring_to(each.before)
    token = 0 if each.before is P.NONE else subject.key.token

    assert TRY[each.event](subject)

    assert subject.position() is each.after
    if each.event not in TOKEN_STAYS or each.before in (P.RELEASED, P.UNFINISHED, P.EXPIRED):
        assert each.after is P.NONE or subject.key.token > token, "every change of owner moves it"


@pytest.mark.django_db
@pytest.mark.parametrize("before", Position)
@pytest.mark.parametrize("event", EVENTS)
def test_r12_every_other_pair_is_refused_and_changes_nothing(event: str, before: Position) -> None:
    if find(event=event, before=before) or (before is P.NONE and event in NEEDS_A_ROW):
        return
    subject = Subject()
    subject.bring_to(before)
    rows = everything()

    assert not TRY[event](subject)

    assert everything() == rows


@pytest.mark.django_db
@pytest.mark.parametrize(
    "each", [e for e in EVERY if "token" in e.guard or e.event == "complete"], ids=lambda e: e.event
)
def test_r12_a_stale_token_writes_nothing(each: Transition) -> None:
    if each.event not in NEEDS_A_ROW - {"cancel"}:
        return
    subject = Subject()
    subject.bring_to(each.before)
    stale, own = subject.key.token - 1, subject.own
    subject.own = lambda: own() | {"token": stale}  # type: ignore[method-assign]
    rows = everything()

    assert not TRY[each.event](subject)

    assert everything() == rows


@pytest.mark.django_db
@pytest.mark.parametrize("event", ["complete", "release", "promise"])
@pytest.mark.parametrize("ending", [Ending.AMBIGUOUS, Ending.APPLIED])
def test_r14_the_journal_has_the_last_word(event: str, ending: Ending) -> None:
    subject = Subject()
    subject.begin()
    subject.call(ending)
    may = ending is Ending.APPLIED and event != "release"
    assert bool(TRY[event](subject)) is may
    assert (subject.position() is P.LEASED) is not may


def test_every_event_is_tried() -> None:
    assert set(TRY) == set(EVENTS)


def test_the_page_is_what_the_table_says(capsys: pytest.CaptureFixture[str]) -> None:
    """To write it anew: `manage.py idempotency_transitions > docs/reference/transitions.md`."""
    call_command("idempotency_transitions")
    page = Path(settings.BASE_DIR, "docs/reference/transitions.md").read_text(encoding="utf-8")
    assert page == capsys.readouterr().out
    assert drawing() in page
    assert table() in page
