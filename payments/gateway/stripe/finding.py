"""Finding again at Stripe what was sent: by its id, by search, or by list and match. Only reads.

Source: Stripe's API, "Search" and "Pagination". What was made a moment ago may not be found yet: how long is the
gateway's settling time, and what an absence proves is for the ledger to decide (R36).
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

import stripe
from stripe import StripeClient

from idempotency.types import Absent, Applied, LookUp, OpenStep, OutsideResult, Pending, Rejected
from payments.gateway.stripe.shapes import Reader

_PAGE = 100
_CLOCKS_DIFFER = 3600
"""Seconds by which Stripe's clock may be behind our database's."""


class Finder:
    """Reads objects and pages of them. A refusal of Stripe's is no verdict here: it is let out as any other error."""

    def __init__(self, client: StripeClient) -> None:
        self._client = client

    def by_id(self, path: str, object_id: str) -> Mapping[str, Any] | None:
        """Return the object, or None where Stripe says that there is none."""
        try:
            return self._read(f"{path}/{object_id}")
        except stripe.InvalidRequestError as error:
            if error.http_status == 404 and error.code == "resource_missing":
                return None
            raise

    def search(self, path: str, reference: str) -> Iterator[Mapping[str, Any]]:
        """Yield the objects that carry our reference, newest first."""
        quoted = reference.replace("\\", "\\\\").replace("'", "\\'")
        more: dict[str, Any] = {"query": f"metadata['reference']:'{quoted}'", "limit": _PAGE}
        while True:
            page = self._read(f"{path}/search", **more)
            yield from page["data"]
            if not page["has_more"]:
                return
            more["page"] = page["next_page"]

    def listed(
        self, path: str, *, since: datetime | None = None, **narrowed: Any
    ) -> Iterator[Mapping[str, Any]]:
        """Yield all objects of a list, newest first, none older than `since` by more than clocks may differ."""
        more: dict[str, Any] = {**narrowed, "limit": _PAGE}
        if since is not None:
            more["created"] = {"gte": int(since.timestamp()) - _CLOCKS_DIFFER}
        while True:
            page = self._read(path, **more)
            yield from page["data"]
            if not page["has_more"]:
                return
            more["starting_after"] = page["data"][-1]["id"]

    def verdict(
        self, found: Iterable[Mapping[str, Any]], *, step: OpenStep, read: Reader
    ) -> LookUp:
        """Return what the objects with our reference say of a step.

        One that was applied is the movement of money that this reference stands for, under whichever downstream key it
        was sent; any other one is a second movement for the same. A refusal counts only where it is an answer to this
        series of sends (R23).
        """
        reference = json.loads(step.payload)["metadata"]["reference"]
        verdict: LookUp = Absent()
        # Newest first: the last one found is the first that was made.
        moved: list[OutsideResult] = []
        for thing in found:
            if thing["metadata"].get("reference") != reference:
                continue
            match read(thing):
                case Applied(result=result):
                    moved.append(result)
                case Rejected() as rejected:
                    ours = thing["metadata"].get("idempotency_key") == step.downstream_key
                    if ours and isinstance(verdict, Absent):
                        verdict = rejected
                case Pending() | Absent():
                    verdict = Pending()
        if moved:
            *again, first = moved
            return Applied(first, again=tuple(result.reference for result in again))
        return verdict

    def _read(self, path: str, **params: Any) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._client.raw_request("get", path, **params).data
        return found
