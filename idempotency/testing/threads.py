"""Callers at the same moment."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import connections

from idempotency.conf import conf

T = TypeVar("T")


def together(count: int, work: Callable[[int], T]) -> list[T]:
    """Run the work in so many threads that start at one moment, each with a connection of its own.

    `work` gets the thread's number. Needs a TransactionTestCase: no other connection sees into a test's transaction.
    """
    barrier = threading.Barrier(count)

    def run(number: int) -> T:
        try:
            connections[conf.DATABASE].ensure_connection()
            barrier.wait(30)
            return work(number)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))
