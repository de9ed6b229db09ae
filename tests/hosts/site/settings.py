"""Settings of the host. SITE_DATABASES holds its databases as JSON; SITE_ROUTER sends reads to `replica`.

SITE_CLOCKS names a time zone in which the host lives without any: USE_TZ is off.
"""

import json
import os
from typing import Any

SECRET_KEY = "of-the-host-in-the-tests-only"
ALLOWED_HOSTS = ["*"]
USE_TZ = "SITE_CLOCKS" not in os.environ
TIME_ZONE = os.environ.get("SITE_CLOCKS", "UTC")
DATABASES: dict[str, Any] = json.loads(os.environ["SITE_DATABASES"])
if os.environ.get("SITE_ROUTER"):
    DATABASE_ROUTERS = ["tests.hosts.site.router.ReadsElsewhere"]
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "rest_framework",
    "idempotency",
    "tests.hosts.site.apps.SiteConfig",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
ROOT_URLCONF = "tests.hosts.site.urls"
STATIC_URL = "static/"
AUTH_USER_MODEL = "site.Member"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["rest_framework.authentication.BasicAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
}
IDEMPOTENCY = {"TENANT": "tests.hosts.site.urls.tenant_of"}
