"""Stripe's signed events. Source: Stripe's documentation, "Verify webhook signatures" and "Types of events"."""

import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from typing import Any

from idempotency.ledger import moment
from idempotency.types import Pending
from payments.conf import conf
from payments.exceptions import SignatureInvalid
from payments.gateway.port import Event, Kind, Unreadable
from payments.gateway.stripe import shapes

_OBJECTS: Mapping[str, tuple[Kind, shapes.Reader]] = {
    "payment_intent": (Kind.CHARGE, shapes.charge),
    "refund": (Kind.REFUND, shapes.refund),
    "payout": (Kind.PAYOUT, shapes.payout),
}


def read(*, body: bytes, signature: str) -> Event | Unreadable | None:
    """Return what an event tells; None where it is of a kind that does not concern us.

    Args:
        body: the raw bytes: what was parsed and written again has another signature.
        signature: the Stripe-Signature header, `t=…,v1=…[,v1=…]`.

    Raises:
        SignatureInvalid: no signature in it is of this body, under our secret, and of lately.
        django.db.Error: the database, whose clock says what is lately, cannot be asked.
    """
    verify(body=body, signature=signature, secret=conf.WEBHOOK_SECRET)
    return parse(body)


def parse(body: bytes) -> Event | Unreadable | None:
    """Return what an event tells whose signature has been checked, now or when it came."""
    # An id that cannot be kept is as good as none: copies are known by their bytes.
    message_id = f"sha256:{hashlib.sha256(body).hexdigest()}"
    try:
        told = json.loads(body)
        if _is_id(told["id"]):
            message_id = told["id"]
        thing = told["data"]["object"]
        known = _OBJECTS.get(thing["object"])
        if known is None:
            return None
        kind, meaning = known
        return _event(message_id, kind, thing, meaning)
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        ArithmeticError,
        RecursionError,
    ):
        return Unreadable(message_id)


def verify(*, body: bytes, signature: str, secret: str) -> None:
    """Check that the body was signed with the secret, at most `WEBHOOK_TOLERANCE` seconds ago by the database's clock.

    Raises:
        SignatureInvalid: it was not; or there is no secret, under which anybody could sign.
    """
    pairs = [part.strip().partition("=") for part in signature.split(",")]
    stamps = [value for name, _, value in pairs if name == "t"]
    if not secret or len(stamps) != 1 or not (stamps[0].isascii() and stamps[0].isdigit()):
        raise SignatureInvalid
    expected = hmac.new(
        secret.encode(), stamps[0].encode() + b"." + body, hashlib.sha256
    ).hexdigest()
    given = [value for name, _, value in pairs if name == "v1"]
    if not any(hmac.compare_digest(expected.encode(), value.encode()) for value in given):
        raise SignatureInvalid
    # A clock ahead of ours is no more to be trusted than one behind it.
    if len(stamps[0]) > _LONGEST_STAMP or abs(_now() - int(stamps[0])) > conf.WEBHOOK_TOLERANCE:
        raise SignatureInvalid


def _now() -> float:
    # This host's own clock may be wrong by hours: each event that it is handed would be refused, for days.
    return moment.now().timestamp()


_LONGEST_STAMP = 12


def _printable(text: str) -> str:
    """Return what a person may read of a text that others wrote, and a database can hold."""
    return "".join(letter for letter in text[:200] if letter.isprintable())


def _id(value: object) -> str:
    """Return an id of the gateway's: a short text that a database can hold.

    Raises:
        ValueError: it is none.
    """
    if not _is_id(value):
        raise ValueError("this is no id")
    return str(value)


def _is_id(value: object) -> bool:
    return isinstance(value, str) and _ID.fullmatch(value) is not None


_ID = re.compile(r"[!-~]{1,200}")


def _event(
    event_id: str, kind: Kind, thing: Mapping[str, Any], meaning: shapes.Reader
) -> Event | None:
    said = meaning(thing)
    if isinstance(said, Pending):
        # Known there and not begun: there is nothing to say yet.
        return None
    metadata = thing.get("metadata") or {}
    return Event(
        id=event_id,
        kind=kind,
        gateway_id=_id(thing["id"]),
        reference=_printable(str(metadata.get("reference", ""))),
        said=said,
    )
