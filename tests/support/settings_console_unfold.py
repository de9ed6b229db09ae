"""The project's settings with the console under django-unfold, whose own pages need inline scripts and styles."""

from project.settings import *  # noqa: F403
from project.settings import IDEMPOTENCY as _IDEMPOTENCY
from project.settings import INSTALLED_APPS as _INSTALLED_APPS

INSTALLED_APPS = ["unfold", *_INSTALLED_APPS]
ROOT_URLCONF = "tests.support.consolehost"
IDEMPOTENCY = {**_IDEMPOTENCY, "ADMIN_BREAKERS": None, "TENANT": None}
