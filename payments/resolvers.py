"""How unknown outcomes of payments are looked up, and finished as the view or the worker would have done."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import assert_never

from rest_framework.response import Response

from idempotency.exceptions import CallError, CallRejected, NotProven
from idempotency.ledger import Claim
from idempotency.operations import Resolver, resolver
from idempotency.types import (
    Absent,
    Applied,
    LookUp,
    OpenStep,
    OutsideResult,
    Pending,
    Rejected,
    State,
)
from payments import operations, queries, services
from payments.exceptions import PayoutRefused, RefundRefused
from payments.gateway import gateway
from payments.views import PaymentViewSet


class Looking(Resolver):
    """Asks the gateway about a step by its name. Deferred work is finished by running its handler again."""

    looks: Mapping[str, Callable[[OpenStep], LookUp]] = {}

    def look_up(self, *, step: OpenStep) -> LookUp:
        return self.looks[step.name](step)

    def by_hand(self, *, step: OpenStep, reference: str) -> OutsideResult:
        """Return what the gateway says of that id; where it cannot be asked, that our row's very amount has moved.

        Raises:
            NotProven: the gateway knows no such id of ours, or it is another row's.
        """
        if queries.belongs_elsewhere(step=step, reference=reference):
            raise NotProven(f"{reference} is on record already, for something else.")
        try:
            said = self.look_up(step=replace(step, reference=reference))
        except CallError:
            record = queries.seen_by_hand(step=step, reference=reference)
            return OutsideResult(reference=reference, record=record)
        match said:
            case Applied(result=result):
                return result
            case Rejected(code=code):
                raise NotProven(f"The gateway says that {reference} was refused ({code}).")
            case Pending():
                raise NotProven(f"The gateway says that {reference} is not decided yet.")
            case Absent():
                raise NotProven(f"The gateway says that {reference} is no id of this.")
            case _:
                assert_never(said)


@resolver("payments.create")
class PaymentResolver(Looking):
    """A charge: one step, finished with the view's own answer."""

    view = PaymentViewSet
    looks = {services.CHARGE: lambda step: gateway().look_up_charge(step)}

    def finish(self, *, claim: Claim, endings: Mapping[str, LookUp]) -> Response:
        payment = services.finish_payment(claim=claim, ending=endings[services.CHARGE])
        return PaymentViewSet.created(payment)

    def ended(self, *, claim: Claim, state: State, error: BaseException | None) -> None:
        services.end_payment(claim=claim, error=error)


@resolver(operations.REFUND)
class RefundResolver(Looking):
    """A refund: one step."""

    looks = {services.REFUND: lambda step: gateway().look_up_refund(step)}

    def verdict(self, rejected: CallRejected) -> Exception:
        return RefundRefused.of(rejected)

    def ended(self, *, claim: Claim, state: State, error: BaseException | None) -> None:
        services.end_refund(claim=claim, error=error)


@resolver(operations.PAYOUT)
class PayoutResolver(Looking):
    """A payout: the recipient, then the money."""

    looks = {
        services.RECIPIENT: lambda step: gateway().look_up_recipient(step),
        services.PAYOUT: lambda step: gateway().look_up_payout(step),
    }

    def verdict(self, rejected: CallRejected) -> Exception:
        return PayoutRefused.of(rejected)

    def ended(self, *, claim: Claim, state: State, error: BaseException | None) -> None:
        services.end_payout(claim=claim, error=error)


@resolver(operations.RECEIPT)
class ReceiptResolver(Looking):
    """A receipt: nothing outside."""

    def ended(self, *, claim: Claim, state: State, error: BaseException | None) -> None:
        services.end_receipt(claim=claim)
