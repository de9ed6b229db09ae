"""The guard: the one way to call something that can fail.

Read `Guard.call` top-down: a series of attempts, each begun only if there is time, the breaker
agrees and the journal still stands; what came back is classified once, and the series goes on,
returns the answer, or ends as `CallRejected`, `CallFailed` or `CallUnknown`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from threading import Event as Signal
from typing import TypeVar

from idempotency.clock import SYSTEM, Clock
from idempotency.exceptions import CallFailed, UnjournalledCall
from idempotency.resilience.attempt import Attempt, attempt_scope, current_journal
from idempotency.resilience.breaker import CircuitBreaker
from idempotency.resilience.bulkhead import Bulkhead
from idempotency.resilience.retry import RetryBudget, RetryPolicy
from idempotency.resilience.series import Series, Terms, refusal
from idempotency.resilience.table import Declared

T = TypeVar("T")

_DEFAULT_POLICY = RetryPolicy()


class Guard:
    """What stands between our code and one dependency; safe to share between threads.

    Args:
        name: the dependency's name in events, reports and messages.
        keyed: whether the other side honours our downstream key, so that a send whose outcome is
            unknown may be repeated under it; it is not where the journal says otherwise.
        policy: attempts, pauses and times.
        breaker: one per account at the dependency, or None.
        bulkhead: bounds concurrent calls, or None.
        budget: bounds retries when everything fails, or None.
        declares: HTTP statuses (of 408, 425, 429, 503) and gRPC names (of UNAVAILABLE,
            RESOURCE_EXHAUSTED, ABORTED) by which this dependency is known to mean "not executed".
        effect: whether a call changes something. Without effect a repeat is always safe, no
            journal is asked for, and no ending is unknown.
    """

    def __init__(
        self,
        *,
        name: str,
        keyed: bool = False,
        policy: RetryPolicy = _DEFAULT_POLICY,
        breaker: CircuitBreaker | None = None,
        bulkhead: Bulkhead | None = None,
        budget: RetryBudget | None = None,
        declares: Declared = frozenset(),
        effect: bool = True,
        clock: Clock = SYSTEM,
    ) -> None:
        if breaker is not None and breaker.settings.lease <= policy.attempt_timeout:
            raise ValueError(f"{name}: the breaker's probe lease must outlive an attempt")
        self.terms = Terms(name, keyed, policy, breaker, budget, frozenset(declares), effect, clock)
        self.bulkhead = bulkhead

    def call(self, send: Callable[[Attempt], T], *, cancelled: Signal | None = None) -> T:
        """Call the other side through `send`, once per attempt, and return its answer.

        `send` makes one request within `attempt.timeout` and retries nothing itself; it raises
        `CallRejected` for a business refusal and lets every other error out as it is. `cancelled`
        ends a pause between attempts early.

        Raises:
            CallRejected: as `send` raised it: the other side refused; it did not happen.
            CallFailed: it certainly changed nothing.
            CallUnknown: it may have been executed; also when the caller is stopped meanwhile.
            UnjournalledCall: a call with an effect, and no journal row behind it.
        """
        with self._series() as series:
            while True:
                attempt = series.begin()
                try:
                    with attempt_scope(attempt):
                        answer = send(attempt)
                except BaseException as error:  # noqa: BLE001 - classified, and raised as an ending
                    pause = series.failed(attempt, error)
                else:
                    if series.accepts(attempt, answer):
                        return answer
                    pause = series.failed(attempt, answer)
                try:
                    stopped = self.terms.clock.wait(cancelled, pause)
                except BaseException as error:  # noqa: BLE001 - raised as an ending
                    series.stopped(error)
                if stopped:
                    series.cancelled()

    async def acall(self, send: Callable[[Attempt], Awaitable[T]]) -> T:
        """Do the same in a coroutine; the attempt's time is kept by the event loop.

        The breaker's store is asked in the loop's thread, within its own short timeout.
        """
        with self._series() as series:
            while True:
                attempt = series.begin()
                try:
                    with attempt_scope(attempt):
                        async with asyncio.timeout(attempt.timeout):
                            answer = await send(attempt)
                except BaseException as error:  # noqa: BLE001 - classified, and raised as an ending
                    pause = series.failed(attempt, error)
                else:
                    if series.accepts(attempt, answer):
                        return answer
                    pause = series.failed(attempt, answer)
                try:
                    await self.terms.clock.sleep(pause)
                except BaseException as error:  # noqa: BLE001 - raised as an ending
                    series.stopped(error)

    def refusal(self) -> CallFailed | None:
        """Return why a call begun now would be refused at once, or None; takes up nothing.

        For a runner of deferred work, which must not count an attempt that never begins.
        """
        name, breaker = self.terms.name, self.terms.breaker
        if self.bulkhead is not None and self.bulkhead.full:
            return refusal(name, "overloaded")
        wait = breaker.wait() if breaker is not None else None
        return None if wait is None else refusal(name, "circuit-open", retry_after=wait)

    @contextmanager
    def _series(self) -> Generator[Series, None, None]:
        journal = current_journal()
        if self.terms.effect and journal is None:
            raise UnjournalledCall(
                f"{self.terms.name}: a call with an effect needs a journal row behind it: make it"
                " through the ledger's outside_call, or inside resilience.journalled(before_send)"
            )
        series = Series(self.terms, journal if self.terms.effect else None)
        if self.bulkhead is None:
            yield series
        elif self.bulkhead.enter():
            try:
                yield series
            finally:
                self.bulkhead.leave()
        else:
            series.refuse("overloaded")
