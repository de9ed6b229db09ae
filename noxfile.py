"""The versions of Python, Django and PostgreSQL against which the app is tried.

    nox                                           every version that is installed
    nox -s "app(python='3.13', django='6.1')"
    nox -s postgres15                             on Debian's PostgreSQL 15, where it is installed
    nox -s rabbitmq                               the tests of deferred work on Debian's RabbitMQ, likewise

Each session has an environment of its own. The pinned versions are those of the requirements; only Django differs, and
what it brings with it. The deployment's own suite, `make test`, is the full one.
"""

from pathlib import Path

import nox

nox.options.default_venv_backend = "uv|virtualenv"
nox.options.error_on_missing_interpreters = False
nox.options.sessions = ["app", "postgres15", "rabbitmq"]

DJANGO = {"5.2": "Django>=5.2.19,<5.3", "6.0": "Django>=6.0,<6.1", "6.1": "Django>=6.1,<6.2"}
VERSIONS = [
    (python, django)
    for python in ("3.11", "3.12", "3.13")
    for django in DJANGO
    # Django 6 needs Python 3.12.
    if not (python == "3.11" and django != "5.2")
]
QUICK = ("tests/unit/http", "tests/unit/checks", "tests/integration/core", "tests/hosts")
DEFERRED = ("tests/faults/operations", "tests/integration/test_stack.py")
DEBIAN_RABBITMQ = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
DEBIAN_15 = Path("/usr/lib/postgresql/15/bin")


@nox.session(tags=["app"])
@nox.parametrize("python,django", VERSIONS)
def app(session: nox.Session, django: str) -> None:
    """Run the quick part of the suite, with warnings as errors, on one Python and one Django."""
    _install(session, django)
    _test(session, {})


@nox.session(python="3.12")
def postgres15(session: nox.Session) -> None:
    """Run it on PostgreSQL 15, the oldest that is supported."""
    if not DEBIAN_15.exists():
        session.skip("PostgreSQL 15 is not installed")
    _install(session, "5.2")
    _test(session, {"TEST_POSTGRES": str(DEBIAN_15)})


@nox.session(python="3.12")
def rabbitmq(session: nox.Session) -> None:
    """Run the tests of deferred work with RabbitMQ as the broker."""
    if not DEBIAN_RABBITMQ.exists():
        session.skip("RabbitMQ is not installed: apt install rabbitmq-server")
    _install(session, "5.2")
    tests = session.posargs or ["-q", "-m", "", *DEFERRED]
    session.run("python", "-m", "pytest", *tests, env={"TEST_BROKER": "rabbitmq"})


@nox.session
def audit(session: nox.Session) -> None:
    """Ask the Python Package Index for known vulnerabilities; fails where a mirror has none to tell."""
    session.install("pip-audit>=2.10")
    session.run(
        "pip-audit", "--strict", "--require-hashes", "--disable-pip", "-r", "requirements.txt"
    )


def _install(session: nox.Session, django: str) -> None:
    lines = Path("requirements-dev.txt").read_text().splitlines()
    # The hashes hold for one Django only.
    pins = [line.rstrip(" \\") for line in lines if line and line[0] not in " #"]
    pinned = Path(session.create_tmp()) / "pinned.txt"
    pinned.write_text(
        "\n".join(
            [pin for pin in pins if not pin.lower().startswith("django==")] + [DJANGO[django]]
        )
    )
    session.install("-r", str(pinned))


def _test(session: nox.Session, environment: dict[str, str]) -> None:
    session.run("python", "-c", "import django, sys; print(sys.version, django.__version__)")
    tests = session.posargs or ["-q", "-m", "not slow and not chaos and not browser", *QUICK]
    session.run("python", "-m", "pytest", *tests, env=environment)
