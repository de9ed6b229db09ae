"""A project of a reader's own: a plain DRF project, and upon it the README's blocks that have a title."""

import os
import subprocess
import sys
from pathlib import Path

from tests.docs.blocks import ROOT, blocks

_BASE = {
    "manage.py": """\
import os, sys
from django.core.management import execute_from_command_line
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop_project.settings")
execute_from_command_line(sys.argv)
""",
    "shop_project/__init__.py": "from shop_project.celery import app as celery_app\n",
    "shop_project/settings.py": """\
import os
from urllib.parse import unquote, urlsplit
SECRET_KEY = "only for a test of the documentation"
at = urlsplit(os.environ["DATABASE_URL"])
DATABASES = {"default": {
    "ENGINE": "django.db.backends.postgresql", "NAME": at.path[1:], "HOST": at.hostname, "PORT": at.port,
    "USER": unquote(at.username), "PASSWORD": unquote(at.password or ""),
}}
INSTALLED_APPS = [
    "django.contrib.admin", "django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions",
    "django.contrib.messages", "rest_framework", "rest_framework.authtoken", "shop",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [{
    "BACKEND": "django.template.backends.django.DjangoTemplates",
    "APP_DIRS": True,
    "OPTIONS": {"context_processors": [
        "django.template.context_processors.request", "django.contrib.auth.context_processors.auth",
        "django.contrib.messages.context_processors.messages",
    ]},
}]
ROOT_URLCONF = "shop_project.urls"
ALLOWED_HOSTS = ["*"]
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["rest_framework.authentication.TokenAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
GATEWAY_URL, GATEWAY_KEY = os.environ["GATEWAY_URL"], "sk_test_of_the_shop"
""",
    "shop_project/urls.py": """\
from django.contrib import admin
from django.urls import include, path
from shop.views import Orders
urlpatterns = [path("admin/", admin.site.urls), path("orders/", Orders.as_view())]
""",
    "shop_project/celery.py": """\
import os
from celery import Celery
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop_project.settings")
app = Celery("shop_project", broker=os.environ["REDIS_URL"])
app.autodiscover_tasks()
""",
    "shop/__init__.py": "",
    "shop/migrations/__init__.py": "",
}


class Shop:
    """The project in a folder, with a database and a gateway."""

    def __init__(self, folder: Path, *, database_url: str, gateway_url: str) -> None:
        self.folder = folder
        # What the project's settings are told by the tests' own environment is not for this one.
        ours = ("IDEMPOTENCY_", "PAYMENTS_", "DJANGO_", "CELERY_")
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(ours)},
            "DATABASE_URL": database_url,
            "GATEWAY_URL": gateway_url,
            "PYTHONPATH": os.pathsep.join((str(folder), str(ROOT))),
        }
        for name, text in _BASE.items():
            self._write(name, text)
        for block in blocks():
            if title := block.attributes.get("title"):
                self._write(title, block.body)

    def _write(self, name: str, text: str) -> None:
        # `settings_ledger.py` is what a reader adds to `settings.py`.
        path = self.folder / name.replace("_ledger.py", ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(text + "\n")

    def manage(self, *words: str) -> str:
        """Run a management command; return what it says."""
        return self._run("manage.py", *words)

    def python(self, code: str) -> str:
        """Run code after `django.setup()`; return what it prints."""
        setup = (
            "import os, django\nos.environ['DJANGO_SETTINGS_MODULE'] = 'shop_project.settings'\n"
        )
        return self._run("-W", "error", "-c", f"{setup}django.setup()\n{code}")

    def _run(self, *words: str) -> str:
        done = subprocess.run(
            [sys.executable, *words],
            cwd=self.folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout
