"""Settings of the deployment. Every value that differs between machines is an environment variable.

    DEBUG  SECRET_KEY  ALLOWED_HOSTS  CSRF_TRUSTED_ORIGINS  TRUST_PROXY
    DATABASE_URL  DATABASE_POOLED  CONN_MAX_AGE  REDIS_URL  CELERY_BROKER_URL  PROCESS_ROLE  LOG_LEVEL
    STATIC_ROOT
    IDEMPOTENCY_<NAME>  PAYMENTS_<NAME>

Nothing here opens a connection.
"""

from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from idempotency.conf import SETTINGS as IDEMPOTENCY_SETTINGS
from payments.conf import SETTINGS as PAYMENTS_SETTINGS
from project import database, environment

BASE_DIR = Path(__file__).resolve().parent.parent

DEBUG = environment.flag("DEBUG")
SECRET_KEY = environment.text("SECRET_KEY", "only-for-development" if DEBUG else "")
if not SECRET_KEY:
    raise ImproperlyConfigured("SECRET_KEY must be set, or DEBUG=1 on a developer's machine.")
ALLOWED_HOSTS = environment.words("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]" if DEBUG else "")
CSRF_TRUSTED_ORIGINS = environment.words("CSRF_TRUSTED_ORIGINS")

# Which kind of process this is: web (default, the strictest), worker (also beat), command.
PROCESS_ROLE = environment.text("PROCESS_ROLE", "web")

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "rest_framework",
    "rest_framework.authtoken",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "idempotency",
    "payments",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "project.urls"
WSGI_APPLICATION = "project.wsgi.application"
ASGI_APPLICATION = "project.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
FORMAT_MODULE_PATH = "project.formats"
USE_TZ = True

# -- Database ----------------------------------------------------------------------------------

DATABASES = {"default": database.connection(PROCESS_ROLE)}

# -- Store: circuit breaker, cache, and the broker unless another one is named -------------------

REDIS_URL = environment.text("REDIS_URL", "redis://127.0.0.1:6379/0")
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": REDIS_URL,
        "KEY_PREFIX": "cache",
        "OPTIONS": {"socket_timeout": 0.5, "socket_connect_timeout": 0.5},
    },
}

# -- Celery --------------------------------------------------------------------------------------

CELERY_BROKER_URL = environment.text("CELERY_BROKER_URL", REDIS_URL)
# The hard limit of a task, above the longest run of an operation (30 s) and below the lease (45 s),
# so that a hung task dies before its key is looked at, and long before its message comes back.
CELERY_TASK_TIME_LIMIT = 40
# A soft limit would raise inside COMMIT: the row is written and the caller is told otherwise.
CELERY_TASK_SOFT_TIME_LIMIT = None
# A message is a nudge and its result is nobody's: a dead result backend would block publishing.
CELERY_TASK_IGNORE_RESULT = True
CELERY_RESULT_BACKEND = None
# Only shortens recovery after a killed worker; that nothing is lost is the sweep's promise.
CELERY_TASK_ACKS_LATE = True
# A task that kills its worker would come back at once, for ever; the lease and the attempt count
# decide instead.
CELERY_TASK_REJECT_ON_WORKER_LOST = False
CELERY_TASK_ACKS_ON_FAILURE_OR_TIMEOUT = True
# One message at a time: a prefetched one would wait behind a long task while others idle.
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
# Celery would connect to the database anew for each task. So many tasks share a connection at most;
# between two tasks Django closes one that is broken, or older than CONN_MAX_AGE (project/celery.py).
CELERY_DB_REUSE_MAX = 1_000
# On SIGQUIT (or SIGTERM with REMAP_SIGTERM=SIGQUIT) running tasks get this long to end.
CELERY_WORKER_SOFT_SHUTDOWN_TIMEOUT = 5
CELERY_WORKER_ENABLE_SOFT_SHUTDOWN_ON_IDLE = True
# True would kill tasks in the middle of a COMMIT at every broker blip.
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# A worker waits for its broker as long as it takes.
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TIMEZONE = "UTC"
CELERY_BROKER_TRANSPORT_OPTIONS: dict[str, Any] = {}
if CELERY_BROKER_URL.startswith(("redis", "valkey", "sentinel")):
    CELERY_BROKER_TRANSPORT_OPTIONS = {
        # Above the hard limit; it is also the time after which a killed worker's message returns.
        "visibility_timeout": 600,
        # Look for such messages every 10 s; the default sweep takes 100 s.
        "unacked_restore_interval": 10,
        "unacked_restore_throttle": 1,
        "socket_timeout": 5,
        "socket_connect_timeout": 2,
        "socket_keepalive": True,
    }
