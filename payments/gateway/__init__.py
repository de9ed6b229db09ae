"""The payment gateway: `gateway()` is the one that the settings name, behind its guard.

`port` says what it can be asked; the adapters beside it are known to nobody else.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from idempotency.exceptions import CallFailed
from payments.gateway.port import (
    ACTION_REQUIRED,
    ChargeRequest,
    Event,
    Gateway,
    Kind,
    Movement,
    PayoutRequest,
    Progress,
    Recipient,
    RecipientRequest,
    RefundRequest,
    Unreadable,
)

__all__ = [
    "ACTION_REQUIRED",
    "ChargeRequest",
    "Event",
    "Gateway",
    "Kind",
    "Movement",
    "PayoutRequest",
    "Progress",
    "Recipient",
    "RecipientRequest",
    "RefundRequest",
    "Unreadable",
    "gateway",
    "read_event",
    "read_kept_event",
    "refusal",
    "using",
]

_replaced: list[Gateway] = []


def gateway() -> Gateway:
    """Return the gateway to use."""
    if _replaced:
        return _replaced[-1]
    from payments.gateway.guarded import configured

    return configured()


def refusal() -> CallFailed | None:
    """Return why a call that sends would be refused at once, or None: asked before a deferred run is begun."""
    if _replaced:
        return None
    from payments.gateway.guarded import configured

    return configured().sends.refusal()


def read_event(*, body: bytes, signature: str) -> Event | Unreadable | None:
    """Return what a signed message of the gateway tells; None where it is about nothing that concerns us.

    Raises:
        SignatureInvalid: the gateway did not sign it, or too long ago.
    """
    from payments.gateway.stripe import events

    return events.read(body=body, signature=signature)


def read_kept_event(body: bytes) -> Event | Unreadable | None:
    """Return what a message tells that was signed when it came, and has been kept since."""
    from payments.gateway.stripe import events

    return events.parse(body)


@contextmanager
def using(other: Gateway) -> Iterator[None]:
    """Use another gateway in every thread of this process meanwhile: for tests."""
    _replaced.append(other)
    try:
        yield
    finally:
        _replaced.remove(other)
