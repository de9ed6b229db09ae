"""The CPU that processes have used, as Linux tells it."""

import contextlib
import os
from pathlib import Path

_PROCESSES = Path("/proc")


def seconds_of(*pids: int) -> float:
    """Return the CPU seconds of these processes and all below them, those that ended included; 0 other than on Linux.

    Source: proc_pid_stat(5).
    """
    children: dict[int, list[int]] = {}
    ticks: dict[int, int] = {}
    for entry in _PROCESSES.glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            pid = int(entry.parent.name)
            # What follows the name in brackets: state, parent, …; time as user and system, then of what has ended.
            words = entry.read_text().rpartition(") ")[2].split()
            ticks[pid] = sum(map(int, words[11:15]))
            children.setdefault(int(words[1]), []).append(pid)
    total, left = 0, list(pids)
    while left:
        pid = left.pop()
        total += ticks.get(pid, 0)
        left += children.get(pid, [])
    return total / os.sysconf("SC_CLK_TCK")
