"""The processes of the tests are the real ones: they start, die, and start again."""

import pytest
import requests

from tests.support.stack import Stack

pytestmark = pytest.mark.slow


def test_web_answers_from_the_database_of_the_test(live_stack: Stack) -> None:
    live_stack.start("web")
    checks = live_stack.get("/readyz/").json()["checks"]
    assert checks["database"] == "ok"
    assert checks["store"] == "ok"


def test_ready_only_while_beat_publishes(live_stack: Stack) -> None:
    live_stack.start("web")
    assert live_stack.get("/readyz/").status_code == 503
    live_stack.start("beat")
    live_stack.wait_until(
        lambda: live_stack.get("/readyz/").status_code == 200, "beat shows that it is alive"
    )


def test_killed_web_frees_its_port_for_the_next(live_stack: Stack) -> None:
    live_stack.start_web(workers=2)
    first = live_stack["web"].pid
    live_stack.kill("web")
    with pytest.raises(requests.ConnectionError):
        live_stack.get("/healthz/")
    live_stack.start_web(workers=2)
    assert live_stack.get("/healthz/").json() == {"status": "ok"}
    assert live_stack["web"].pid != first


def test_frozen_web_answers_after_the_thaw(live_stack: Stack) -> None:
    live_stack.start("web")
    live_stack.freeze("web")
    with pytest.raises(requests.Timeout):
        live_stack.get("/healthz/", timeout=1)
    live_stack.thaw("web")
    assert live_stack.get("/healthz/").status_code == 200


def test_beat_and_worker_run_the_sweeps(live_stack: Stack) -> None:
    live_stack.start(
        "worker", "beat", environment={"IDEMPOTENCY_WAKE_EVERY": "0.5", "LOG_LEVEL": "INFO"}
    )
    live_stack.wait_until(
        lambda: "idempotency.tasks.wake" in live_stack.logs("worker").partition(" ready.")[2],
        "the worker runs what beat has sent",
    )


def test_part_that_cannot_start_is_reported_with_its_log(live_stack: Stack) -> None:
    with pytest.raises(RuntimeError, match="IDEMPOTENCY_LEASE"):
        live_stack.start("web", environment={"IDEMPOTENCY_LEASE": "soon"})


BROKEN = {
    "DEBUG": "0",
    "SECRET_KEY": "k" * 60,
    "ALLOWED_HOSTS": "127.0.0.1",
    "PAYMENTS_GATEWAY_API_KEY": "sk_test_x",
    "IDEMPOTENCY_RETRY_BASE": "9",
}


def test_a_configuration_that_cannot_work_stops_every_part(live_stack: Stack) -> None:
    for part in ("web", "worker"):
        with pytest.raises(RuntimeError, match=r"cannot work: idempotency\.E006"):
            live_stack.start(part, environment=BROKEN)
    # It says that it begins before it looks.
    live_stack.start("beat", environment=BROKEN)
    live_stack.wait_until(lambda: not live_stack["beat"].running, "beat has ended")
    assert "cannot work: idempotency.E006" in live_stack.logs("beat")


def test_in_debug_it_is_told_as_loudly_and_stops_nothing_as_a_warning_does(
    live_stack: Stack,
) -> None:
    live_stack.start(
        "web", environment={"IDEMPOTENCY_RETRY_BASE": "9", "IDEMPOTENCY_KEY_TTL": "259199"}
    )
    said = live_stack.logs("web")
    assert '"level": "CRITICAL", "logger": "project.ready"' in said
    assert "idempotency.E006: RETRY_BASE must not be longer" in said
    assert "idempotency.W003" in said
