"""One measured process: a guise of the endpoint in an environment of its own."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Self

from benchmarks.host.variants import Variant
from benchmarks.rig.environments import environment

ROOT = Path(__file__).resolve().parents[2]


def python_of(variant: Variant) -> Path:
    """Return the interpreter that has what the variant needs. Raises: CannotInstall."""
    if not variant.packages:
        return Path(sys.executable)
    return environment(variant.name, variant.packages)


def surroundings(variant: Variant, database_url: str, redis_url: str) -> dict[str, str]:
    """Return the environment variables of its process."""
    return {
        "PATH": os.environ["PATH"],
        "BENCHMARK_VARIANT": variant.name,
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
    }


class SubjectFailed(Exception):
    """The measured process ended; the message is the end of what it wrote."""


class Subject:
    """A process that serves one variant and measures itself."""

    def __init__(
        self,
        variant: Variant,
        *,
        database_url: str,
        redis_url: str,
        module: str = "benchmarks.host.serve",
    ) -> None:
        self._errors = Path(tempfile.mkstemp(prefix="benchmark-", suffix=".log")[1])
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                [python_of(variant), "-m", module],
                cwd=ROOT,
                env=surroundings(variant, database_url, redis_url),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    def do(self, what: str, **how: Any) -> dict[str, Any]:
        """Have it do something and return its report.

        Raises:
            SubjectFailed: it ended instead.
        """
        self.ask(what, **how)
        return self.report()

    def ask(self, what: str, **how: Any) -> None:
        """Have it do something, and do not wait."""
        assert self._process.stdin is not None
        # If it has ended, its last words say more.
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps({"do": what, **how}) + "\n")
            self._process.stdin.flush()

    def report(self) -> dict[str, Any]:
        """Wait for what it was asked to do, and return its report.

        Raises:
            SubjectFailed: it ended instead.
        """
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SubjectFailed(self._errors.read_text(errors="replace").strip()[-600:])
        report: dict[str, Any] = json.loads(line)
        return report

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._errors.unlink()
