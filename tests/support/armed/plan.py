"""What a key says of the fault that strikes its run, and the memory that it did."""

import os
import time
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from idempotency import faultpoints

HOME = "ARMED_HOME"
_MARK = "~"


def armed_key(name: str, *, role: str, point: str, action: str) -> str:
    """Return a key under which a run is struck."""
    return _MARK.join((name, role, point, action))


@dataclass
class Plan:
    """One fault that is to strike: at the nth passage of a point."""

    key: str
    point: str
    nth: int
    action: str
    passed: int = field(default=0, init=False)

    @classmethod
    def of(cls, key: str) -> "Plan | None":
        """Read the plan for this kind of process, or None."""
        words = key.split(_MARK)
        if len(words) != 4 or words[1] != os.environ.get("PROCESS_ROLE"):
            return None
        point, _, nth = words[2].partition(".")
        return cls(key, point, int(nth or 1), words[3])

    def strike(self, point: str) -> None:
        """Act where this is the point and the passage, for the first time under this key."""
        if point != self.point:
            return
        self.passed += 1
        if self.passed == self.nth and _first_time(self.key):
            os.environ[faultpoints.VARIABLE] = f"{point}:{self.action}"
            # Once per process is the product's rule; once per key is ours.
            faultpoints._spent = False
            with faultpoints.asked_for(point):
                faultpoints.reach(point)


@dataclass(frozen=True)
class Struck:
    """Where and when a key's fault has struck."""

    pid: int
    at: float


def struck(home: Path, key: str) -> Struck | None:
    """Return where and when the key's fault has struck, or None: not yet."""
    note = _note(home, key)
    words = note.read_text().split() if note.exists() else []
    return Struck(int(words[0]), float(words[1])) if len(words) == 2 else None


def _first_time(key: str) -> bool:
    try:
        with _note(Path(os.environ[HOME]), key).open("x") as note:
            note.write(f"{os.getpid()} {time.time()}")
    except FileExistsError:
        return False
    return True


def _note(home: Path, key: str) -> Path:
    return home / sha256(key.encode()).hexdigest()
