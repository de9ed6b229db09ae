"""The room as a stranger's program sees it."""

import subprocess
import sys

import pytest

from idempotency import resilience


def test_it_imports_no_framework_driver_or_client() -> None:
    """In a process of its own, since this one has imported everything."""
    program = (
        "import sys, idempotency.resilience\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    foreign = {
        *("django", "rest_framework", "celery", "billiard", "kombu", "psycopg", "redis", "valkey"),
        *("httpx2", "httpcore2", "requests", "urllib3", "stripe", "grpc", "confluent_kafka"),
    }
    assert foreign.isdisjoint(done.stdout.split())


@pytest.mark.parametrize(("module", "extra"), [("httpx2", "http"), ("redis", "redis")])
def test_a_missing_library_is_named_with_the_extra_that_brings_it(module: str, extra: str) -> None:
    program = (
        f"import sys; sys.modules[{module!r}] = None\n"
        "import idempotency.resilience as room\n"
        + (
            "room.http_client()"
            if module == "httpx2"
            else "room.SharedStore.connect('redis://127.0.0.1:1')"
        )
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert f"the extra `{extra}`" in done.stderr


def test_everything_in_the_door_is_there() -> None:
    assert all(hasattr(resilience, name) for name in resilience.__all__)
    with pytest.raises(AttributeError, match="no attribute 'guard_everything'"):
        _ = resilience.guard_everything
