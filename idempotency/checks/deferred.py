"""Celery's settings, as far as they can break what deferred work promises (R35). Without Celery nothing is checked."""

from collections.abc import Iterator, Mapping
from typing import Any

from django.core.checks import CheckMessage, Error, Warning  # noqa: A004

from idempotency.conf import conf
from idempotency.operations import runner, wake
from idempotency.operations.registry import definitions

_DEFAULT_VISIBILITY = 3_600


def check_celery(**_: Any) -> list[CheckMessage]:
    """Compare time limits, leases and the broker's settings with one another."""
    celery = wake.celery_settings()
    if celery is None:
        return []
    return [*_limits(celery), *_pool(celery), *_losses(celery), *_clocks(celery), *_broker(celery)]


def _limits(celery: Mapping[str, Any]) -> Iterator[CheckMessage]:
    hard = celery["task_time_limit"]
    if celery["task_soft_time_limit"] is not None:
        yield Error(
            "Celery's task_soft_time_limit is set.",
            hint="It raises at any moment, also inside COMMIT: the row is written and the task is told otherwise. "
            "Runs keep their own deadline; leave it None.",
            id="idempotency.E040",
        )
    if hard is None:
        yield Error(
            "Celery's task_time_limit is not set.",
            hint="A worker that hangs would hang for ever. Set it below IDEMPOTENCY['LEASE'].",
            id="idempotency.E041",
        )
        return
    for definition in definitions():
        if hard < runner.DRAIN_SECONDS + definition.time_limit:
            yield Error(
                f"task_time_limit ({hard} s) can end a run of {definition.name!r} within its time limit.",
                hint=f"It must be at least {runner.DRAIN_SECONDS:g} s longer than {definition.time_limit:g} s: "
                "a task may begin another run for so long.",
                id="idempotency.E042",
            )
    if hard >= conf.LEASE:
        yield Error(
            f"task_time_limit ({hard} s) is not shorter than IDEMPOTENCY['LEASE'] ({conf.LEASE:g} s).",
            hint="A hung task must be dead before its key is looked at.",
            id="idempotency.E043",
        )
    visibility = celery["broker_transport_options"].get("visibility_timeout", _DEFAULT_VISIBILITY)
    if _is_redis(celery) and visibility <= max(hard, conf.LEASE):
        yield Error(
            f"visibility_timeout ({visibility} s) is not longer than time limit and lease.",
            hint="Redis hands a message out again while its first copy still runs.",
            id="idempotency.E044",
        )


def _pool(celery: Mapping[str, Any]) -> Iterator[CheckMessage]:
    if celery["worker_pool"] not in {"prefork", "processes"}:
        yield Warning(
            f"Celery's worker_pool is {celery['worker_pool']}.",
            hint="task_time_limit ends no task there: one that hangs takes its place in the pool for ever. Nothing is "
            "done twice for that; the pool `prefork` ends it.",
            id="idempotency.W048",
        )


def _losses(celery: Mapping[str, Any]) -> Iterator[CheckMessage]:
    if celery["result_backend"] and not celery["task_ignore_result"]:
        yield Warning(
            "Celery keeps results.",
            hint="A nudge has no result, and a dead result backend holds up who publishes: set task_ignore_result, "
            "or no result_backend.",
            id="idempotency.W040",
        )
    if celery["task_always_eager"]:
        yield Warning(
            "task_always_eager is set.",
            hint="A nudge is sent by the task's name, which is not done eagerly: deferred work waits for "
            "manage.py idempotency_wake --run --loop.",
            id="idempotency.W046",
        )
    if celery["task_reject_on_worker_lost"]:
        yield Warning(
            "task_reject_on_worker_lost is set.",
            hint="A task that kills its worker comes back at once, for ever; lease and attempt count decide better.",
            id="idempotency.W041",
        )
    if celery["task_acks_on_failure_or_timeout"] is False:
        yield Warning(
            "task_acks_on_failure_or_timeout is off.",
            hint="A task that runs into its time limit comes back at once, for ever.",
            id="idempotency.W042",
        )
    if celery["worker_cancel_long_running_tasks_on_connection_loss"]:
        yield Warning(
            "worker_cancel_long_running_tasks_on_connection_loss is set.",
            hint="Every blip of the broker would kill tasks, also inside COMMIT.",
            id="idempotency.W043",
        )


def _clocks(celery: Mapping[str, Any]) -> Iterator[CheckMessage]:
    schedule = celery["beat_schedule"] or {}
    expiring = sorted(
        str(entry["task"])
        for entry in schedule.values()
        if str(entry.get("task", "")).startswith("idempotency.tasks.")
        and (entry.get("options") or {}).get("expires") is not None
    )
    if expiring:
        yield Warning(
            f"Beat's messages expire: {', '.join(expiring)}.",
            hint="Beat's clock is compared with the worker's: a worker that is ahead takes every message and drops it. "
            "Leave `expires` out; a crowd of late messages does no harm.",
            id="idempotency.W047",
        )


def _broker(celery: Mapping[str, Any]) -> Iterator[CheckMessage]:
    options = celery["broker_transport_options"]
    if _is_redis(celery) and not options.get("socket_timeout"):
        yield Warning(
            "broker_transport_options has no socket_timeout.",
            hint="A broker that hangs would end this process's nudges for ever: only the sweep would be left.",
            id="idempotency.W044",
        )
    if _scheme(celery) in {"amqp", "amqps", "pyamqp"} and not options.get("confirm_publish"):
        yield Warning(
            "broker_transport_options has no confirm_publish.",
            hint="RabbitMQ drops what it cannot keep, and says nothing.",
            id="idempotency.W045",
        )


def _is_redis(celery: Mapping[str, Any]) -> bool:
    return _scheme(celery) in {"redis", "rediss", "valkey", "sentinel"}


def _scheme(celery: Mapping[str, Any]) -> str:
    return str(celery["broker_url"] or "").partition(":")[0].partition("+")[0]
