"""The deployment's settings with this app added, and a time limit of tasks that fits a short lease."""

import os

from project import settings as deployed

for _name in dir(deployed):
    if _name.isupper():
        globals()[_name] = getattr(deployed, _name)

INSTALLED_APPS = [*deployed.INSTALLED_APPS, "tests.support.armed"]
MIDDLEWARE = ["tests.support.armed.halfsent.HalfSent", *deployed.MIDDLEWARE]
CELERY_TASK_TIME_LIMIT = float(os.environ["ARMED_TASK_TIME_LIMIT"])
