"""The project's settings with the console on Django's own admin, under a strict content policy."""

from project.settings import *  # noqa: F403
from project.settings import IDEMPOTENCY as _IDEMPOTENCY
from project.settings import MIDDLEWARE as _MIDDLEWARE

ROOT_URLCONF = "tests.support.consolehost"
MIDDLEWARE = ["tests.support.consolehost.strict_policy", *_MIDDLEWARE]
IDEMPOTENCY = {**_IDEMPOTENCY, "ADMIN_BREAKERS": None, "TENANT": None}
