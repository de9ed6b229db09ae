"""What consumers do with the clients they have: each recipe sends one key, waits as told, and ends with the answer.

The recipes are files of their own, as a reader would copy them.
"""

import atexit
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pytest
import requests

from tests.recipes import by_tenacity, by_urllib3
from tests.support.faultserver import FaultServer, serving
from tests.support.scripted import Line, Script, keys, lost, problem

RECIPES = Path(__file__).parents[1] / "recipes"
BODY = '{"order_id": "881"}'

DONE: Line = (201, {"id": "p1"})
IN_PROGRESS = problem(409, "in-progress", after=1, retryable=True)
UNKNOWN = problem(504, "outcome-unknown", after=1, retryable=True)
BUSY = problem(503, "overloaded", after=1, retryable=True)

Recipe = Callable[[FaultServer, Path], tuple[int, str]]


def program(*words: str) -> Recipe:
    def run(server: FaultServer, key_file: Path) -> tuple[int, str]:
        # No proxy of the shell's, and no credentials.
        environment = {"PATH": os.environ["PATH"], "NO_PROXY": "*"}
        ended = subprocess.run(
            [*words, f"{server.url}/api/payments/", str(key_file), BODY],
            capture_output=True,
            text=True,
            env=environment,
            timeout=50,
            check=False,
        )
        return ended.returncode, ended.stdout + ended.stderr

    return run


@cache
def with_axios() -> Path:
    """Return a folder with the recipe for axios, and axios, of the versions that the lock file names."""
    home = Path(tempfile.mkdtemp(prefix="axios-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    for name in ("package.json", "package-lock.json", "pay_axios.mjs"):
        shutil.copy(RECIPES / name, home)
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("no npm is installed")
    quiet = ("--ignore-scripts", "--no-audit", "--no-fund")
    done = subprocess.run(
        [npm, "ci", *quiet], cwd=home, capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"npm cannot install axios here: {done.stderr[-300:]}")
    return home


def axios(server: FaultServer, key_file: Path) -> tuple[int, str]:
    return program("node", str(with_axios() / "pay_axios.mjs"))(server, key_file)


def library(pay: Callable[..., requests.Response]) -> Recipe:
    def run(server: FaultServer, key_file: Path) -> tuple[int, str]:
        if not key_file.exists():
            key_file.write_text("kept-with-the-intent")
        with requests.Session() as session:
            session.trust_env = False
            answer = pay(
                session,
                f"{server.url}/api/payments/",
                key=key_file.read_text(),
                order={"order_id": "881"},
            )
        return (0 if answer.ok else 22), f"{answer.status_code} {answer.text}"

    return run


PROGRAMS = [
    pytest.param(program("node", str(RECIPES / "pay.mjs")), id="fetch"),
    pytest.param(axios, id="axios", marks=pytest.mark.sampled(3)),
    pytest.param(program("sh", str(RECIPES / "pay.sh")), id="curl"),
]


@pytest.fixture(
    params=[
        *PROGRAMS,
        pytest.param(library(by_urllib3.pay), id="urllib3"),
        pytest.param(library(by_tenacity.pay), id="tenacity"),
    ]
)
def recipe(request: pytest.FixtureRequest) -> Recipe:
    made: Recipe = request.param
    return made


@pytest.mark.slow
def test_every_try_has_one_key_and_waits_as_it_is_told(recipe: Recipe, tmp_path: Path) -> None:
    with serving(Script(BUSY, lost, UNKNOWN, IN_PROGRESS, DONE)) as server:
        began = time.monotonic()
        code, said = recipe(server, tmp_path / "key")
        took = time.monotonic() - began
    assert code == 0, said
    assert '"p1"' in said
    assert len(keys(server)) == 5
    assert len(set(keys(server))) == 1
    assert took >= 3, "Retry-After is never shortened"


@pytest.mark.slow
def test_a_run_after_a_crash_has_the_same_key(recipe: Recipe, tmp_path: Path) -> None:
    with serving(Script(DONE)) as server:
        recipe(server, tmp_path / "key")
        recipe(server, tmp_path / "key")
    first, second = keys(server)
    assert first == second


@pytest.mark.slow
@pytest.mark.parametrize("run", PROGRAMS)
def test_without_a_key_nothing_is_sent(run: Recipe, tmp_path: Path) -> None:
    """A full disk leaves an empty file, of which curl made no header: each try was an operation of its own."""
    (tmp_path / "key").touch()
    with serving(Script(DONE)) as server:
        code, said = run(server, tmp_path / "key")
    assert code != 0
    assert "no key" in said.lower()
    assert server.requests == []


@pytest.mark.slow
@pytest.mark.parametrize("run", PROGRAMS)
def test_processes_that_begin_at_once_have_one_key(run: Recipe, tmp_path: Path) -> None:
    with serving(Script(DONE)) as server, ThreadPoolExecutor(6) as pool:
        ends = list(pool.map(lambda _: run(server, tmp_path / "key"), range(12)))
    assert [code for code, _ in ends] == [0] * 12
    assert len(keys(server)) == 12
    assert len(set(keys(server))) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["key"]


def test_tenacity_does_not_repeat_what_stops_the_program() -> None:
    """H5."""
    begun = []

    class Stopped(requests.Session):
        def post(self, *args: object, **kwargs: object) -> requests.Response:
            begun.append(args)
            raise KeyboardInterrupt

    with Stopped() as session, pytest.raises(KeyboardInterrupt):
        by_tenacity.pay(session, "http://127.0.0.1/", key="k", order={})
    assert len(begun) == 1
