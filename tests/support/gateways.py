"""Gateways for tests: the configured one's parts against any address, and the values it is given."""

import json
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from idempotency.resilience import (
    BreakerSettings,
    Deadline,
    RetryPolicy,
    deadline_scope,
    journalled,
)
from idempotency.types import OpenStep, OutsideRequest, OutsideResult
from payments.gateway import ChargeRequest
from payments.gateway.guarded import GuardedGateway, Terms, make

API_KEY = "sk_test_of_the_tests"
# Long enough for an attempt on a busy machine.
ATTEMPT_SECONDS = 10.0
PATH = "/v1/payment_intents"


def gateway_at(
    url: str,
    *,
    keyed: bool = True,
    attempts: int = 3,
    api_key: str = API_KEY,
    attempt_timeout: float = ATTEMPT_SECONDS,
    base: float = 0.01,
    breaker: BreakerSettings | None = None,
    bulkhead: int = 8,
    store_url: str = "",
) -> GuardedGateway:
    """Return a guarded gateway on Stripe's adapter, with a breaker of its own unless there is a store."""
    return make(
        Terms(
            url=url,
            api_key=api_key,
            store_url=store_url,
            keyed=keyed,
            settling_time=20.0,
            key_memory=86_400.0,
            bulkhead=bulkhead,
            policy=RetryPolicy(
                attempts=attempts,
                base=base,
                cap=max(base, 0.05),
                attempt_timeout=attempt_timeout,
                series=max(12.0, attempts * attempt_timeout),
            ),
            breaker=breaker or BreakerSettings(min_calls=1000),
        )
    )


def outside_request(params: Mapping[str, Any], *, key: str = "key-1") -> OutsideRequest:
    """Freeze parameters as the ledger's journal does."""
    payload = json.dumps(params, sort_keys=True, allow_nan=False, separators=(",", ":")).encode()
    return OutsideRequest(key, payload)


def open_step(request: OutsideRequest, *, reference: str = "") -> OpenStep:
    """Return the step of a send whose outcome is asked for."""
    return OpenStep(
        key_id=uuid.uuid4(),
        operation="payments.create",
        name="charge",
        downstream_key=request.downstream_key,
        payload=request.payload,
        reference=reference,
        first_send_at=datetime.now(UTC),
    )


@contextmanager
def journal(*, within: float | None = None) -> Iterator[list[int]]:
    """Stand in for the ledger around a send; yield the list that grows by one with each send.

    `within` is the caller's deadline in seconds from now.
    """
    sends: list[int] = []
    deadline = None if within is None else Deadline.after(within)
    with deadline_scope(deadline), journalled(lambda: sends.append(len(sends) + 1)):
        yield sends


def charge_params(made: GuardedGateway, **changes: object) -> Mapping[str, Any]:
    """Return what is frozen for a charge of 10.00 EUR."""
    order: dict[str, Any] = {
        "amount": 1000,
        "currency": "EUR",
        "source": "pm_card_visa",
        "description": "Tee & Kaffee = 10 €",
        "order_id": "o-1",
        "reference": "payment-1",
    }
    return made.charge_request(ChargeRequest(**(order | changes)))


def charge(
    made: GuardedGateway, *, key: str = "key-1", within: float | None = None, **changes: object
) -> OutsideResult:
    """Charge as the ledger would have it done."""
    with journal(within=within):
        return made.charge(outside_request(charge_params(made, **changes), key=key))
