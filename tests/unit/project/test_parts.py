import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from project import parts
from project.parts import Part, Process

SECONDS = 15.0
STAY = ("-c", "import time; time.sleep(600)")


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Process]]:
    made: list[Process] = []

    def start(*words: str) -> Process:
        process = Process(
            Part("web", words, {"OWN": "yes"}), logs=tmp_path, environment={}, pids=tmp_path
        )
        made.append(process)
        process.start()
        return process

    yield start
    for process in made:
        process.end()


def test_pid_is_in_a_file_while_it_runs(make: Callable[..., Process], tmp_path: Path) -> None:
    process = make(*STAY)
    assert (tmp_path / "web.pid").read_text() == f"{process.pid}\n"
    process.end()
    assert not (tmp_path / "web.pid").exists()
    assert not process.running


def test_words_go_to_the_log_and_environment_is_its_own(
    make: Callable[..., Process], tmp_path: Path
) -> None:
    make("-c", "import os; print(os.environ['OWN'], 'HOME' in os.environ)").wait(SECONDS)
    assert (tmp_path / "web.log").read_text() == "yes False\n"


def test_dead_process_starts_again_after_a_pause_that_grows(
    make: Callable[..., Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr("project.parts.time.monotonic", lambda: now[0])
    process = make("-c", "raise SystemExit(3)")
    pauses = []
    for _ in range(7):
        assert process.wait(SECONDS)
        said = process.keep_alive()
        assert said.startswith("died (exit code 3); starts again in ")
        pauses.append(float(said.split()[-2]))
        now[0] += pauses[-1] - 0.01
        assert process.keep_alive() == ""
        now[0] += 0.02
        assert process.keep_alive() == "started again"
    assert pauses == [0.5, 1, 2, 4, 8, 15, 15]


def test_pause_is_short_again_after_a_good_run(
    make: Callable[..., Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr("project.parts.time.monotonic", lambda: now[0])
    process = make("-c", "raise SystemExit(3)")
    for _ in range(3):
        assert process.wait(SECONDS)
        process.keep_alive()
        now[0] += 16
        process.keep_alive()
    now[0] += parts.SETTLED_SECONDS + 1
    assert process.wait(SECONDS)
    assert process.keep_alive().endswith("starts again in 0.5 s")


def test_killed_process_takes_its_children_along(
    make: Callable[..., Process], tmp_path: Path
) -> None:
    lock = tmp_path / "lock"
    child = f"import fcntl, time; f = open({str(lock)!r}, 'w'); fcntl.flock(f, 2); time.sleep(600)"
    process = make(
        "-c", f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    )
    wait_until(lambda: lock.exists() and not free(lock))
    process.signal(signal.SIGKILL, group=False)
    assert process.wait(SECONDS)
    assert "SIGKILL" in process.keep_alive()
    wait_until(lambda: free(lock))


def free(lock: Path) -> bool:
    import fcntl

    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def test_long_log_is_set_aside(
    make: Callable[..., Process], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "LOG_BYTES", 10)
    (tmp_path / "web.log").write_text("x" * 11)
    make("-c", "print('new')").wait(SECONDS)
    assert (tmp_path / "web.log").read_text() == "new\n"
    assert (tmp_path / "web.log.1").read_text() == "x" * 11


def test_simulator_gets_exactly_its_flags(tmp_path: Path) -> None:
    part = parts.simulator(
        port=1, data=tmp_path, webhook_url="http://h/w/", webhook_secret="s", keys=False
    )
    assert part.words == [
        *("-m", "payments.simulator", "--host", "127.0.0.1", "--port", "1"),
        *("--data-dir", str(tmp_path), "--webhook-url", "http://h/w/", "--webhook-secret", "s"),
        "--no-keys",
    ]
    assert sys.executable not in part.words
