"""A process does not outlive its starter, also when the starter is killed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from project import lifeline

SECONDS = 15.0
SLEEP = "import time; time.sleep(600)"


def wait_until(condition: Callable[[], bool]) -> bool:
    end = time.monotonic() + SECONDS
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def alive(pid: int) -> bool:
    """Return whether a process lives; one that nobody has reaped yet does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def starter(program: str, tmp_path: Path) -> tuple["subprocess.Popen[bytes]", int]:
    """Run a starter that runs one program and writes its process id down."""
    note = tmp_path / "pid"
    code = (
        "import os, pathlib, signal, subprocess, sys, time; from project import lifeline\n"
        f"{program}\n"
        f"draft = pathlib.Path({str(note)!r} + '.draft'); draft.write_text(str(pid))\n"
        f"draft.replace({str(note)!r}); time.sleep(600)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "DEBUG": "1"})
    assert wait_until(note.exists)
    return process, int(note.read_text())


STARTED = (
    f"command = lifeline.command([sys.executable, '-c', {SLEEP!r}], death=signal.SIGTERM)\n"
    "pid = subprocess.Popen(command, process_group=0).pid"
)
FORKED = (
    "pid = os.fork()\n"
    "if pid == 0:\n    os.setpgid(0, 0); lifeline.end_with_parent(); time.sleep(600)\n"
    "time.sleep(0.5)"
)


@pytest.mark.parametrize("program", [STARTED, FORKED], ids=["started", "forked"])
def test_process_ends_with_its_killed_starter(program: str, tmp_path: Path) -> None:
    process, pid = starter(program, tmp_path)
    assert alive(pid)
    process.kill()
    process.wait()
    assert wait_until(lambda: not alive(pid))


def test_program_gets_its_words_and_its_exit_code_comes_back() -> None:
    program = [sys.executable, "-c", "import sys; sys.exit(int(sys.argv[1]))", "7"]
    assert (
        subprocess.run(lifeline.command(program, death=signal.SIGTERM), check=False).returncode == 7
    )


def test_watching_in_between_ends_the_program_with_its_parent(tmp_path: Path) -> None:
    """How it works on systems whose kernel does not help: the same, with a process in between."""
    watching = (
        f'watcher = "from project.lifeline import watch; import signal, os; watch([{sys.executable!r}, '
        f"'-c', {SLEEP!r}], death=signal.SIGKILL, parent=os.getppid())\"\n"
        "pid = subprocess.Popen([sys.executable, '-c', watcher]).pid"
    )
    process, watcher = starter(watching, tmp_path)
    assert wait_until(lambda: bool(psutil.Process(watcher).children()))
    program = psutil.Process(watcher).children()[0].pid
    process.kill()
    process.wait()
    assert wait_until(lambda: not alive(program))
    assert wait_until(lambda: not alive(watcher))


def test_watching_passes_signals_on_and_returns_the_exit_code() -> None:
    program = (
        "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(5));"
        "print('up', flush=True); time.sleep(600)"
    )
    watcher = (
        "import os, signal, sys; from project.lifeline import watch;"
        f"sys.exit(watch([{sys.executable!r}, '-c', {program!r}],"
        " death=signal.SIGKILL, parent=os.getppid()))"
    )
    process = subprocess.Popen([sys.executable, "-c", watcher], stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout as output:
        assert output.readline() == b"up\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 5
