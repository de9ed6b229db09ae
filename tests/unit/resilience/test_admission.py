"""R29: work is turned away before anything is done for it, for a counted reason."""

import threading
import timeit
from collections.abc import Iterator

import pytest

from idempotency.exceptions import Refused
from idempotency.resilience import Admission, Deadline, deadline_scope
from idempotency.telemetry import AdmissionRefused, subscribe
from tests.support.faketime import FakeTime


@pytest.fixture
def reasons() -> Iterator[list[str]]:
    heard: list[str] = []
    end = subscribe(AdmissionRefused, lambda event: heard.append(event.reason))
    yield heard
    end()


def test_r29_a_client_that_has_gone_is_not_worked_for(reasons: list[str]) -> None:
    admission = Admission(name="api")
    with pytest.raises(Refused), admission.enter(client_gone=lambda: True):
        pytest.fail("it began")
    with admission.enter(client_gone=lambda: False):
        pass
    assert reasons == ["client-gone"]


def test_r29_too_little_time_is_refused(reasons: list[str]) -> None:
    time = FakeTime()
    admission = Admission(name="api", least_time=0.5, clock=time.clock)
    with (
        deadline_scope(Deadline.after(0.4, time.clock)),
        pytest.raises(Refused) as refused,
        admission.enter(),
    ):
        pytest.fail("it began")
    assert refused.value.code == "no-time"
    with deadline_scope(Deadline.after(0.6, time.clock)), admission.enter():
        pass
    assert reasons == ["no-time"]


def test_r29_too_many_in_flight_are_refused_and_each_place_is_given_back(
    reasons: list[str],
) -> None:
    admission = Admission(name="api", in_flight=2)
    with admission.enter(), admission.enter():
        with pytest.raises(Refused) as refused, admission.enter():
            pytest.fail("it began")
        assert (refused.value.code, refused.value.retry_after) == ("overloaded", 1.0)
    for _ in range(3):
        with pytest.raises(KeyError), admission.enter():
            raise KeyError("the work failed")
    assert reasons == ["in-flight"]


def test_r29_a_backlog_that_cannot_be_drained_is_refused(reasons: list[str]) -> None:
    time, seconds = FakeTime(), [10.0]
    admission = Admission(
        name="refunds", backlog=lambda: seconds[0], backlog_limit=60, clock=time.clock
    )
    with admission.enter():
        pass
    seconds[0] = 90.0
    # One answer is believed for a second: it may cost a query.
    with admission.enter():
        pass
    time.pass_(1)
    with pytest.raises(Refused) as refused, admission.enter():
        pytest.fail("it began")
    # By then the backlog is short enough.
    assert refused.value.retry_after == 30.0
    assert reasons == ["backlog"]


def test_r29_places_never_exceed_the_limit_over_threads() -> None:
    admission, most, inside, lock = Admission(name="api", in_flight=3), 0, 0, threading.Lock()
    together = threading.Barrier(12)

    def work() -> None:
        nonlocal most, inside
        together.wait()
        for _ in range(50):
            try:
                with admission.enter():
                    with lock:
                        inside += 1
                        most = max(most, inside)
                    with lock:
                        inside -= 1
            except Refused:
                continue

    threads = [threading.Thread(target=work) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 1 <= most <= 3


def test_r29_a_refusal_costs_microseconds() -> None:
    admission = Admission(name="api", in_flight=1)

    def refused() -> None:
        with pytest.raises(Refused), admission.enter():
            pass

    with admission.enter():
        assert min(timeit.repeat(refused, number=200, repeat=5)) / 200 < 0.001


def test_r29_a_limit_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="in_flight"):
        Admission(name="api", in_flight=0)
