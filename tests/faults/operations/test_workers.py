"""Workers that are killed, frozen or poisoned: one effect, bounded attempts (G2; celery#337, #1628, good_job#922)."""

import json
import re

import pytest
from django.db import connection

from idempotency.models import Heartbeat, Key, Operation, Sender
from tests.faults.operations.conftest import key_of, let_lapse, let_look_up, marks, promise, work_of
from tests.support.outage import Outage
from tests.support.stack import Stack

pytestmark = [pytest.mark.slow, pytest.mark.timeout(150), pytest.mark.sampled(2)]
PAYOUT = {"amount": 700, "currency": "EUR", "destination": "acct_1Tests"}


def running(operation: str) -> bool:
    return key_of(operation).lease_until is not None


def ended(operation: str) -> bool:
    """Whether it has ended; what waits for time gets it."""
    let_look_up()
    return key_of(operation).state == "completed"


def test_r33_a_poison_task_ends_at_its_limit(stack: Stack) -> None:
    operation = promise("poison.kill")
    stack.start("worker", "beat")

    def gave_up() -> bool:
        if work_of(operation).attempts and running(operation):
            # Its worker process is dead within a moment; only the lease does not know.
            let_lapse()
        return key_of(operation).state == "completed"

    stack.wait_until(gave_up, "it gives up", seconds=100)
    assert (work_of(operation).attempts, work_of(operation).error) == (
        3,
        {"code": "gave-up", "detail": "The work was interrupted too often."},
    )
    assert marks() == 0
    later = promise("poison.mark")
    stack.wait_until(lambda: ended(later), "others go on")


@pytest.mark.parametrize(("fault", "effects_at_the_kill"), [("hang_before", 0), ("hang_after", 1)])
def test_a_worker_killed_around_the_effect(
    stack: Stack, fault: str, effects_at_the_kill: int
) -> None:
    stack.environment |= {"PAYMENTS_GATEWAY_TIMEOUT": "25", "PAYMENTS_GATEWAY_ATTEMPTS": "1"}
    stack.start("simulator", "web", "worker")
    stack.simulate("POST", "/_sim/faults", {"path": "/v1/payouts", "kind": fault, "times": 1})
    operation = str(stack.post("/api/payouts/", PAYOUT, key="k1").json()["id"])
    stack.wait_until(lambda: _sent(stack), "the request is on its way")
    stack.wait_until(
        lambda: len(stack.effects()) == effects_at_the_kill, "the other side has done its part"
    )
    stack.kill("worker")
    let_lapse()

    stack.start("worker", "beat")
    stack.wait_until(lambda: ended(operation), "it is settled", seconds=60)

    assert len(stack.effects()) == 1
    assert work_of(operation).error is None
    assert work_of(operation).attempts == 2 - effects_at_the_kill
    shown = stack.get(f"/api/operations/{operation}/").json()
    assert (shown["done"], "result" in shown) == (True, True)


@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "unkeyed"])
def test_r35_what_the_hard_limit_ends_in_the_middle_of_a_call_is_done_once(
    stack: Stack, keyed: bool
) -> None:
    stack.environment |= {
        "DJANGO_SETTINGS_MODULE": "tests.support.poison.short_limit",
        "PAYMENTS_GATEWAY_TIMEOUT": "25",
        "PAYMENTS_GATEWAY_ATTEMPTS": "1",
        "PAYMENTS_GATEWAY_KEYED": str(int(keyed)),
    }
    stack.start_simulator(keys=keyed)
    stack.start("web", "worker", "beat")
    for fault in ("hang_before", "hang_after"):
        stack.simulate("POST", "/_sim/faults", {"path": "/v1/payouts", "kind": fault, "times": 1})
    posted = [str(stack.post("/api/payouts/", PAYOUT, key=key).json()["id"]) for key in ("a", "b")]
    stack.wait_until(lambda: stack.logs("worker").count("TimeLimitExceeded(3") >= 2, "both die")
    let_lapse()
    stack.wait_until(lambda: all(map(ended, posted)), "both are settled", seconds=60)

    assert len({effect["reference"] for effect in stack.effects()}) == len(stack.effects()) == 2
    assert sorted(work_of(each).attempts for each in posted) == [1, 2]
    assert [work_of(each).error for each in posted] == [None, None]


def _sent(stack: Stack) -> bool:
    return any(each["path"] == "/v1/payouts" for each in stack.simulate("GET", "/_sim/requests"))


def test_r19_a_worker_stopped_in_good_order_writes_the_endings_that_it_owes(stack: Stack) -> None:
    """Its pool processes end without `atexit`, and elsewhere their deaths may never be proven."""
    stack.start("simulator", "web", "worker")
    stack.simulate(
        "POST",
        "/_sim/faults",
        {"path": "/v1/payouts", "kind": "slow_after", "seconds": 2, "times": 1},
    )
    outage = Outage()
    try:
        stack.post("/api/payouts/", PAYOUT, key="k1")
        stack.wait_until(lambda: _sent(stack), "the request is on its way")
        outage.begin()
        kept = "kept in this process"
        stack.wait_until(lambda: kept in stack.logs("worker"), "the answer has come")
    finally:
        outage.end()
        connection.close()
    sent = Sender.objects.filter(step__name="payout")
    assert sent.get().ending is None
    stack.stop("worker")
    assert sent.get().ending == "applied"


