"""The gateway behind its guards: the only way in which payments calls it.

Sends and look-ups have a guard and a breaker each, for one gateway account: when charging fails, asking what became of
a charge must still be allowed, and a look-up that fails says nothing about charging.
"""

import hashlib
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Self
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from idempotency.resilience import (
    BreakerSettings,
    Bulkhead,
    CircuitBreaker,
    Guard,
    RetryBudget,
    RetryPolicy,
    SharedStore,
    http_client,
)
from idempotency.types import Downstream, LookUp, OpenStep, OutsideRequest, OutsideResult
from payments.conf import conf
from payments.gateway.port import (
    ChargeRequest,
    Gateway,
    PayoutRequest,
    RecipientRequest,
    RefundRequest,
)

NOT_EXECUTED = frozenset({429, 503})
"""By these the gateway itself means "not executed". An answer of something in between never gets so far: the adapter
tells the gateway's own answers by their mark."""


class GuardedGateway:
    """A gateway, each call of it guarded.

    Args:
        inner: makes one request per call, and lets errors out as they are.
        sends: the guard of what has an effect.
        reads: the guard of look-ups and retrievals.
    """

    def __init__(self, inner: Gateway, *, sends: Guard, reads: Guard) -> None:
        self.sends, self.reads = sends, reads
        self._inner = inner

    @property
    def downstream(self) -> Downstream:
        return self._inner.downstream

    def charge_request(self, asked: ChargeRequest) -> Mapping[str, Any]:
        return self._inner.charge_request(asked)

    def charge(self, request: OutsideRequest) -> OutsideResult:
        return self.sends.call(lambda _: self._inner.charge(request))

    def look_up_charge(self, step: OpenStep) -> LookUp:
        return self.reads.call(lambda _: self._inner.look_up_charge(step))

    def retrieve_charge(self, gateway_id: str) -> LookUp:
        return self.reads.call(lambda _: self._inner.retrieve_charge(gateway_id))

    def refund_request(self, asked: RefundRequest) -> Mapping[str, Any]:
        return self._inner.refund_request(asked)

    def refund(self, request: OutsideRequest) -> OutsideResult:
        return self.sends.call(lambda _: self._inner.refund(request))

    def look_up_refund(self, step: OpenStep) -> LookUp:
        return self.reads.call(lambda _: self._inner.look_up_refund(step))

    def retrieve_refund(self, gateway_id: str) -> LookUp:
        return self.reads.call(lambda _: self._inner.retrieve_refund(gateway_id))

    def recipient_request(self, asked: RecipientRequest) -> Mapping[str, Any]:
        return self._inner.recipient_request(asked)

    def create_recipient(self, request: OutsideRequest) -> OutsideResult:
        return self.sends.call(lambda _: self._inner.create_recipient(request))

    def look_up_recipient(self, step: OpenStep) -> LookUp:
        return self.reads.call(lambda _: self._inner.look_up_recipient(step))

    def payout_request(self, asked: PayoutRequest) -> Mapping[str, Any]:
        return self._inner.payout_request(asked)

    def pay(self, request: OutsideRequest) -> OutsideResult:
        return self.sends.call(lambda _: self._inner.pay(request))

    def look_up_payout(self, step: OpenStep) -> LookUp:
        return self.reads.call(lambda _: self._inner.look_up_payout(step))

    def retrieve_payout(self, gateway_id: str) -> LookUp:
        return self.reads.call(lambda _: self._inner.retrieve_payout(gateway_id))


