"""Every path that is served, and what serves it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from payments.simulator.api import dependencies, intents, lookups, payouts, refunds
from payments.simulator.api.call import Call
from payments.simulator.wire.http import Json

Endpoint = Callable[[Call], Json]


@dataclass(frozen=True)
class Route:
    """One path and method. In `path`, `{}` stands for one id.

    A look-up reads the gateway's objects; faults reach it only where they name it.
    """

    method: str
    path: str
    endpoint: Endpoint
    lookup: bool = False
    authenticated: bool = True

    def match(self, path: str) -> tuple[str, ...] | None:
        """Return the ids in a path that this route serves, or None."""
        found = re.fullmatch(self.path.replace("{}", "([^/]+)"), path)
        return found.groups() if found else None


def _post(path: str, endpoint: Endpoint) -> Route:
    return Route("POST", path, endpoint)


def _lookup(path: str, reader: Callable[[Call, str], Json], object_type: str) -> Route:
    return Route("GET", path, partial(_read, reader, object_type), lookup=True)


def _read(reader: Callable[[Call, str], Json], object_type: str, call: Call) -> Json:
    return reader(call, object_type)


ROUTES = (
    _post("/v1/payment_intents", intents.create),
    _post("/v1/payment_intents/{}/confirm", intents.confirm),
    _post("/v1/payment_intents/{}/capture", intents.capture),
    _post("/v1/payment_intents/{}/cancel", intents.cancel),
    _lookup("/v1/payment_intents", lookups.list_objects, "payment_intent"),
    _lookup("/v1/payment_intents/search", lookups.search, "payment_intent"),
    _lookup("/v1/payment_intents/{}", lookups.retrieve, "payment_intent"),
    _lookup("/v1/charges/{}", lookups.retrieve, "charge"),
    _post("/v1/refunds", refunds.create),
    _lookup("/v1/refunds", lookups.list_objects, "refund"),
    _lookup("/v1/refunds/{}", lookups.retrieve, "refund"),
    _post("/v1/accounts", payouts.create_account),
    _lookup("/v1/accounts", lookups.list_objects, "account"),
    _lookup("/v1/accounts/{}", lookups.retrieve, "account"),
    _post("/v1/payouts", payouts.create),
    _lookup("/v1/payouts", lookups.list_objects, "payout"),
    _lookup("/v1/payouts/{}", lookups.retrieve, "payout"),
    Route("GET", "/deps/rates", dependencies.rates, authenticated=False),
    Route("GET", "/deps/offers", dependencies.offers, authenticated=False),
)


def find_route(method: str, path: str) -> tuple[Route, tuple[str, ...]] | None:
    """Return the route that serves a request and the ids in its path, or None."""
    for route in ROUTES:
        ids = route.match(path)
        if ids is not None and route.method == method:
            return route, ids
    return None


def methods_of(path: str) -> set[str]:
    """Return the methods that a path is served for; none for an unknown path."""
    return {route.method for route in ROUTES if route.match(path) is not None}