def test_r33_a_worker_stopped_in_good_order_ends_its_run(stack: Stack) -> None:
    operation = promise("poison.sleep", {"seconds": 2})
    waiting = promise("poison.sleep", {"seconds": 0})
    Key.objects.filter(work__id=waiting).update(due_at="2100-01-01T00:00:00Z")
    stack.start("worker", "beat")
    stack.wait_until(lambda: running(operation), "it runs")

    stack.stop("worker")

    assert (key_of(operation).state, work_of(operation).attempts) == ("completed", 1)
    assert (key_of(waiting).state, work_of(waiting).attempts) == ("in_progress", 0)
    assert marks() == 1


def test_337_late_copies_of_a_long_task_find_the_lease(stack: Stack) -> None:
    """The broker hands the message out again while its first copy still runs."""
    stack.environment["IDEMPOTENCY_RECONCILE_EVERY"] = "60"
    operation = promise("poison.sleep", {"seconds": 6})
    script = (
        "from project.celery import app\n"
        "app.conf.broker_transport_options = {**app.conf.broker_transport_options,"
        " 'visibility_timeout': 1, 'unacked_restore_interval': 1}\n"
    )
    (stack.home / "short_visibility.py").write_text(script)
    stack.environment["PYTHONPATH"] = str(stack.home)
    stack.start_worker(name="worker", concurrency=2)
    stack.start_worker(name="second", concurrency=2)
    for _ in range(4):
        _send(stack, str(key_of(operation).id))
    stack.wait_until(lambda: ended(operation), "it ends")

    assert (work_of(operation).attempts, marks()) == (1, 1)


def _send(stack: Stack, key_id: str) -> None:
    from celery import Celery

    with Celery(broker=stack.broker_url, set_as_current=False) as app:
        app.send_task("idempotency.tasks.run", args=[key_id], ignore_result=True)


def test_589_a_worker_that_slept_through_its_lease_changes_nothing(stack: Stack) -> None:
    # The server ends the phase of a run that is silent for longer than its time limit.
    stack.environment["IDEMPOTENCY_OPERATION_TIME_LIMIT"] = "4"
    operation = promise("poison.sleep", {"seconds": 2})
    stack.start("worker", "beat")
    stack.wait_until(lambda: running(operation), "it runs")
    stack.freeze("worker")
    stack.wait_until(let_lapse, "the server takes the row from the frozen worker")
    stack.start_worker(name="second")
    stack.wait_until(lambda: ended(operation), "the second worker has done it")
    before = json.dumps(list(Operation.objects.values()), default=str)
    slept = len(stack.logs("worker"))
    stack.thaw("worker")
    other = promise("poison.mark")
    stack.wait_until(lambda: ended(other), "others go on")
    stack.wait_until(
        lambda: re.search(r"tasks\.run\[[-\w]+\](?! received)", stack.logs("worker")[slept:]),
        "the first worker's run ends, however",
    )

    assert json.dumps(list(Operation.objects.exclude(id=other).values()), default=str) == before
    assert marks(key_of(operation).id) == 1
    assert work_of(operation).attempts == 2


def test_7577_two_beats_make_nothing_happen_twice(stack: Stack) -> None:
    operations = [promise("poison.mark") for _ in range(60)]
    operations += [promise("poison.fail") for _ in range(10)]
    stack.start_worker(concurrency=2)
    stack.start("beat")
    first = stack.processes.pop("beat")
    stack.processes["first-beat"] = first
    # As after an edit of the schedule, while the old one still runs.
    stack.start("beat", environment={"IDEMPOTENCY_WAKE_EVERY": "0.3"})

    def done() -> bool:
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE idempotency_key SET due_at = clock_timestamp() WHERE due_at IS NOT NULL"
            )
        return not Key.objects.exclude(state="completed").exists()

    stack.wait_until(done, "all has ended", seconds=90)
    assert marks() == 60
    assert sorted({work_of(each).attempts for each in operations}) == [1, 3]
    assert Operation.objects.filter(error__code="gave-up").count() == 10
    assert Heartbeat.objects.filter(name__in=["wake", "reconcile"]).count() == 2


def test_1408_a_sweeper_killed_in_its_sweep_leaves_no_lock(stack: Stack) -> None:
    operations = [promise("poison.mark") for _ in range(30)]
    stack.start("worker", "beat")
    stack.wait_until(Heartbeat.objects.exists, "a sweep")
    stack.kill("worker")
    let_lapse()
    stack.start("worker")
    stack.wait_until(
        lambda: not Key.objects.exclude(state="completed").exists(), "all has ended", seconds=60
    )
    assert marks() == len(operations)
