"""The same, of a host that keeps the results of its own tasks."""

import os

from tests.support.poison.settings import *  # noqa: F403

CELERY_RESULT_BACKEND = os.environ["TEST_RESULT_BACKEND"]
CELERY_TASK_IGNORE_RESULT = False
