"""Settings of the measured project: what a small API has, and what the measured protection adds."""

import os
from urllib.parse import unquote, urlsplit

from benchmarks.host.variants import VARIANTS

VARIANT = VARIANTS[os.environ["BENCHMARK_VARIANT"]]
REDIS_URL = os.environ["REDIS_URL"]
_DATABASE = urlsplit(os.environ["DATABASE_URL"])
_PREPARING = {"server_side_binding": True, "prepare_threshold": 5} if VARIANT.prepares else {}

SECRET_KEY = "benchmark"
ALLOWED_HOSTS = ["testserver"]
USE_TZ = True
ROOT_URLCONF = "benchmarks.host.urls"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(_DATABASE.path[1:]),
        "USER": _DATABASE.username,
        "PASSWORD": unquote(_DATABASE.password or ""),
        "HOST": _DATABASE.hostname,
        "PORT": _DATABASE.port,
        "CONN_MAX_AGE": None,
        "OPTIONS": {"sslmode": "disable", **_PREPARING},
    }
}
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": REDIS_URL,
        "KEY_PREFIX": VARIANT.name,
    }
}
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "rest_framework",
    "rest_framework.authtoken",
    *VARIANT.apps,
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    *VARIANT.middleware,
]
_PROCESSORS = (
    "django.template.context_processors.request",
    "django.contrib.auth.context_processors.auth",
    "django.contrib.messages.context_processors.messages",
)
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {"context_processors": _PROCESSORS},
    }
]
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["rest_framework.authentication.TokenAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
}
# As the README has it.
IDEMPOTENCY = {"RESULT_TTL": 3 * 86_400, "KEY_TTL": 30 * 86_400}
globals().update(VARIANT.settings(REDIS_URL))
