"""The poison host with a hard limit that a test can wait for."""

from tests.support.poison.settings import *  # noqa: F403

CELERY_TASK_TIME_LIMIT = 3
