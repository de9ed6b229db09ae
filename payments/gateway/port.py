"""The gateway as payments sees it: what can be asked of it, and what it answers, in values of our own.

An adapter turns these into one provider's wire form. Who reads this knows all that `services` and `resolvers` know.

# Note [Three verbs per movement of money]
`…_request` makes the bytes: pure, deterministic, without time or number of the try, so that what is frozen by the
ledger at the first send is what any later process would have sent (R23). It returns the provider's own parameters,
so that a release that maps them differently never changes a payment under way.
The sending verb makes one guarded call with the frozen bytes under the frozen key.
`look_up_…` asks what became of a call whose outcome is not known; `retrieve_…` asks how a movement stands whose id we
have. Both only read.

# Note [Records]
The record of an `OutsideResult` holds the members of a `Movement` (or of a `Recipient`), as `as_record` makes them, in
every path: a send, a look-up, a retrieval. Amounts are integers in minor units, currencies upper-case ISO 4217.
"""

import enum
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol, Self, runtime_checkable

from idempotency.types import Downstream, LookUp, OpenStep, OutsideRequest, OutsideResult

ACTION_REQUIRED = "action-required"
"""The code of a `CallRejected` or a `Rejected` where only the customer could go on, e.g. 3-D Secure. A charge is always
asked for without the customer's presence, so it certainly did not happen. Any other code is the provider's own reason,
e.g. `insufficient_funds`; the more exact one where it gives two."""


class Progress(enum.StrEnum):
    """How a movement of money that the gateway has taken on stands. What it refused is a `CallRejected` instead."""

    SUCCEEDED = "succeeded"
    """The money has moved."""
    PROCESSING = "processing"
    """Taken on and decided later, by an event or a retrieval."""


# -- what we ask for ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargeRequest:
    """Take money from a customer. `reference` is our payment's id: look-ups find the charge by it."""

    amount: int
    currency: str
    source: str
    """The gateway's token for what is charged, e.g. `pm_card_visa`; never a card number."""
    description: str
    order_id: str
    reference: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RefundRequest:
    """Give money back. `reference` is our refund's id."""

    amount: int
    charge: str
    """The gateway's id of the charge, as `Movement.id` of the charge gave it."""
    reason: str
    """Free text of ours, may be empty."""
    reference: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipientRequest:
    """Make the gateway know whom to pay; moves no money. `reference` is our payout's id."""

    destination: str
    """The account outside, e.g. `acct_…`."""
    reference: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PayoutRequest:
    """Pay out to a recipient. `reference` is our payout's id."""

    amount: int
    currency: str
    recipient: str
    """The gateway's id of the recipient, as `Recipient.id` gave it."""
    reference: str


# -- what it answers ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Movement:
    """A charge, a refund or a payout that the gateway has taken on."""

    id: str
    """The gateway's id; also the `reference` of the `OutsideResult`."""
    status: Progress
    amount: int
    currency: str

    def as_record(self) -> dict[str, Any]:
        """Return it as the plain JSON that the ledger keeps."""
        return {**asdict(self), "status": self.status.value}

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Self:
        """Return what a record says.

        Raises: KeyError, ValueError, for a record that no adapter makes.
        """
        return cls(
            id=str(record["id"]),
            status=Progress(record["status"]),
            amount=int(record["amount"]),
            currency=str(record["currency"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipient:
    """Somebody who can be paid."""

    id: str

    def as_record(self) -> dict[str, Any]:
        """Return it as the plain JSON that the ledger keeps."""
        return asdict(self)

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Self:
        """Return what a record says. Raises: KeyError."""
        return cls(id=str(record["id"]))


class Kind(enum.StrEnum):
    """What moves money."""

    CHARGE = "charge"
    REFUND = "refund"
    PAYOUT = "payout"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that the gateway tells by itself, under its signature."""

    id: str
    """The same in every copy."""
    kind: Kind
    gateway_id: str
    reference: str
    """Our own id of what it is about, or "" where the gateway knows none."""
    said: LookUp
    """As a look-up would have answered at that moment."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A message that the gateway signed, and that cannot be read: it may be of money, so it is kept, and raised."""

    id: str
    """The same in every copy."""


# -- the port ----------------------------------------------------------------------------------------------------------


@runtime_checkable
class Gateway(Protocol):
    """A payment gateway.

    A sending verb raises `CallRejected` (code and detail as `ACTION_REQUIRED` says; `reference` and `record` where the
    gateway keeps an object of the refused try), `CallFailed` or `CallUnknown`, and nothing else.

    A look-up is given the step as the journal has it: `downstream_key`, the frozen `payload`, and `reference`, the
    gateway's id where it is known. It finds the object by the id if there is one, else by our reference, which is in
    the payload. It answers `Applied` (record as the send would have given it, or as it stands by now; what else
    has moved for the same reference in `again`), `Rejected` (refused for good, or failed since), `Pending` (known, and
    not decided whether it will be tried) or `Absent`. It raises `CallError` where the gateway could not be asked, which
    is no verdict.

    A retrieval answers the same for the gateway's own id.
    """

    @property
    def downstream(self) -> Downstream:
        """What the gateway promises, by the settings (`GATEWAY_KEYED`, `_SETTLING_TIME`, `_KEY_TTL`)."""

    def charge_request(self, asked: ChargeRequest) -> Mapping[str, Any]:
        """Return what is sent to charge a customer."""

    def charge(self, request: OutsideRequest) -> OutsideResult:
        """Charge a customer."""

    def look_up_charge(self, step: OpenStep) -> LookUp:
        """Return what became of a charge."""

    def retrieve_charge(self, gateway_id: str) -> LookUp:
        """Return how a charge stands."""

    def refund_request(self, asked: RefundRequest) -> Mapping[str, Any]:
        """Return what is sent to refund a charge or a part of it."""

    def refund(self, request: OutsideRequest) -> OutsideResult:
        """Refund a charge or a part of it."""

    def look_up_refund(self, step: OpenStep) -> LookUp:
        """Return what became of a refund."""

    def retrieve_refund(self, gateway_id: str) -> LookUp:
        """Return how a refund stands."""

    def recipient_request(self, asked: RecipientRequest) -> Mapping[str, Any]:
        """Return what is sent to make a recipient known."""

    def create_recipient(self, request: OutsideRequest) -> OutsideResult:
        """Make a recipient known. The record is a `Recipient`."""

    def look_up_recipient(self, step: OpenStep) -> LookUp:
        """Return what became of making a recipient known."""

    def payout_request(self, asked: PayoutRequest) -> Mapping[str, Any]:
        """Return what is sent to pay out."""

    def pay(self, request: OutsideRequest) -> OutsideResult:
        """Pay out to a recipient."""

    def look_up_payout(self, step: OpenStep) -> LookUp:
        """Return what became of a payout."""

    def retrieve_payout(self, gateway_id: str) -> LookUp:
        """Return how a payout stands."""
