"""R24-R28: the guard as a whole, under an injected clock, and its properties over any failures."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest
from billiard.exceptions import SoftTimeLimitExceeded
from hypothesis import given, settings
from hypothesis import strategies as st

from idempotency.exceptions import (
    CallError,
    CallFailed,
    CallRejected,
    CallUnknown,
    Fenced,
    UnjournalledCall,
)
from idempotency.resilience import (
    Attempt,
    BreakerSettings,
    BreakerState,
    Bulkhead,
    CircuitBreaker,
    Deadline,
    Force,
    Guard,
    RetryBudget,
    RetryPolicy,
    current_attempt,
    deadline_scope,
    journalled,
)
from idempotency.telemetry import AttemptEnded, CallEnded, CallRefused, Event, subscribe
from idempotency.types import Outcome
from tests.support.faketime import FakeTime

UNSENT, READ, BUSY, BROKEN, NOT_FOUND = "unsent", "read", "busy", "broken", "not-found"
DECLINED, BUG, OK = "declined", "bug", "ok"


@dataclass
class Peer:
    """Answers each attempt as the script says; the last line is repeated."""

    script: list[str]
    time: FakeTime
    takes: float = 0.0
    word: str | None = None
    attempts: list[Attempt] = field(default_factory=list)
    timeouts: list[float] = field(default_factory=list)

    def __call__(self, attempt: Attempt) -> str:
        assert current_attempt() is attempt
        line = self.script[min(len(self.attempts), len(self.script) - 1)]
        self.attempts.append(attempt)
        self.timeouts.append(attempt.timeout)
        self.time.pass_(min(self.takes, attempt.timeout))
        attempt.bytes_may_have_left = line != UNSENT
        if line == OK:
            return "answer"
        raise self._error(line)

    def _error(self, line: str) -> Exception:
        match line:
            case "unsent":
                return ConnectionRefusedError(111, "no")
            case "read":
                return httpx2.ReadTimeout("no")
            case "declined":
                return CallRejected("declined", code="card_declined", reference="pi_1")
            case "bug":
                return KeyError("id")
        status = {BUSY: 503, BROKEN: 500, NOT_FOUND: 404}[line]
        request = httpx2.Request("POST", "http://gateway.test/")
        headers = {} if self.word is None else {"Retry-After": self.word}
        response = httpx2.Response(status, headers=headers, request=request)
        return httpx2.HTTPStatusError("no", request=request, response=response)


def guard_of(time: FakeTime, **changed: Any) -> Guard:
    given_: dict[str, Any] = {
        "name": "gateway",
        "keyed": True,
        "policy": RetryPolicy(attempts=3, base=0.1, cap=1, attempt_timeout=3, series=10),
        "declares": {503},
        "clock": time.clock,
    }
    return Guard(**(given_ | changed))


def ended(guard: Guard, send: Callable[[Attempt], Any], **kwargs: Any) -> Any:
    """Make the journalled call; return its answer or its ending."""
    with journalled(lambda: None):
        try:
            return guard.call(send, **kwargs)
        except CallError as error:
            return error


@pytest.fixture
def time() -> FakeTime:
    return FakeTime()


@pytest.fixture
def heard() -> Iterator[list[Event]]:
    events: list[Event] = []
    end = subscribe(Event, events.append)
    yield events
    end()


# -- endings ------------------------------------------------------------------------------------------


def test_r24_an_answer_after_an_ambiguous_send_under_the_same_key_is_a_success(
    time: FakeTime,
) -> None:
    peer = Peer([READ, OK], time)
    assert ended(guard_of(time), peer) == "answer"
    assert [a.number for a in peer.attempts] == [1, 2]


def test_r24_an_ambiguous_send_is_not_repeated_without_a_key(time: FakeTime) -> None:
    peer = Peer([READ, OK], time)
    error = ended(guard_of(time, keyed=False), peer)
    assert isinstance(error, CallUnknown)
    assert isinstance(error.__cause__, httpx2.ReadTimeout)
    assert len(peer.attempts) == 1
    assert error.report is not None
    assert error.report.outcome is Outcome.AMBIGUOUS
    assert error.report.last_error.startswith("timeout: ReadTimeout")


def test_r24_a_guard_that_takes_the_other_side_for_keyed_does_not_outvote_the_journal(
    time: FakeTime,
) -> None:
    peer = Peer([READ, OK], time)
    with journalled(lambda: None, keyed=False), pytest.raises(CallUnknown):
        guard_of(time, keyed=True).call(peer)
    assert len(peer.attempts) == 1


def test_r24_what_was_not_sent_is_repeated_also_without_a_key(time: FakeTime) -> None:
    peer = Peer([UNSENT, UNSENT, OK], time)
    assert ended(guard_of(time, keyed=False), peer) == "answer"


@pytest.mark.parametrize("second", [UNSENT, BUSY, NOT_FOUND, BUG])
def test_r24_one_ambiguous_send_makes_the_series_ambiguous(time: FakeTime, second: str) -> None:
    assert isinstance(ended(guard_of(time), Peer([READ, second], time)), CallUnknown)


def test_r24_attempts_spent_on_a_stated_refusal_are_a_failure(time: FakeTime) -> None:
    error = ended(guard_of(time), Peer([BUSY], time, word="2"))
    assert isinstance(error, CallFailed)
    assert (error.sent, error.retry_after, error.code) == (True, 2.0, "gateway-unavailable")
    assert error.report is not None
    assert error.report.attempts == 3
    assert error.report.seconds == pytest.approx(4.0)


def test_r24_a_failure_is_not_unsent_when_any_attempt_was_sent(time: FakeTime) -> None:
    error = ended(guard_of(time), Peer([BUSY, UNSENT], time))
    assert isinstance(error, CallFailed)
    assert error.sent


def test_r24_an_undeclared_503_is_ambiguous(time: FakeTime) -> None:
    guard = guard_of(time, declares=frozenset(), keyed=False)
    assert isinstance(ended(guard, Peer([BUSY], time)), CallUnknown)


def test_r24_a_definite_no_is_a_failure_at_once(time: FakeTime) -> None:
    peer = Peer([NOT_FOUND], time)
    error = ended(guard_of(time), peer)
    assert isinstance(error, CallFailed)
    assert error.sent
    assert len(peer.attempts) == 1


def test_r24_a_bug_after_bytes_left_is_unknown_and_never_repeated(time: FakeTime) -> None:
    peer = Peer([BUG], time)
    error = ended(guard_of(time), peer)
    assert isinstance(error, CallUnknown)
    assert isinstance(error.__cause__, KeyError)
    assert len(peer.attempts) == 1


def test_r24_a_business_refusal_passes_through_with_its_report(time: FakeTime) -> None:
    error = ended(guard_of(time), Peer([READ, DECLINED], time))
    assert isinstance(error, CallRejected)
    assert (error.code, error.reference) == ("card_declined", "pi_1")
    assert error.report is not None
    assert error.report.attempts == 2


def test_r24_a_response_with_an_error_status_is_no_answer(time: FakeTime) -> None:
    request = httpx2.Request("POST", "http://gateway.test/")
    responses = [httpx2.Response(status, request=request) for status in (503, 500, 200)]
    assert ended(guard_of(time), lambda a: responses[a.number - 1]).status_code == 200


def test_r24_without_effect_nothing_is_unknown_and_repeats_are_safe(time: FakeTime) -> None:
    guard = guard_of(time, effect=False, keyed=False)
    peer = Peer([READ, OK], time)
    assert guard.call(peer) == "answer"
    with pytest.raises(CallFailed) as failed:
        guard.call(Peer([READ], time))
    assert failed.value.report is not None
    assert failed.value.report.outcome is Outcome.AMBIGUOUS


def test_r24_inner_guards_are_not_retried(time: FakeTime) -> None:
    calls: list[int] = []

    def send(attempt: Attempt) -> None:
        calls.append(attempt.number)
        raise CallFailed("inner", code="circuit-open", retry_after=4)

    error = ended(guard_of(time), send)
    assert (error.code, calls) == ("circuit-open", [1])


# -- cancellation -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "stop", [KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError]
)
@pytest.mark.parametrize("left", [True, None, False])
def test_r24_h5_a_cancellation_is_unknown_once_bytes_may_have_left(
    time: FakeTime, stop: type[BaseException], left: bool | None
) -> None:
    attempts: list[int] = []

    def send(attempt: Attempt) -> None:
        attempts.append(attempt.number)
        attempt.bytes_may_have_left = left
        raise stop

    expected: type[BaseException] = stop if left is False else CallUnknown
    with journalled(lambda: None), pytest.raises(expected) as raised:
        guard_of(time).call(send)
    assert attempts == [1]
    if left is not False:
        assert isinstance(raised.value.__cause__, stop)


def test_r24_h5_a_cancellation_without_effect_propagates(time: FakeTime) -> None:
    def send(attempt: Attempt) -> None:
        attempt.bytes_may_have_left = True
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        guard_of(time, effect=False).call(send)


@pytest.mark.parametrize(("script", "ending"), [(READ, CallUnknown), (UNSENT, CallFailed)])
def test_r25_a_pause_ends_by_cancellation(
    time: FakeTime, script: str, ending: type[CallError]
) -> None:
    cancelled = threading.Event()
    cancelled.set()
    peer = Peer([script, OK], time)
    assert isinstance(ended(guard_of(time), peer, cancelled=cancelled), ending)
    assert len(peer.attempts) == 1


@pytest.mark.parametrize(("script", "ending"), [(READ, CallUnknown), (UNSENT, SystemExit)])
def test_r24_h5_being_stopped_in_a_pause_tells_what_is_known(
    time: FakeTime, script: str, ending: type[BaseException]
) -> None:
    def stop(cancelled: threading.Event | None, seconds: float) -> bool:
        raise SystemExit

    guard = guard_of(time, clock=type(time.clock)(now=time.clock.now, wait=stop))
    with journalled(lambda: None), pytest.raises(ending):
        guard.call(Peer([script], time))


# -- time ---------------------------------------------------------------------------------------------


def test_r26_an_attempt_gets_the_least_of_policy_series_and_deadline(time: FakeTime) -> None:
    peer = Peer([READ], time, takes=99)
    guard = guard_of(time)
    with deadline_scope(Deadline.after(4.0, time.clock)):
        error = ended(guard, peer)
    assert isinstance(error, CallUnknown)
    assert peer.timeouts[0] == 3.0
    # 4 s less the first attempt, the pause and the reserve of 0.1 s
    assert peer.timeouts[1] == pytest.approx(4.0 - 3.0 - time.waits[0] - 0.1)
    assert len(peer.timeouts) == 2


def test_r26_too_little_time_is_refused_before_the_call(time: FakeTime) -> None:
    peer = Peer([OK], time)
    with deadline_scope(Deadline.after(0.105, time.clock)):
        error = ended(guard_of(time), peer)
    assert isinstance(error, CallFailed)
    assert (error.code, error.sent, peer.attempts) == ("no-time", False, [])


def test_r25_a_word_longer_than_what_is_left_ends_the_series_and_is_passed_on(
    time: FakeTime,
) -> None:
    peer = Peer([BUSY, OK], time, word="3600")
    error = ended(guard_of(time), peer)
    assert isinstance(error, CallFailed)
    assert (error.retry_after, len(peer.attempts), time.waits) == (3600.0, 1, [])


def test_r25_a_word_is_waited_for_in_full(time: FakeTime) -> None:
    assert ended(guard_of(time), Peer([BUSY, OK], time, word="5")) == "answer"
    assert time.waits == [5.0]


# -- the journal --------------------------------------------------------------------------------------


def test_r13_a_call_with_an_effect_and_no_journal_is_refused_loudly(time: FakeTime) -> None:
    peer = Peer([OK], time)
    with pytest.raises(UnjournalledCall, match="gateway"):
        guard_of(time).call(peer)
    assert peer.attempts == []


def test_r12_every_send_is_checked_immediately_before_it(time: FakeTime) -> None:
    order: list[str] = []

    def send(attempt: Attempt) -> str:
        order.append("send")
        attempt.bytes_may_have_left = False
        if attempt.number < 3:
            raise ConnectionRefusedError
        return "answer"

    with journalled(lambda: order.append("check")):
        guard_of(time).call(send)
    assert order == ["check", "send"] * 3


def test_r22_a_call_without_effect_is_no_send_of_the_journal(time: FakeTime) -> None:
    checks: list[int] = []
    with journalled(lambda: checks.append(1)):
        guard_of(time, effect=False).call(Peer([OK], time))
    assert checks == []


@pytest.mark.parametrize(("first", "ending"), [(READ, CallUnknown), (UNSENT, CallFailed)])
def test_r12_a_superseded_sender_sends_nothing_more(
    time: FakeTime, first: str, ending: type[CallError]
) -> None:
    peer = Peer([first, OK], time)

    def check() -> None:
        if peer.attempts:
            raise Fenced("another owner")

    with journalled(check), pytest.raises(ending) as raised:
        guard_of(time).call(peer)
    assert len(peer.attempts) == 1
    assert isinstance(raised.value.__cause__, Fenced)


# -- breaker, bulkhead, budget ------------------------------------------------------------------------


def breaker_of(time: FakeTime) -> CircuitBreaker:
    settings_ = BreakerSettings(min_calls=4, ratio=0.5, open_seconds=10)
    return CircuitBreaker(name="gateway", settings=settings_, clock=time.clock)


def test_r27_an_open_breaker_refuses_at_once_and_says_for_how_long(time: FakeTime) -> None:
    breaker = breaker_of(time)
    guard = guard_of(time, breaker=breaker)
    ended(guard, Peer([UNSENT], time))
    peer = Peer([UNSENT], time)
    error = ended(guard, peer)
    # The fourth failure opens it: the series ends there, certainly without effect.
    assert (error.code, len(peer.attempts)) == ("circuit-open", 1)
    refused = guard.refusal()
    assert refused is not None
    assert refused.code == "circuit-open"
    assert refused.retry_after == pytest.approx(error.retry_after) == pytest.approx(10, abs=0.5)


def test_r24_a_breaker_that_opens_during_a_series_leaves_it_unknown(time: FakeTime) -> None:
    guard = guard_of(time, breaker=breaker_of(time))
    ended(guard, Peer([UNSENT], time))
    assert isinstance(ended(guard, Peer([READ, OK], time)), CallUnknown)


def test_r27_h10_declines_and_cancellations_do_not_open_the_breaker(time: FakeTime) -> None:
    breaker = breaker_of(time)
    guard = guard_of(time, breaker=breaker)
    for _ in range(20):
        ended(guard, Peer([DECLINED], time))
        ended(guard, Peer([NOT_FOUND], time))
    assert breaker.snapshot().calls == 40
    assert breaker.snapshot().failures == 0

    def stop(attempt: Attempt) -> None:
        raise SystemExit

    for _ in range(20):
        ended(guard, stop)
    assert breaker.snapshot().calls == 40


@pytest.mark.parametrize(
    ("first", "ending"), [(READ, CallUnknown), (UNSENT, SoftTimeLimitExceeded)]
)
def test_r24_h5_being_stopped_while_the_journal_checks_is_no_refusal(
    time: FakeTime, first: str, ending: type[Exception]
) -> None:
    peer = Peer([first, OK], time)

    def check() -> None:
        if peer.attempts:
            raise SoftTimeLimitExceeded

    with journalled(check), pytest.raises(ending):
        guard_of(time).call(peer)
    assert len(peer.attempts) == 1


def test_r27_a_check_that_forbids_the_send_frees_the_probe(time: FakeTime) -> None:
    breaker = breaker_of(time)
    guard = guard_of(time, breaker=breaker)
    for _ in range(2):
        ended(guard, Peer([UNSENT], time))
    time.pass_(11)

    def superseded() -> None:
        raise Fenced("no")

    for _ in range(5):
        with journalled(superseded), pytest.raises(CallFailed, match="may not send"):
            guard.call(Peer([OK], time))
    assert breaker.snapshot().state is BreakerState.HALF_OPEN
    assert breaker.snapshot().probes == 0


def test_r27_staff_can_force_it(time: FakeTime) -> None:
    breaker = breaker_of(time)
    guard = guard_of(time, breaker=breaker)
    breaker.force(Force.OPEN, actor="ops", reason="maintenance")
    assert ended(guard, Peer([OK], time)).code == "circuit-open"
    breaker.force(Force.CLEAR, actor="ops", reason="done")
    assert ended(guard, Peer([OK], time)) == "answer"


def test_r27_a_probe_lease_shorter_than_an_attempt_is_refused(time: FakeTime) -> None:
    breaker = CircuitBreaker(name="g", settings=BreakerSettings(lease=3))
    with pytest.raises(ValueError, match="lease"):
        guard_of(time, breaker=breaker)


def test_r28_a_full_bulkhead_refuses_at_once_and_frees_its_place(time: FakeTime) -> None:
    bulkhead = Bulkhead(name="gateway", limit=1)
    guard = guard_of(time, bulkhead=bulkhead, effect=False)

    def send(attempt: Attempt) -> CallError:
        refused = guard.refusal()
        assert refused is not None
        assert refused.code == "overloaded"
        with pytest.raises(CallFailed) as failed:
            guard.call(Peer([OK], time))
        return failed.value

    assert guard.call(send).code == "overloaded"
    assert not bulkhead.full
    assert guard.refusal() is None
    with pytest.raises(CallFailed):
        guard.call(Peer([UNSENT], time))
    assert not bulkhead.full


def test_r28_a_bulkhead_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="limit"):
        Bulkhead(name="g", limit=0)


def test_r25_an_empty_budget_ends_the_series(time: FakeTime, heard: list[Event]) -> None:
    guard = guard_of(time, budget=RetryBudget(ratio=0, burst=1))
    assert ended(guard, Peer([UNSENT], time)).report.attempts == 2
    assert ended(guard, Peer([UNSENT], time)).report.attempts == 1
    assert CallRefused(guard="gateway", reason="retry-budget") in heard


def test_r25_every_call_earns_a_part_of_a_retry(time: FakeTime) -> None:
    guard = guard_of(time, budget=RetryBudget(ratio=0.5, burst=1))
    assert ended(guard, Peer([UNSENT], time)).report.attempts == 2
    assert ended(guard, Peer([OK], time)) == "answer"
    assert ended(guard, Peer([UNSENT], time)).report.attempts == 2


# -- events -------------------------------------------------------------------------------------------


def test_events_tell_every_attempt_and_the_ending(time: FakeTime, heard: list[Event]) -> None:
    ended(guard_of(time), Peer([UNSENT, OK], time, takes=0.5))
    attempts = [event for event in heard if isinstance(event, AttemptEnded)]
    assert [(e.number, e.outcome, e.reason, e.seconds) for e in attempts] == [
        (1, "transient", "refused", 0.5),
        (2, "success", "answered", 0.5),
    ]
    (end,) = [event for event in heard if isinstance(event, CallEnded)]
    assert (end.ending, end.attempts) == ("success", 2)
    assert end.seconds == pytest.approx(1.0 + time.waits[0])


@pytest.mark.parametrize(
    ("script", "ending"), [(DECLINED, "rejected"), (UNSENT, "failed"), (READ, "unknown")]
)
def test_events_tell_how_it_ended(
    time: FakeTime, heard: list[Event], script: str, ending: str
) -> None:
    ended(guard_of(time), Peer([script], time))
    assert [e.ending for e in heard if isinstance(e, CallEnded)] == [ending]


def test_no_secret_reaches_a_report(time: FakeTime) -> None:
    def send(attempt: Attempt) -> None:
        raise ValueError(
            "POST https://user:hunter2@host/p?token=tok_123 with sk_live_abc, Bearer eyJh.x,"
            " 4242 4242 4242 4242"
        )

    error = ended(guard_of(time), send)
    for secret in ("hunter2", "tok_123", "sk_live_abc", "eyJh", "4242"):
        assert secret not in error.report.last_error
        assert secret not in str(error)


# -- any sequence of failures -------------------------------------------------------------------------


@settings(deadline=None)
@given(
    script=st.lists(
        st.sampled_from([UNSENT, READ, BUSY, BROKEN, NOT_FOUND, DECLINED, BUG, OK]), min_size=1
    ),
    keyed=st.booleans(),
    attempts=st.integers(1, 6),
    takes=st.floats(0, 5),
    word=st.none() | st.integers(0, 20).map(str) | st.just("1.5"),
    budget=st.floats(0.001, 20),
    bulkhead=st.booleans(),
)
def test_r24_r25_r26_properties_of_every_series(
    script: list[str],
    keyed: bool,
    attempts: int,
    takes: float,
    word: str | None,
    budget: float,
    bulkhead: bool,
) -> None:
    time = FakeTime()
    peer = Peer(script, time, takes=takes, word=word)
    policy = RetryPolicy(attempts=attempts, base=0.1, cap=1, attempt_timeout=3, series=10)
    places = Bulkhead(name="g", limit=1) if bulkhead else None
    guard = guard_of(time, keyed=keyed, policy=policy, bulkhead=places)
    checks: list[int] = []
    started = time.now
    outcome: str | CallError
    with deadline_scope(Deadline.after(budget, time.clock)), journalled(lambda: checks.append(1)):
        try:
            outcome = guard.call(peer)
        except CallError as error:
            outcome = error
    met = [script[min(n, len(script) - 1)] for n in range(len(peer.attempts))]

    # Attempts never exceed, each was checked by the journal, and the report counts them.
    assert len(met) <= attempts
    assert len(checks) == len(met)
    # An ambiguous attempt is never followed by a resend unless keyed.
    if not keyed:
        assert not {READ, BROKEN} & set(met[:-1])
    # Nothing follows a definite answer.
    assert not {NOT_FOUND, DECLINED, BUG, OK} & set(met[:-1])
    # A pause is within [0, cap], or the server's word.
    for pause in time.waits:
        assert 0 <= pause <= policy.cap or pause == float(word or -1)
    # Never past the deadline, nor the series' own budget.
    assert time.now - started <= min(budget, policy.series) + 1e-6
    # The ending tells the truth about what may have happened.
    if isinstance(outcome, CallUnknown):
        assert {READ, BROKEN, BUG} & set(met)
    elif isinstance(outcome, CallFailed):
        assert not {READ, BROKEN, BUG} & set(met)
        assert outcome.sent is bool({BUSY, NOT_FOUND} & set(met))
    elif isinstance(outcome, CallRejected):
        assert met[-1] == DECLINED
    else:
        assert (outcome, met[-1]) == ("answer", OK)
    if isinstance(outcome, CallError):
        assert outcome.report is not None
        assert outcome.report.attempts == len(met)
    assert places is None or not places.full


# -- coroutines ---------------------------------------------------------------------------------------


def arun(guard: Guard, send: Any) -> Any:
    async def call() -> Any:
        return await guard.acall(send)

    with journalled(lambda: None):
        return asyncio.run(call())


def test_acall_decides_like_call(time: FakeTime) -> None:
    peer = Peer([READ, UNSENT, OK], time)

    async def send(attempt: Attempt) -> str:
        return peer(attempt)

    assert arun(guard_of(time), send) == "answer"
    with pytest.raises(CallUnknown):
        arun(guard_of(time, keyed=False), lambda attempt: send_read(attempt, time))


async def send_read(attempt: Attempt, time: FakeTime) -> str:
    return Peer([READ], time)(attempt)


@pytest.mark.parametrize(("left", "ending"), [(True, CallUnknown), (False, CallFailed)])
def test_r26_acall_ends_an_attempt_that_never_ends(left: bool, ending: type[CallError]) -> None:
    policy = RetryPolicy(attempts=1, attempt_timeout=0.05)

    async def send(attempt: Attempt) -> None:
        attempt.bytes_may_have_left = left
        await asyncio.Event().wait()

    with pytest.raises(ending):
        arun(Guard(name="g", keyed=True, policy=policy), send)


@pytest.mark.parametrize(("left", "ending"), [(True, CallUnknown), (False, asyncio.CancelledError)])
def test_r24_h5_a_cancelled_task_is_unknown_once_bytes_may_have_left(
    left: bool, ending: type[BaseException]
) -> None:
    async def call() -> None:
        begun = asyncio.Event()

        async def send(attempt: Attempt) -> None:
            attempt.bytes_may_have_left = left
            begun.set()
            await asyncio.Event().wait()

        task = asyncio.create_task(Guard(name="g", keyed=True).acall(send))
        await begun.wait()
        task.cancel()
        await task

    with journalled(lambda: None), pytest.raises(ending):
        asyncio.run(call())


def test_r25_acall_waits_cancellably() -> None:
    async def call() -> None:
        failed = asyncio.Event()

        async def send(attempt: Attempt) -> None:
            attempt.bytes_may_have_left = False
            failed.set()
            raise ConnectionRefusedError

        guard = Guard(name="g", policy=RetryPolicy(base=50, cap=50, series=100), keyed=True)
        task = asyncio.create_task(guard.acall(send))
        await failed.wait()
        task.cancel()
        await task

    with journalled(lambda: None), pytest.raises(asyncio.CancelledError):
        asyncio.run(call())


def test_r25_a_pause_of_a_coroutine_waits_for_no_thread() -> None:
    """Of a loop's few threads: some dozens that waited in them kept all others waiting, stores of intents too."""
    release = threading.Event()
    peer = Peer([READ, OK], FakeTime())

    async def call() -> Any:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        busy = loop.run_in_executor(None, release.wait, 30)
        guard = Guard(name="g", keyed=True, policy=RetryPolicy(base=0.01, cap=0.01))
        try:
            async with asyncio.timeout(10):
                return await guard.acall(send)
        finally:
            release.set()
            await busy

    async def send(attempt: Attempt) -> str:
        return peer(attempt)

    with journalled(lambda: None):
        assert asyncio.run(call()) == "answer"
