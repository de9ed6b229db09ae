"""How unknown outcomes of payments are looked up, and finished as the view would have done."""

from collections.abc import Mapping

from rest_framework.response import Response

from idempotency.ledger import Claim
from idempotency.operations import Resolver, resolver
from idempotency.types import LookUp, OpenStep, State
from payments import services
from payments.gateway import gateway
from payments.services.charging import CHARGE
from payments.views import PaymentViewSet


@resolver("payments.create")
class PaymentResolver(Resolver):
    """A charge: one step."""

    view = PaymentViewSet

    def look_up(self, *, step: OpenStep) -> LookUp:
        return gateway().look_up_charge(step)

    def finish(self, *, claim: Claim, endings: Mapping[str, LookUp]) -> Response:
        return PaymentViewSet.created(services.finish_payment(claim=claim, ending=endings[CHARGE]))

    def ended(self, *, claim: Claim, state: State, error: BaseException | None) -> None:
        services.end_payment(claim=claim, state=state, error=error)
