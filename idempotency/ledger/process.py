"""Which process may still send: its identity, written with each sender, and the proof that it is dead (R36).

A process is proven dead only where the proof is certain: same boot, same PID namespace, and no such process with that
start time (a zombie sends nothing either). Anything else, a different host included, is "not proven".
"""

import os
import socket
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_PROC = Path("/proc")
_GONE = frozenset("ZX")


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """What tells one process from every other, over reboots, containers and reused process ids."""

    host: str
    boot_id: str
    pid_namespace: str
    pid: int
    started: str
    """Kernel ticks after boot, from /proc/PID/stat; "" where there is no /proc."""

    def is_proven_dead(self) -> bool:
        """Whether it is certain that this process sends nothing any more."""
        here = current_process()
        known = self.boot_id and self.pid_namespace and self.started
        same_place = (self.boot_id, self.pid_namespace) == (here.boot_id, here.pid_namespace)
        if not known or not same_place:
            return False
        stat = _stat(self.pid)
        if stat is None:
            return not _exists(self.pid)
        return stat.started != self.started or stat.state in _GONE


def current_process() -> ProcessIdentity:
    """Return the identity of this process; a forked child gets its own."""
    return _identity_of(os.getpid())


@cache
def _identity_of(pid: int) -> ProcessIdentity:
    stat = _stat(pid)
    return ProcessIdentity(
        host=socket.gethostname()[:100],
        boot_id=_read(_PROC / "sys/kernel/random/boot_id"),
        pid_namespace=_namespace(),
        pid=pid,
        started=stat.started if stat else "",
    )


@dataclass(frozen=True, slots=True)
class _Stat:
    state: str
    started: str


def _stat(pid: int) -> _Stat | None:
    raw = _read(_PROC / str(pid) / "stat")
    if not raw:
        return None
    # The command name is in parentheses and may hold anything; what follows the last one is fixed (proc(5)).
    fields = raw.rpartition(")")[2].split()
    return _Stat(state=fields[0], started=fields[19])


def _exists(pid: int) -> bool:
    """Whether there is such a process: /proc may be mounted so that it hides those of other users (hidepid)."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _namespace() -> str:
    try:
        return str((_PROC / "self/ns/pid").readlink())[:40]
    except OSError:
        return ""
