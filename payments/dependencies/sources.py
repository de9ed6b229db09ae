"""How the sources are asked, and what is made of what they say."""

import math
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Any, Self

import httpx2
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from idempotency.resilience import (
    SOURCE_POLICY,
    Attempt,
    BreakerSettings,
    Bulkhead,
    CircuitBreaker,
    Guard,
    LastGood,
    SharedStore,
    Source,
    http_client,
)
from payments.conf import conf

CALLS_AT_ONCE = 8
"""Per source and process: as many as the web server has threads, and half of what asks sources in parallel."""
KEPT_SECONDS = 600.0
STORE_SECONDS = 0.02
"""A breaker's store may take so much of a source's 150 ms, and no more."""


class Unusable(Exception):
    """A source answered with something else than what it is for."""


@dataclass(frozen=True, slots=True)
class Terms:
    """Everything that the sources are made of, so that they are made again when a setting changes."""

    url: str
    store_url: str
    breaker: BreakerSettings

    @classmethod
    def of_settings(cls) -> Self:
        """Read them. Raises: ImproperlyConfigured, where the sources have no address."""
        url = conf.DEPENDENCIES_URL or conf.GATEWAY_URL
        if not url:
            raise ImproperlyConfigured("PAYMENTS['DEPENDENCIES_URL'] must name the sources.")
        return cls(
            url=url.rstrip("/"),
            store_url=getattr(settings, "REDIS_URL", ""),
            breaker=BreakerSettings(
                window=conf.BREAKER_WINDOW,
                min_calls=conf.BREAKER_MIN_CALLS,
                ratio=conf.BREAKER_RATIO,
                open_seconds=conf.BREAKER_OPEN,
                probes=conf.BREAKER_PROBES,
                successes=conf.BREAKER_SUCCESSES,
            ),
        )


class Dependencies:
    """Both sources, ready to be given to `degrade`."""

    def __init__(self, terms: Terms) -> None:
        store = None
        if terms.store_url:
            store = SharedStore.connect(terms.store_url, timeout=STORE_SECONDS)
        self._url = terms.url
        self._http = http_client(
            timeout=SOURCE_POLICY.attempt_timeout,
            connect_timeout=SOURCE_POLICY.attempt_timeout,
            connections=2 * CALLS_AT_ONCE,
        )
        weakref.finalize(self, self._http.close)
        self._last_good = LastGood(keep=KEPT_SECONDS)
        self.guards = {name: _guard(name, terms, store) for name in ("rates", "offers")}

    def rates(self) -> Source:
        """Return the source of exchange rates: `{base, as_of, rates: {currency: number}}`.

        It has no default: an exchange rate is never made up.
        """
        return Source(
            name="rates",
            guard=self.guards["rates"],
            fetch=self._fetch("/deps/rates", _rates),
            last_good=self._last_good,
        )

    def offers(self) -> Source:
        """Return the source of offers: `[{id, title, percent_off}]`; by default there are none."""
        return Source(
            name="offers",
            guard=self.guards["offers"],
            fetch=self._fetch("/deps/offers", _offers),
            default=[],
            last_good=self._last_good,
        )

    def _fetch(self, path: str, read: Callable[[Any], Any]) -> Callable[[Attempt], Any]:
        # Holds what it uses, so that an answer that comes late still finds its connection open.
        http, url = self._http, f"{self._url}{path}"

        def fetch(_: Attempt) -> Any:
            return read(_body(http, url))

        return fetch


def _body(http: httpx2.Client, url: str) -> Any:
    response = http.get(url)
    response.raise_for_status()
    return response.json()


def _rates(body: Any) -> dict[str, Any]:
    match body:
        case {"base": str(base), "as_of": int(as_of), "rates": dict(rates)}:
            usable = all(isinstance(name, str) and _is_rate(rate) for name, rate in rates.items())
            if usable:
                return {"base": base, "as_of": as_of, "rates": rates}
    raise Unusable("These are no exchange rates.")


def _is_rate(value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and math.isfinite(value) and value > 0


def _offers(body: Any) -> list[dict[str, Any]]:
    match body:
        case {"offers": list(offers)}:
            return [_offer(offer) for offer in offers]
    raise Unusable("These are no offers.")


def _offer(offer: Any) -> dict[str, Any]:
    match offer:
        case {"id": str(id_), "title": str(title), "percent_off": int(percent)}:
            return {"id": id_, "title": title, "percent_off": percent}
    raise Unusable("This is no offer.")


def _guard(name: str, terms: Terms, store: SharedStore | None) -> Guard:
    return Guard(
        name=name,
        keyed=False,
        policy=SOURCE_POLICY,
        breaker=CircuitBreaker(name=name, store=store, settings=terms.breaker),
        bulkhead=Bulkhead(name=name, limit=CALLS_AT_ONCE),
        effect=False,
    )


_made: dict[Terms, Dependencies] = {}
_making = Lock()


def configured() -> Dependencies:
    """Return the sources that the settings name; one per process, made when they are first asked for."""
    terms = Terms.of_settings()
    with _making:
        if terms not in _made:
            _made.clear()
            _made[terms] = Dependencies(terms)
        return _made[terms]
