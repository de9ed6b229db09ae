"""The endpoint under `@idempotent`: local work, and work with one outside call that costs nothing."""

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from benchmarks.host.work import answer, effect
from idempotency.decorators import IdempotentRequest, idempotent
from idempotency.types import Downstream, OutsideRequest, OutsideResult

OTHER = Downstream(name="other", keyed=True, settling_time=1, key_memory=86_400)


class Local(APIView):
    """No outside call."""

    @idempotent(operation="orders", required=True)
    def post(self, request: Request) -> Response:
        """Do the work in the claim's own transaction."""
        effect("done")
        return answer(request)


class Call(APIView):
    """One outside call."""

    @idempotent(operation="orders.call", required=True)
    def post(self, request: IdempotentRequest) -> Response:
        """Write the intent, call, write the result."""
        effect("pending")
        request.claim.outside_call(step="call", request={"amount": 1}, send=_send, downstream=OTHER)
        effect("done")
        return answer(request)


def _send(request: OutsideRequest) -> OutsideResult:
    return OutsideResult(request.downstream_key[:8], {"status": "succeeded"})
