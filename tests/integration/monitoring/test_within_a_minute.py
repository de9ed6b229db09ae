"""Every kind of silence is alarmed within a minute, at the intervals that are the defaults, by real processes."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.integration.monitoring.test_really import SILENT, alive, scrape, when
from tests.support.alerting import EVERY, ROOT, fires_after
from tests.support.stack import Stack

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(300)]

MINUTE = 60.0
NEVER = "86400"


@dataclass(frozen=True)
class Silence:
    """What is done to a deployment in good health, whose marks grow old, the alert, and what /readyz/ says."""

    cause: Callable[[Stack], object]
    silent: tuple[str, ...]
    alert: str
    ready: tuple[str, str, str]


def replaced_by_an_idle_worker(stack: Stack) -> None:
    stack.kill("worker")
    stack.start_worker(queue="elsewhere")


def told_to_take_nothing(stack: Stack) -> None:
    """The worker stays connected and answers pings."""
    assert "no longer consuming" in celery(stack, "control", "cancel_consumer", "celery")
    assert "pong" in celery(stack, "inspect", "ping")


def celery(stack: Stack, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "celery", "-A", "project", *words],
        env=stack.environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout + done.stderr


def beat_without(name: str) -> Callable[[Stack], None]:
    """Return what starts beat again with a schedule in which this entry never fires."""

    def restart(stack: Stack) -> None:
        stack.kill("beat")
        stack.start("beat", environment={name: NEVER})
        # The others go on, however long its start took.
        when(stack, f'{SILENT}{{task="beat"}}', f'{SILENT}{{task="wake"}}', is_=0)

    return restart


WORKERS = ("wake", "reconcile")
SILENCES = {
    "the worker is frozen": Silence(
        lambda stack: stack.freeze("worker"),
        WORKERS,
        "IdempotencyWorkersSilent",
        ("warnings", "tasks", "silent: reconcile, wake"),
    ),
    "the worker is dead": Silence(
        lambda stack: stack.kill("worker"),
        WORKERS,
        "IdempotencyWorkersSilent",
        ("warnings", "tasks", "silent: reconcile, wake"),
    ),
    "the worker listens to another queue": Silence(
        replaced_by_an_idle_worker,
        WORKERS,
        "IdempotencyWorkersSilent",
        ("warnings", "tasks", "silent: reconcile, wake"),
    ),
    "the worker is connected, answers, and takes nothing": Silence(
        told_to_take_nothing,
        WORKERS,
        "IdempotencyWorkersSilent",
        ("warnings", "tasks", "silent: reconcile, wake"),
    ),
    "beat is dead": Silence(
        lambda stack: stack.kill("beat"),
        ("beat",),
        "IdempotencyBeatSilent",
        ("checks", "beat", "silent"),
    ),
    "beat is frozen": Silence(
        lambda stack: stack.freeze("beat"),
        ("beat",),
        "IdempotencyBeatSilent",
        ("checks", "beat", "silent"),
    ),
    "a schedule of the ledger never fires": Silence(
        beat_without("IDEMPOTENCY_RECONCILE_EVERY"),
        ("reconcile",),
        "IdempotencyTaskSilent",
        ("warnings", "tasks", "silent: reconcile"),
    ),
    "a schedule of the application never fires": Silence(
        beat_without("PAYMENTS_FOLLOW_EVERY"),
        ("follow-up",),
        "IdempotencyHostTaskSilent",
        ("warnings", "tasks", "silent: follow-up"),
    ),
}


@pytest.mark.parametrize("silence", SILENCES.values(), ids=SILENCES)
def test_silence_is_alarmed_within_a_minute(
    silence: Silence, live_stack: Stack, tmp_path: Path
) -> None:
    stack = live_stack
    (tmp_path / "metrics").mkdir()
    stack.environment |= {
        "PROMETHEUS_MULTIPROC_DIR": str(tmp_path / "metrics"),
        # The others are as shipped.
        "PAYMENTS_FOLLOW_EVERY": "5",
        "IDEMPOTENCY_PURGE_EVERY": "5",
    }
    assert not {name for name in os.environ if name.startswith("IDEMPOTENCY_")}
    stack.start("web", "worker", "beat")
    healthy = alive(stack)

    silence.cause(stack)
    begun = time.monotonic()
    fault = when(stack, *(f'{SILENT}{{task="{name}"}}' for name in silence.silent))
    noticed = time.monotonic() - begun
    # What grows old a moment later is not scraped yet, and must not fire another alert.
    time.sleep(3)
    fault = scrape(stack)
    fired = fires_after(fault, healthy=healthy, seconds=MINUTE)
    assert set(fired) == {silence.alert}
    # At worst the next scrape is a whole interval away.
    print(
        f"noticed after {noticed:.1f} s, alarmed after {noticed + EVERY + fired[silence.alert]:.1f} s"
    )
    assert noticed + EVERY + fired[silence.alert] <= MINUTE

    where, what, said = silence.ready
    assert stack.get("/readyz/").json()[where][what].startswith(said)
