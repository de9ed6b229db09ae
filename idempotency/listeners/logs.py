"""Writes the log: one line per settlement, and one for whatever somebody may have to act on.

The facts are in `extra`, for a formatter that writes them. No key is written, only its hash; no body, no payload.
"""

import dataclasses
import logging

from idempotency import telemetry
from idempotency.telemetry import Event

Line = tuple[str, int, str]
"""The logger's last name, the level, the text."""


def write(event: Event) -> None:
    """Write the event's line, if it has one."""
    line = _of_keys(event) or _of_work(event) or _of_protection(event)
    if line is not None:
        name, level, text = line
        logger = logging.getLogger(f"idempotency.{name}")
        if logger.isEnabledFor(level):
            facts = {field.name: getattr(event, field.name) for field in dataclasses.fields(event)}
            logger.log(level, "%s", text, extra={"event": type(event).__name__} | facts)


def _of_keys(event: Event) -> Line | None:
    match event:
        case telemetry.KeySettled(operation=name, state=state, by=by, seconds=seconds):
            level = logging.WARNING if state == "unknown" else logging.INFO
            return "key", level, f"{name}: {state} by {by} after {seconds:.3f} s"
        case telemetry.PersonNeeded(operation=name, reason=reason):
            return "key", logging.ERROR, f"{name}: a person is needed: {reason}"
        case telemetry.LateNews(heard_by=heard_by, state=state):
            return "key", logging.ERROR, f"late news from {heard_by} of a key that is {state}"
        case telemetry.StaffActed(action=action, actor=actor):
            return "staff", logging.INFO, f"{action} by {actor}"
    return None


def _of_work(event: Event) -> Line | None:
    match event:
        case telemetry.OperationMoved(operation=name, to="gave-up", attempts=attempts):
            return "deferred", logging.ERROR, f"{name}: gave up after {attempts} runs"
        case telemetry.NudgeLost(reason=reason):
            return "deferred", logging.WARNING, f"a nudge was not published: {reason}"
        case telemetry.TurnEnded(task=task, result="failed"):
            return "recurring", logging.ERROR, f"{task}: this turn failed"
    return None


def _of_protection(event: Event) -> Line | None:
    match event:
        case telemetry.BreakerChanged(breaker=name, before=before, after=after, cause=cause):
            return "protection", logging.WARNING, f"{name}: {before} to {after}: {cause}"
        case telemetry.StoreLost(store=name, error=error):
            return "protection", logging.ERROR, f"{name}: lost: {error}"
        case telemetry.StoreFound(store=name):
            return "protection", logging.INFO, f"{name}: found again"
        case telemetry.ReadOnlySwitched(mode=mode, actor=actor):
            return "protection", logging.WARNING, f"read-only mode {mode}, by {actor}"
    return None