elif CELERY_BROKER_URL.startswith(("amqp", "pyamqp")):
    # A publish that was not confirmed has failed.
    CELERY_BROKER_TRANSPORT_OPTIONS = {"confirm_publish": True}
    CELERY_BROKER_HEARTBEAT = 10
if PROCESS_ROLE == "web":
    # Publishing never holds up an answer: one try, at most about a second, whatever the broker is
    # doing. The defaults wait 0.6 s where it refuses, and for ever where it hangs.
    CELERY_TASK_PUBLISH_RETRY = False
    CELERY_BROKER_CONNECTION_TIMEOUT = 1
    CELERY_BROKER_TRANSPORT_OPTIONS |= {
        "max_retries": 0,
        "socket_timeout": 1,
        "socket_connect_timeout": 1,
    }

# -- The two apps: only what the environment says; defaults live with the app --------------------

IDEMPOTENCY: dict[str, Any] = {
    "TENANT": "payments.queries.tenant_of",
    "ADMIN_BREAKERS": "payments.degradation.breakers",
    "ADMIN_SWITCHES": "payments.degradation.switches",
    "ADMIN_KNOWS": "payments.console.known",
    # Support is asked "did they send it again?"; a short write after the answer is worth that.
    "RECORD_REPLAYS": True,
    "PROBLEMS": ["payments.exceptions.PROBLEMS"],
} | environment.overrides(
    "IDEMPOTENCY", {setting.name: setting.default for setting in IDEMPOTENCY_SETTINGS}
)
PAYMENTS: dict[str, Any] = environment.overrides(
    "PAYMENTS", {setting.name: setting.default for setting in PAYMENTS_SETTINGS}
)

# -- REST ----------------------------------------------------------------------------------------

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        # First, so that a missing login is answered 401 and names the scheme.
        "rest_framework.authentication.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_SCHEMA_CLASS": "idempotency.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "idempotency.http.problem.exception_handler",
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Payments",
    "DESCRIPTION": "Payments that happen once, however often they are asked for.",
    "VERSION": "1",
    # The first version that knows webhooks.
    "OAS_VERSION": "3.1.1",
    "WEBHOOKS": [
        f"payments.serializers.events.{name}"
        for name in ("PAYMENT", "REFUND", "PAYOUT", "RECEIPT", "PINGED")
    ],
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "payments.serializers.events.as_they_are",
    ],
    "SERVE_INCLUDE_SCHEMA": False,
    "ENFORCE_NON_BLANK_FIELDS": True,
    "SERVE_PERMISSIONS": ["rest_framework.permissions.AllowAny"],
    # The docs page is served from here, so that it works without the internet.
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
}

# -- Static files --------------------------------------------------------------------------------

STATIC_URL = "static/"
WHITENOISE_USE_FINDERS = DEBUG
WHITENOISE_AUTOREFRESH = False
if not DEBUG:
    STATIC_ROOT = environment.text("STATIC_ROOT", str(BASE_DIR / "var" / "static"))
    STORAGES = {
        "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
        "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
    }

# -- Security ------------------------------------------------------------------------------------

X_FRAME_OPTIONS = "DENY"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SESSION_COOKIE_HTTPONLY = True
if not DEBUG:
    SESSION_COOKIE_SECURE = True
    CSRF_COOKIE_SECURE = True
    SECURE_SSL_REDIRECT = True
    # Probes come from inside, without TLS.
    SECURE_REDIRECT_EXEMPT = [r"^healthz/$", r"^readyz/$", r"^metrics$"]
    SECURE_HSTS_SECONDS = 3600
    # Whether every subdomain speaks TLS, and whether browsers may preload that, is known to the
    # owner of the domain only.
    SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
if environment.flag("TRUST_PROXY"):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

# -- Logs: one JSON object a line, to standard error ---------------------------------------------

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"json": {"()": "project.logs.JsonFormatter"}},
    "filters": {"without_probes": {"()": "project.logs.WithoutProbes"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
    "root": {"handlers": ["stderr"], "level": environment.text("LOG_LEVEL", "INFO").upper()},
    "loggers": {
        # It says each address in full, and merchants put tokens into theirs.
        "httpx2": {"level": "WARNING"},
        # Django sends these to handlers of its own unless told otherwise.
        "django": {"handlers": [], "propagate": True},
        "django.request": {"filters": ["without_probes"]},
        "django.server": {"handlers": [], "propagate": True},
    },
}
