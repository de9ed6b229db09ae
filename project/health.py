"""Tell a load balancer whether this process is alive, and whether it can work."""

import logging
from collections.abc import Callable

import redis
from django.db import Error, connection, connections
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from idempotency.conf import conf
from idempotency.ledger import census
from idempotency.operations import heartbeat
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
    """Return 200 when database, store and beat are there, else 503; say which are not.

    That workers are silent, or work is late, is said too but turns no traffic away: this process can take requests,
    and a balancer that emptied all of them would make a delay into an outage.
    """
    found = {name: check() for name, check in CHECKS.items()}
    good = all(state == "ok" for state in found.values())
    warned = {name: warn() for name, warn in WARNINGS.items()} if found["database"] == "ok" else {}
    return JsonResponse(
        {"status": "ok" if good else "not ready", "checks": found, "warnings": warned},
        status=200 if good else 503,
    )


def _database() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SHOW transaction_read_only")
            (read_only,) = cursor.fetchone()
    except Error as error:
        # The probe is open to everybody; addresses and names go to the log only.
        logger.warning("not ready: database: %s", error)
        return "unreachable"
    # A standby, or a server that an operator has closed: every claim would be refused.
    return "read-only" if read_only == "on" else "ok"


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
    except Error:
        return "unknown"


def _tasks() -> str:
    late = [name for name in heartbeat.silent() if name not in heartbeat.SIGNS]
    return f"silent: {', '.join(late)}" if late else "ok"


def _due() -> str:
    seconds = census.oldest_due(connection=connections[conf.DATABASE])
    return "ok" if seconds < census.LATE_AFTER else f"late: {seconds:.0f} s"


CHECKS: dict[str, Callable[[], str]] = {"database": _database, "store": _store, "beat": _beat}
WARNINGS: dict[str, Callable[[], str]] = {"tasks": _tasks, "due": _due}
