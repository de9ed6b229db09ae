"""Make sure that a process does not outlive the one that started it.

    python project/lifeline.py --signal INT --parent 4711 [--uid 65534 --gid 65534] -- postgres …

becomes the program after the dash, which then gets the signal when its parent is gone. On Linux the
kernel sees to that; elsewhere this process stays in between, watches, and passes signals on.
Standard library only: it runs before anything else is there.
"""

import argparse
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence

PR_SET_PDEATHSIG = 1
POLL_SECONDS = 0.5
# What whoever watches passes on to the program.
FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)


def command(
    program: Sequence[str], *, death: signal.Signals, uid: int | None = None, gid: int | None = None
) -> list[str]:
    """Return the command that runs the program for as long as the calling process lives.

    The kernel counts the calling *thread* as the parent: start programs from the main thread.
    """
    drop = [] if uid is None else ["--uid", str(uid), "--gid", str(gid)]
    signal_name = death.name.removeprefix("SIG")
    parent = str(os.getpid())
    # -I -S: neither the environment nor installed packages have a say in this step.
    interpreter = [sys.executable, "-I", "-S", __file__]
    return [*interpreter, "--signal", signal_name, "--parent", parent, *drop, "--", *program]


def end_with_parent() -> None:
    """End this process, by force, as soon as its parent is gone: for children made by fork."""
    parent = os.getppid()
    if sys.platform == "linux":
        _ask_kernel(signal.SIGKILL, parent)
    else:
        threading.Thread(target=_watch_and_kill, args=(parent,), daemon=True).start()


def main() -> None:
    """Become the program on the command line, or watch over it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--signal", required=True)
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--uid", type=int)
    parser.add_argument("--gid", type=int)
    dash = sys.argv.index("--")
    program = sys.argv[dash + 1 :]
    options = parser.parse_args(sys.argv[1:dash])
    death = signal.Signals[f"SIG{options.signal}"]
    if options.uid is not None:
        os.setgroups([])
        os.setgid(options.gid)
        os.setuid(options.uid)
    if sys.platform == "linux":
        # After the change of user, which would clear it.
        _ask_kernel(death, options.parent)
        os.execvp(program[0], program)
    sys.exit(watch(program, death=death, parent=options.parent))


def watch(program: Sequence[str], *, death: signal.Signals, parent: int) -> int:
    """Run the program, pass signals on, end it when the parent is gone; return its exit code."""
    child = subprocess.Popen(program)
    for number in FORWARDED:
        signal.signal(number, lambda received, _frame: child.send_signal(received))
    while True:
        try:
            return child.wait(POLL_SECONDS)
        except subprocess.TimeoutExpired:
            if os.getppid() != parent:
                child.send_signal(death)
                return child.wait()


def _ask_kernel(death: signal.Signals, parent: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, int(death), 0, 0, 0)
    # The parent may have ended before the kernel was asked.
    if os.getppid() != parent:
        os.kill(os.getpid(), death)


def _watch_and_kill(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(POLL_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
