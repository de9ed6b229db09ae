"""An environment of its own for each library: pinned, made once by uv, and kept in the user's cache."""

import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

_SAME = ("django", "djangorestframework", "psycopg", "psycopg-binary", "redis")
"""What every library is measured with, in the version that this interpreter has."""


class CannotInstall(Exception):
    """A library does not install here; the message is the resolver's."""


def environment(name: str, packages: Sequence[str]) -> Path:
    """Return the interpreter of an environment that has the packages.

    Beside the same Django, REST framework and drivers as ours; where the library forbids those, beside what it allows.

    Raises:
        CannotInstall: neither can be had.
    """
    wanted = "\n".join([sys.version, *packages, *_pins()])
    home = _cache() / name
    python, stamp = home / "bin" / "python", home / "installed"
    if stamp.exists() and stamp.read_text() == wanted:
        return python
    _uv("venv", "--clear", "--python", sys.executable, str(home))
    try:
        _install(python, [*packages, *_pins()])
    except CannotInstall:
        _install(python, [*packages, *_SAME])
    stamp.write_text(wanted)
    return python


def _pins() -> list[str]:
    return [f"{name}=={version(name)}" for name in _SAME]


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "idempotency-ledger" / "benchmarks"


def _install(python: Path, packages: Sequence[str]) -> None:
    _uv("pip", "install", "--python", str(python), *packages)


def _uv(*words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "uv", "--quiet", *words], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise CannotInstall(" ".join(done.stderr.split())[-400:])
