"""The gateway port on Stripe, by its official client. Everything of Stripe's is known in this package only.

Unguarded: one request per sending verb, no retries, and every error of the wire let out as it is, for the guard to
classify. What Stripe itself answered is told here, because only here can it be read: a business "no" is a
`CallRejected`; a "no" to us, our credentials or our configuration, is a `CallFailed`.

# Note [The same bytes]
The wire body is a function of the journalled payload and the downstream key, and of nothing else: not of the client's
version, of the time or of the try. The official client is given no parameters to encode; its HTTP client, ours, puts
our own encoding of the frozen payload on the wire. The downstream key is part of the metadata too, so that a look-up
can tell a refusal of this series of sends from that of an earlier one (R23). The API version is ours as well, not the
client's of the day.
"""

import json
from collections.abc import Mapping
from itertools import islice
from typing import Any

import httpx2
from stripe import StripeClient

from idempotency.types import (
    Absent,
    Downstream,
    LookUp,
    OpenStep,
    OutsideRequest,
    OutsideResult,
)
from payments.gateway.port import (
    ChargeRequest,
    PayoutRequest,
    RecipientRequest,
    RefundRequest,
)
from payments.gateway.stripe import shapes
from payments.gateway.stripe.finding import Finder
from payments.gateway.stripe.refusals import translated
from payments.gateway.stripe.wire import Wire, sending

API_VERSION = "2026-10-28.endive"
_REASONS = frozenset({"duplicate", "fraudulent", "requested_by_customer"})
_LONGEST_METADATA = 500


class StripeGateway:
    """One Stripe account.

    Args:
        downstream: what it promises.
        http: makes the requests; it must neither retry nor follow redirects.
        url: the API's address, without a slash at its end.
        api_key: the account's secret key.
    """

    def __init__(
        self, *, downstream: Downstream, http: httpx2.Client, url: str, api_key: str
    ) -> None:
        self._downstream = downstream
        self._client = StripeClient(
            api_key,
            base_addresses={"api": url},
            stripe_version=API_VERSION,
            http_client=Wire(http),
            max_network_retries=0,
        )
        self._finder = Finder(self._client)

    @property
    def downstream(self) -> Downstream:
        return self._downstream

    # -- charges -------------------------------------------------------------------------------------------------------

    def charge_request(self, asked: ChargeRequest) -> Mapping[str, Any]:
        return _without_empty(
            amount=asked.amount,
            currency=asked.currency.lower(),
            payment_method=asked.source,
            # Methods that would send the customer elsewhere are of no use here.
            automatic_payment_methods={"enabled": True, "allow_redirects": "never"},
            confirm=True,
            # A charge that only the customer could complete is refused at once, instead of staying open.
            error_on_requires_action=True,
            description=asked.description,
            metadata={"reference": asked.reference, "order_id": asked.order_id},
        )

    def charge(self, request: OutsideRequest) -> OutsideResult:
        return shapes.result(shapes.charge(self._post("/v1/payment_intents", request)))

    def look_up_charge(self, step: OpenStep) -> LookUp:
        if step.reference:
            return self._named("/v1/payment_intents", step, shapes.charge)
        return self._finder.verdict(
            self._finder.search("/v1/payment_intents", _reference(step)),
            step=step,
            read=shapes.charge,
        )

    def retrieve_charge(self, gateway_id: str) -> LookUp:
        return self._retrieve("/v1/payment_intents", gateway_id, shapes.charge)

    # -- refunds -------------------------------------------------------------------------------------------------------

    def refund_request(self, asked: RefundRequest) -> Mapping[str, Any]:
        known = asked.reason in _REASONS
        return _without_empty(
            amount=asked.amount,
            payment_intent=asked.charge,
            reason=asked.reason if known else "",
            metadata=_without_empty(
                reference=asked.reference,
                reason="" if known else asked.reason[:_LONGEST_METADATA],
            ),
        )

    def refund(self, request: OutsideRequest) -> OutsideResult:
        return shapes.result(shapes.refund(self._post("/v1/refunds", request)))

    def look_up_refund(self, step: OpenStep) -> LookUp:
        if step.reference:
            return self._named("/v1/refunds", step, shapes.refund)
        charge = _frozen(step).get("payment_intent")
        listed = self._finder.listed("/v1/refunds", payment_intent=charge)
        return self._finder.verdict(listed, step=step, read=shapes.refund)

    def retrieve_refund(self, gateway_id: str) -> LookUp:
        return self._retrieve("/v1/refunds", gateway_id, shapes.refund)

    # -- recipients and payouts ----------------------------------------------------------------------------------------

    def recipient_request(self, asked: RecipientRequest) -> Mapping[str, Any]:
        return {
            "type": "custom",
            "external_account": asked.destination,
            "metadata": {"reference": asked.reference},
        }

    def create_recipient(self, request: OutsideRequest) -> OutsideResult:
        return shapes.result(shapes.recipient(self._post("/v1/accounts", request)))

    def look_up_recipient(self, step: OpenStep) -> LookUp:
        if step.reference:
            return self._named("/v1/accounts", step, shapes.recipient)
        listed = self._finder.listed("/v1/accounts", since=step.first_send_at)
        # The first one will do: who is known twice is paid no more often, and this list has no end.
        ours = (one for one in listed if one["metadata"].get("reference") == _reference(step))
        return self._finder.verdict(islice(ours, 1), step=step, read=shapes.recipient)

    def payout_request(self, asked: PayoutRequest) -> Mapping[str, Any]:
        return {
            "amount": asked.amount,
            "currency": asked.currency.lower(),
            "destination": asked.recipient,
            "metadata": {"reference": asked.reference},
        }

    def pay(self, request: OutsideRequest) -> OutsideResult:
        return shapes.result(shapes.payout(self._post("/v1/payouts", request)))

    def look_up_payout(self, step: OpenStep) -> LookUp:
        if step.reference:
            return self._named("/v1/payouts", step, shapes.payout)
        recipient = _frozen(step).get("destination")
        listed = self._finder.listed("/v1/payouts", destination=recipient, since=step.first_send_at)
        return self._finder.verdict(listed, step=step, read=shapes.payout)

    def retrieve_payout(self, gateway_id: str) -> LookUp:
        return self._retrieve("/v1/payouts", gateway_id, shapes.payout)

    # -- one request ---------------------------------------------------------------------------------------------------

    def _post(self, path: str, request: OutsideRequest) -> Mapping[str, Any]:
        with translated(), sending(request):
            answer: Mapping[str, Any] = self._client.raw_request(
                "post", path, idempotency_key=request.downstream_key
            ).data
        return answer

    def _named(self, path: str, step: OpenStep, read: shapes.Reader) -> LookUp:
        """Return what the object of the step's own id says; one that carries another reference is another's."""
        found = self._finder.by_id(path, step.reference)
        carried = found and (found.get("metadata") or {}).get("reference")
        if found is None or carried not in (None, "", _reference(step)):
            return Absent()
        return read(found)

    def _retrieve(self, path: str, gateway_id: str, read: shapes.Reader) -> LookUp:
        found = self._finder.by_id(path, gateway_id)
        return Absent() if found is None else read(found)


def _frozen(step: OpenStep) -> dict[str, Any]:
    frozen: dict[str, Any] = json.loads(step.payload)
    return frozen


def _reference(step: OpenStep) -> str:
    return str(_frozen(step)["metadata"]["reference"])


def _without_empty(**members: Any) -> dict[str, Any]:
    # To Stripe an empty text means "unset this", which makes no sense in a creation.
    return {name: value for name, value in members.items() if value != ""}
