"""What is compared: each protection's packages, settings and promise.

Nothing here imports what it names: settings are read from here before the apps are loaded.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Variant:
    """One guise of the endpoint."""

    name: str
    of: str
    """Where its view is made, or its jobs are sent: `module:function`, or `module:Class`, below `benchmarks.host`."""
    packages: tuple[str, ...] = ()
    """What it needs beside Django, REST framework and drivers; none: what this interpreter has."""
    apps: tuple[str, ...] = ()
    middleware: tuple[str, ...] = ()
    settings: Callable[[str], dict[str, Any]] = lambda redis_url: {}
    prepare: str = ""
    header: str = "Idempotency-Key"
    prepares: bool = True
    """Whether Django's connection prepares statements, as the engineers' guide has it."""
    keeps: str = "–"
    """Where keys and answers are."""
    note: str = ""
    """How its promise differs."""

    def view(self) -> Callable[..., Any]:
        """Make the view."""
        made = self.found()
        view: Callable[..., Any] = made.as_view() if hasattr(made, "as_view") else made()
        return view

    def found(self) -> Any:
        """Return what makes the view, or sends a job."""
        return _find(self.of)

    def prepared(self) -> None:
        """Make what migrations do not."""
        if self.prepare:
            _find(self.prepare)()


def _find(name: str) -> Any:
    module, _, what = name.partition(":")
    return getattr(import_module(f"benchmarks.host.{module}"), what)


OWN = (
    Variant("bare", "work:Bare"),
    Variant("floor", "floor:Floor", keeps="PostgreSQL"),
    Variant("idempotent", "ours:Local", apps=("idempotency",), keeps="PostgreSQL"),
    Variant("idempotent, unprepared", "ours:Local", apps=("idempotency",), prepares=False),
    Variant("bare + call", "work:BareCall"),
    Variant("floor + call", "floor:FloorCall", keeps="PostgreSQL"),
    Variant("idempotent + call", "ours:Call", apps=("idempotency",), keeps="PostgreSQL"),
    Variant("idempotent + call, unprepared", "ours:Call", apps=("idempotency",), prepares=False),
)

PEERS = (
    Variant(
        "drf-idempotency",
        "peers:by_middleware",
        packages=("drf-idempotency==1.0.0",),
        apps=("drf_idempotency",),
        middleware=("drf_idempotency.middleware.IdempotencyMiddleware",),
        settings=lambda redis_url: {
            "IDEMPOTENCY": {"BACKEND": "drf_idempotency.backends.database.DatabaseBackend"}
        },
        keeps="PostgreSQL",
        note="Keys are global, not the caller's, and a replay is answered before authentication.",
    ),
    Variant(
        "drf-idempotencykey",
        "peers:drf_idempotencykey",
        packages=("drf-idempotencykey==0.2.0",),
        apps=("drf_idempotencykey",),
        keeps="PostgreSQL",
        note="A handler that raised leaves its key refused for 60 minutes.",
    ),
    Variant(
        "djangorestframework-idempotency-key",
        "peers:djangorestframework_idempotency_key",
        packages=("djangorestframework-idempotency-key==1.0.3",),
        apps=("rest_framework_idempotency_key",),
        middleware=("rest_framework_idempotency_key.middleware.IdempotencyKeyMiddleware",),
        keeps="PostgreSQL",
        note="Keys are global: another user with the same key and body gets the first one's answer.",
    ),
    Variant(
        "idemkit",
        "peers:idemkit",
        packages=("idemkit[postgres]==1.0.2",),
        prepare="peers:prepare_idemkit",
        keeps="PostgreSQL, connections of its own",
        note="The answer is stored on another connection than the effect, and before the effect is certain.",
    ),
    Variant(
        "payment-infra",
        "peers:payment_infra",
        packages=("payment-infra==1.0.7",),
        apps=("payment_infra",),
        settings=lambda redis_url: {"REDIS_URL": redis_url},
        keeps="PostgreSQL, and a lock in Redis",
        note="Protects a function: the view's part is glue. A process that died leaves its key refused for ever.",
    ),
    Variant(
        "django-idempotency-key",
        "peers:django_idempotency_key",
        packages=("django-idempotency-key==1.3.0",),
        middleware=("idempotency_key.middleware.ExemptIdempotencyKeyMiddleware",),
        settings=lambda redis_url: {
            "IDEMPOTENCY_KEY": {
                "CONFLICT_STATUS_CODE": None,
                "STORAGE": {
                    "CLASS": "idempotency_key.storage.CacheKeyStorage",
                    "CACHE_NAME": "default",
                },
                "LOCK": {
                    "CLASS": "idempotency_key.locks.redis.MultiProcessRedisLock",
                    "LOCATION": redis_url,
                },
            }
        },
        keeps="cache",
        note="Duplicates at once run (18 effects of 20); another body is another request; one lock for all keys (423).",
    ),
    Variant(
        "drf-idem",
        "peers:by_middleware",
        packages=("drf-idem==0.1.1",),
        apps=("drf_idem",),
        middleware=("drf_idem.middleware.IdempotencyMiddleware",),
        settings=lambda redis_url: {
            "CACHES": {
                "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
                "drf_idem": {
                    "BACKEND": "django.core.cache.backends.redis.RedisCache",
                    "LOCATION": redis_url,
                },
            }
        },
        header="X-Request-ID",
        keeps="cache",
        note="The view runs at every request, duplicates included; only its answer is the first one's.",
    ),
)

QUEUES = (
    Variant(
        "defer()",
        "jobs.operations:send",
        apps=("idempotency", "benchmarks.host.jobs"),
        settings=lambda redis_url: {"ROOT_URLCONF": "benchmarks.host.jobs.urls"},
        note="Committed with the order; one row per job that staff can see; each attempt is counted before it begins.",
    ),
    Variant(
        "Celery delay()",
        "jobs.celeryapp:send",
        settings=lambda redis_url: {"ROOT_URLCONF": "benchmarks.host.jobs.urls"},
        note="Sent after the commit: a crash between them, or of the broker, loses it; no record.",
    ),
    Variant(
        "procrastinate",
        "jobs.procrastinating:send",
        packages=("procrastinate[django]==3.10.0",),
        apps=("procrastinate.contrib.django", "benchmarks.host.jobs"),
        settings=lambda redis_url: {
            "ROOT_URLCONF": "benchmarks.host.jobs.urls",
            "PROCRASTINATE_IMPORT_PATHS": ["benchmarks.host.jobs.procrastinating"],
        },
        note="Committed with the order; a job that raised or was killed is not repeated unless told to.",
    ),
)

VARIANTS = {variant.name: variant for variant in (*OWN, *PEERS, *QUEUES)}
