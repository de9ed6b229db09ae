"""The settings as a fresh process reads them."""

import json
import os
import subprocess
import sys

import pytest

# Start-up alone: nothing here may need a server.
NOWHERE = {
    "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/nothing",
    "REDIS_URL": "redis://127.0.0.1:1/0",
}


def read(*names: str, **environment: str) -> dict[str, object]:
    """Return the named settings of a process with only this environment."""
    program = (
        "import json; from django.conf import settings;"
        f"print(json.dumps({{n: getattr(settings, n) for n in {names!r}}}, default=str))"
    )
    found: dict[str, object] = json.loads(start(program, **environment))
    return found


def start(program: str, **environment: str) -> str:
    """Run a program with only this environment; return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={
            "PATH": os.environ["PATH"],
            "DJANGO_SETTINGS_MODULE": "project.settings",
            **NOWHERE,
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ValueError(done.stderr.strip().rpartition("\n")[2])
    return done.stdout


def test_apps_are_set_up_without_a_server() -> None:
    assert start("import django; django.setup(); print('up')", DEBUG="1").strip() == "up"


def test_production_needs_a_secret_key() -> None:
    with pytest.raises(ValueError, match="SECRET_KEY must be set"):
        read("DEBUG")


def test_production_is_closed_by_default() -> None:
    found = read(
        "DEBUG",
        "ALLOWED_HOSTS",
        "SESSION_COOKIE_SECURE",
        "CSRF_COOKIE_SECURE",
        "SECURE_SSL_REDIRECT",
        SECRET_KEY="x" * 50,
    )
    assert found == {
        "DEBUG": False,
        "ALLOWED_HOSTS": [],
        "SESSION_COOKIE_SECURE": True,
        "CSRF_COOKIE_SECURE": True,
        "SECURE_SSL_REDIRECT": True,
    }


def test_apps_get_what_the_environment_says_and_no_more() -> None:
    silent = read("IDEMPOTENCY", "PAYMENTS", DEBUG="1")
    found = read(
        "IDEMPOTENCY",
        "PAYMENTS",
        DEBUG="1",
        IDEMPOTENCY_LEASE="60",
        PAYMENTS_GATEWAY_KEYED="0",
    )
    said: dict[str, dict[str, object]] = {
        "IDEMPOTENCY": {"LEASE": 60.0},
        "PAYMENTS": {"GATEWAY_KEYED": False},
    }
    for name, values in said.items():
        before = silent[name]
        assert isinstance(before, dict)
        assert found[name] == {**before, **values}
        assert not before.keys() & values.keys()


def test_malformed_value_stops_the_start_by_name() -> None:
    with pytest.raises(ValueError, match="IDEMPOTENCY_LEASE='soon'"):
        read("DEBUG", DEBUG="1", IDEMPOTENCY_LEASE="soon")


def test_web_publishes_with_one_short_try_and_a_worker_waits_for_its_broker() -> None:
    names = ("CELERY_BROKER_TRANSPORT_OPTIONS",)
    web = read(*names, "CELERY_TASK_PUBLISH_RETRY", DEBUG="1", PROCESS_ROLE="web")
    assert web["CELERY_TASK_PUBLISH_RETRY"] is False
    options = web["CELERY_BROKER_TRANSPORT_OPTIONS"]
    assert isinstance(options, dict)
    assert options["max_retries"] == 0
    assert options["socket_timeout"] <= 1
    worker = read(*names, DEBUG="1", PROCESS_ROLE="worker")["CELERY_BROKER_TRANSPORT_OPTIONS"]
    assert isinstance(worker, dict)
    assert "max_retries" not in worker


def test_time_limits_are_nested() -> None:
    """HTTP timeout < own deadline < hard limit < lease < visibility timeout (R35)."""
    from django.conf import settings

    from idempotency.conf import conf

    limit = settings.CELERY_TASK_TIME_LIMIT
    assert conf.OPERATION_TIME_LIMIT < limit < conf.LEASE
    assert settings.CELERY_BROKER_TRANSPORT_OPTIONS["visibility_timeout"] > conf.LEASE
    assert settings.CELERY_TASK_SOFT_TIME_LIMIT is None


def test_other_broker_gets_options_of_its_own() -> None:
    found = read(
        "CELERY_BROKER_TRANSPORT_OPTIONS",
        DEBUG="1",
        PROCESS_ROLE="worker",
        CELERY_BROKER_URL="amqp://127.0.0.1:1//",
    )
    assert found["CELERY_BROKER_TRANSPORT_OPTIONS"] == {"confirm_publish": True}


def test_timeouts_differ_by_role_and_can_be_left_out_for_a_pooler() -> None:
    found = {role: options(PROCESS_ROLE=role)["options"] for role in ("web", "worker", "command")}
    assert found == {
        "web": "-c statement_timeout=10000 -c lock_timeout=5000",
        "worker": "-c statement_timeout=15000 -c lock_timeout=5000",
        "command": "-c statement_timeout=0 -c lock_timeout=10000",
    }
    assert options(DATABASE_URL=f"{NOWHERE['DATABASE_URL']}?options=")["options"] == ""


def test_behind_a_pooler_nothing_is_kept_in_a_session() -> None:
    found = read("DATABASES", DEBUG="1", DATABASE_POOLED="1")["DATABASES"]["default"]  # type: ignore[index]
    assert (found["OPTIONS"]["options"], found["DISABLE_SERVER_SIDE_CURSORS"]) == ("", True)
    assert found["OPTIONS"]["prepare_threshold"] is None
    direct = read("DATABASES", DEBUG="1")["DATABASES"]["default"]  # type: ignore[index]
    assert not direct["DISABLE_SERVER_SIDE_CURSORS"]
    assert direct["OPTIONS"]["prepare_threshold"] == 5


def test_unknown_role_is_refused() -> None:
    with pytest.raises(ValueError, match="PROCESS_ROLE='wurker'"):
        options(PROCESS_ROLE="wurker")


def options(**environment: str) -> dict[str, object]:
    databases = read("DATABASES", DEBUG="1", **environment)["DATABASES"]
    assert isinstance(databases, dict)
    found: dict[str, object] = databases["default"]["OPTIONS"]
    return found
