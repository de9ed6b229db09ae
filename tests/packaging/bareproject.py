"""A project of somebody else's: made by `django-admin startproject`, with the built wheel and nothing else of ours."""

import os
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import requests

from project.embedded.server import HOST, free_port

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
START_SECONDS = 90.0

APPS = 'INSTALLED_APPS += ["rest_framework", "idempotency", "shop"]\n'
RUNNER = 'TEST_RUNNER = "idempotency.testing.runner.Runner"\n'
QUICK = 'PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]\n'
ROUTES = """
from django.urls import include
from shop.views import Letters, Orders

urlpatterns += [path("orders/", Orders.as_view()), path("letters/", Letters.as_view())]
urlpatterns += [path("", include("idempotency.urls"))]
"""


def build_wheel(target: Path) -> Path:
    """Build the wheel as `make package` does."""
    _run([sys.executable, "-m", "uv", "--quiet", "build", "--wheel", "--out-dir", target, ROOT])
    (wheel,) = target.glob("*.whl")
    return wheel


class Bare:
    """The project in a folder of its own, with an environment of its own."""

    def __init__(self, *, home: Path, wheel: Path, database: dict[str, object]) -> None:
        self.home = home / "theirs"
        self.python = home / "environment" / "bin" / "python"
        self._environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("DJANGO", "PYTHON", "IDEMPOTENCY", "PAYMENTS", "DATABASE"))
        }
        _run([sys.executable, "-m", "uv", "--quiet", "venv", home / "environment"])
        self.pip("install", wheel, "psycopg[binary]")
        self.home.mkdir()
        self.run("-m", "django", "startproject", "theirs", self.home)
        self._database = database

    @property
    def settings(self) -> Path:
        """Return the settings module."""
        return self.home / "theirs" / "settings.py"

    def add_the_ledger(self) -> None:
        """Make the whole change that installing takes, and an app that uses it."""
        shutil.copytree(HERE / "bare", self.home / "shop")
        self._append(self.settings, APPS + RUNNER)
        self._append(self.home / "theirs" / "urls.py", ROUTES)

    def settings_with(self, text: str) -> str:
        """Return the name of a settings module that says something more."""
        name = f"with_{uuid.uuid4().hex}"
        more = self.settings.with_name(f"{name}.py")
        more.write_text(f"from theirs.settings import *\n{text}\n")
        return f"theirs.{name}"

    def use_postgres(self) -> None:
        """Name the database, which `startproject` leaves at SQLite."""
        self._append(self.settings, f'DATABASES = {{"default": {self._database!r}}}\n{QUICK}')

    def remove_the_ledger(self) -> None:
        """Take the change back."""
        for file in (self.settings, self.home / "theirs" / "urls.py"):
            text = file.read_text()
            file.write_text(text.replace(APPS + RUNNER, "").replace(ROUTES, ""))
        shutil.rmtree(self.home / "shop")

    def pip(self, *words: str | Path) -> str:
        """Run uv's pip in the project's environment."""
        command, *rest = words
        return _run(
            [sys.executable, "-m", "uv", "--quiet", "pip", command, "--python", self.python, *rest],
            cwd=self.python.parent,
        )

    def run(self, *words: str | Path, fails: bool = False) -> str:
        """Run a Python program there and return what it wrote."""
        return _run([self.python, *words], cwd=self.home, env=self._environment, fails=fails)

    def manage(self, *words: str, fails: bool = False) -> str:
        """Run a management command."""
        return self.run("manage.py", *words, fails=fails)

    @contextmanager
    def server(self) -> Iterator[str]:
        """Run the development server; yields its address."""
        port = free_port()
        process = subprocess.Popen(
            [self.python, "manage.py", "runserver", "--noreload", f"{HOST}:{port}"],
            cwd=self.home,
            env=self._environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            address = f"http://{HOST}:{port}"
            wait_for(f"{address}/problems/policy/")
            yield address
        finally:
            process.terminate()
            process.wait(10)

    def _append(self, file: Path, text: str) -> None:
        with file.open("a") as end:
            end.write(text)


def _run(
    command: list[str | Path],
    *,
    cwd: Path = ROOT,
    env: dict[str, str] | None = None,
    fails: bool = False,
) -> str:
    done = subprocess.run(
        command,
        cwd=cwd,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert bool(done.returncode) is fails, done.stdout
    return done.stdout


def wait_for(address: str) -> None:
    """Wait until a server answers there."""
    end = time.monotonic() + START_SECONDS
    while True:
        try:
            requests.get(address, timeout=5).raise_for_status()
        except requests.ConnectionError:
            assert time.monotonic() < end, f"nothing answers at {address}"
            time.sleep(0.05)
        else:
            return
