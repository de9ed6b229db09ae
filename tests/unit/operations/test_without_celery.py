"""The base install works without Celery: only the sweep finds what is due, and nothing else changes."""

import subprocess
import sys

SCRIPT = """
import sys
sys.modules["celery"] = None  # as if it were not installed

from django.conf import settings
settings.configure(
    SECRET_KEY="only-for-this-test",
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "idempotency"],
    DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", "NAME": "nothing"}},
    ROOT_URLCONF="idempotency.urls",
)
import django
django.setup()

from idempotency.checks import check_celery
from idempotency.exceptions import Misuse
from idempotency.operations import idempotent_task, wake

assert check_celery() == []
wake.publish(())
assert wake.current_message_id() is None
try:
    idempotent_task()(lambda: None)()
except Misuse as error:
    assert "give @idempotent_task a key" in str(error)
else:
    raise AssertionError
try:
    import idempotency.tasks
except ImportError as error:
    assert "celery" in str(error)
print("works")
"""


def test_without_celery_all_but_the_tasks_can_be_imported() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False, timeout=50
    )
    assert (done.stdout, done.returncode) == ("works\n", 0), done.stderr