# -- the one that the settings name ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Terms:
    """Everything that the gateway is made of, so that it is made again when a setting changes."""

    url: str
    api_key: str = field(repr=False)
    store_url: str
    keyed: bool
    settling_time: float
    key_memory: float
    bulkhead: int
    policy: RetryPolicy
    breaker: BreakerSettings

    @classmethod
    def of_settings(cls) -> Self:
        """Read them. Raises: ImproperlyConfigured, where the gateway has no address."""
        if not conf.GATEWAY_URL:
            raise ImproperlyConfigured("PAYMENTS['GATEWAY_URL'] must name the payment gateway.")
        timeout, attempts = conf.GATEWAY_TIMEOUT, conf.GATEWAY_ATTEMPTS
        return cls(
            url=conf.GATEWAY_URL.rstrip("/"),
            api_key=conf.GATEWAY_API_KEY,
            store_url=getattr(settings, "REDIS_URL", ""),
            keyed=conf.GATEWAY_KEYED,
            settling_time=conf.GATEWAY_SETTLING_TIME,
            key_memory=conf.GATEWAY_KEY_TTL,
            bulkhead=conf.GATEWAY_BULKHEAD,
            policy=RetryPolicy(
                attempts=attempts,
                # Pauses grow up to the cap: a base above it means the cap from the start.
                base=min(conf.GATEWAY_RETRY_BASE, conf.GATEWAY_RETRY_CAP),
                cap=conf.GATEWAY_RETRY_CAP,
                attempt_timeout=timeout,
                # Room for each attempt and its longest pause; the caller's deadline may be nearer.
                series=attempts * (timeout + conf.GATEWAY_RETRY_CAP),
            ),
            breaker=BreakerSettings(
                window=conf.BREAKER_WINDOW,
                min_calls=conf.BREAKER_MIN_CALLS,
                ratio=conf.BREAKER_RATIO,
                open_seconds=conf.BREAKER_OPEN,
                probes=conf.BREAKER_PROBES,
                successes=conf.BREAKER_SUCCESSES,
                lease=max(30.0, 2 * timeout),
            ),
        )

    @property
    def account(self) -> str:
        """The account's name in events and as a breaker's key: tells accounts apart, and no secret."""
        digest = hashlib.sha256(self.api_key.encode()).hexdigest()[:8]
        return f"{urlsplit(self.url).netloc}:{digest}"


_made: dict[Terms, GuardedGateway] = {}
_making = Lock()


def configured() -> GuardedGateway:
    """Return the gateway that the settings name; one per process, made when it is first asked for."""
    terms = Terms.of_settings()
    with _making:
        if terms not in _made:
            # Calls under way under other settings keep what they began with.
            _made.clear()
            _made[terms] = make(terms)
        return _made[terms]


def make(terms: Terms) -> GuardedGateway:
    """Return a gateway with guards of its own."""
    from payments.gateway.stripe import StripeGateway

    store = SharedStore.connect(terms.store_url) if terms.store_url else None
    http = http_client(
        timeout=terms.policy.attempt_timeout,
        connect_timeout=terms.policy.attempt_timeout,
        # Sends and look-ups share it, each with a bulkhead of this size.
        connections=2 * terms.bulkhead,
    )
    inner = StripeGateway(
        downstream=Downstream(
            name="gateway",
            keyed=terms.keyed,
            settling_time=terms.settling_time,
            key_memory=terms.key_memory,
        ),
        http=http,
        url=terms.url,
        api_key=terms.api_key,
    )
    made = GuardedGateway(
        inner,
        sends=_guard("gateway", terms, store, effect=True),
        reads=_guard("gateway look-ups", terms, store, effect=False),
    )
    # A call under way holds the gateway, so its connections outlast the last of them only.
    weakref.finalize(made, http.close)
    return made


def _guard(name: str, terms: Terms, store: SharedStore | None, *, effect: bool) -> Guard:
    return Guard(
        name=name,
        keyed=terms.keyed,
        policy=terms.policy,
        breaker=CircuitBreaker(name=f"{name} {terms.account}", store=store, settings=terms.breaker),
        bulkhead=Bulkhead(name=name, limit=terms.bulkhead),
        budget=RetryBudget(),
        declares=NOT_EXECUTED,
        effect=effect,
    )
