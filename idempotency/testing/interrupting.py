"""Interruptions within one process; for crashes start a process of its own (see `idempotency.faultpoints`)."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from django.test import override_settings

from idempotency import faultpoints
from idempotency.faultpoints import FaultInjected


@contextmanager
def interrupt_at(point: str) -> Iterator[dict[str, str]]:
    """Interrupt the request that is made within, once, at one of `faultpoints.POINTS`, as a cancellation would.

        with interrupt_at("after_call") as headers:
            client.post("/api/payments/", order, headers={"Idempotency-Key": "k1", **headers})

    The request must carry the headers that are given.

    Raises: AssertionError, where the request did not come to that point.
    """
    if point not in faultpoints.POINTS:
        raise ValueError(f"one of {', '.join(faultpoints.POINTS)} is wanted, not {point!r}")
    before = os.environ.get(faultpoints.VARIABLE)
    os.environ[faultpoints.VARIABLE] = f"{point}:raise"
    faultpoints.rearm()
    try:
        with override_settings(DEBUG=True):
            yield {faultpoints.HEADER: point}
    except FaultInjected:
        return
    finally:
        if before is None:
            del os.environ[faultpoints.VARIABLE]
        else:
            os.environ[faultpoints.VARIABLE] = before
    raise AssertionError(f"the request did not come to {point!r}, or did not carry the header")
