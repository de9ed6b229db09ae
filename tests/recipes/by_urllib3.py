"""Retries by urllib3, under `requests`: POST is repeated only where it is told so, and every try sends one key."""

import requests
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

RETRY = Retry(
    total=8,
    backoff_factor=0.2,
    backoff_jitter=0.2,
    # By default POST is never repeated.
    allowed_methods={"POST"},
    # 409 is in it for `in-progress` and `outcome-unknown`; a business 409 is repeated too, and replayed.
    status_forcelist={409, 429, 500, 502, 503, 504},
    # By default Retry-After counts for 413, 429 and 503 only; with the list above it counts for all of it.
    respect_retry_after_header=True,
    raise_on_status=False,
)


def pay(session: requests.Session, address: str, *, key: str, order: object) -> requests.Response:
    """POST the order under a key that the caller has kept."""
    session.mount(address, HTTPAdapter(max_retries=RETRY))
    return session.post(address, json=order, headers={"Idempotency-Key": key}, timeout=15)
