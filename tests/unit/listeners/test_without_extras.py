"""The base install works without Prometheus, OpenTelemetry and Django's admin: nothing here needs them."""

import subprocess
import sys

SCRIPT = """
import sys
for name in ("prometheus_client", "opentelemetry"):
    sys.modules[name] = None  # as if it were not installed

from django.conf import settings
settings.configure(
    SECRET_KEY="only-for-this-test",
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "idempotency"],
    DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", "NAME": "nothing"}},
    ROOT_URLCONF="idempotency.urls",
)
import django
django.setup()

from django.core.management import call_command
from idempotency import telemetry, tracing
telemetry.emit(telemetry.KeyMet("payments.create", "replay"))
with tracing.span("run", of="", operation="x"):
    tracing.mark(outcome="x")
    tracing.note("x")
    tracing.link("")
assert tracing.current("what the caller sent") == "what the caller sent"
call_command("idempotency_inspect", "--routes", skip_checks=True)
"""


def test_everything_works_without_the_extras() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert "0 unsafe route(s)" in done.stdout
