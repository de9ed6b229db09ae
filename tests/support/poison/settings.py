"""The deployment's settings with this app added."""

from project import settings as deployed

for _name in dir(deployed):
    if _name.isupper():
        globals()[_name] = getattr(deployed, _name)

INSTALLED_APPS = [*deployed.INSTALLED_APPS, "tests.support.poison"]
