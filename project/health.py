"""Tell a load balancer whether this process is alive, and whether it can work."""

import logging
from collections.abc import Callable

import redis
from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from project import beat

logger = logging.getLogger(__name__)


@require_safe
@never_cache
def alive(request: HttpRequest) -> JsonResponse:
    """Return 200: the process answers, whatever the state of what it depends on."""
    return JsonResponse({"status": "ok"})


@require_safe
@never_cache
def ready(request: HttpRequest) -> JsonResponse:
    """Return 200 when database, store and beat are there, else 503; say which are not."""
    found = {name: check() for name, check in CHECKS.items()}
    good = all(state == "ok" for state in found.values())
    return JsonResponse(
        {"status": "ok" if good else "not ready", "checks": found}, status=200 if good else 503
    )


def _database() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError as error:
        # The probe is open to everybody; addresses and names go to the log only.
        logger.warning("not ready: database: %s", error)
        return "unreachable"
    return "ok"


def _store() -> str:
    try:
        beat.connect().ping()
    except redis.RedisError as error:
        logger.warning("not ready: store: %s", error)
        return "unreachable"
    return "ok"


def _beat() -> str:
    try:
        return "ok" if beat.fresh() else "silent"
    except redis.RedisError:
        return "unknown"


CHECKS: dict[str, Callable[[], str]] = {"database": _database, "store": _store, "beat": _beat}
