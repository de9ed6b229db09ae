"""The pages on which staff act: preview, form, one audited write, redirect."""

import logging
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from rest_framework.exceptions import APIException

from idempotency.admin import audit
from idempotency.admin.actions import ACTIONS, Action, Done
from idempotency.admin.detail import Look, look
from idempotency.admin.forms import ActionForm
from idempotency.admin.moments import day_and_time
from idempotency.admin.sentences import who
from idempotency.admin.situations import Situation
from idempotency.conf import conf
from idempotency.exceptions import IdempotencyError
from idempotency.ledger import moment
from idempotency.models import Key
from idempotency.resilience import is_outage

REPEATED = (
    "This form had been sent before, so nothing was done again. The timeline shows what came of it."
)

logger = logging.getLogger(__name__)

_REFUSALS = (IdempotencyError, APIException)
_LOST = "The database was lost in the middle. The timeline says what came of it; then try again."


@dataclass(frozen=True, slots=True)
class Offer:
    """An action as a page shows it."""

    label: str
    address: str
    refusal: str
    danger: bool


def allowed(request: HttpRequest, action: Action) -> bool:
    """Whether the person may do this at all."""
    return request.user.has_perm(action.permission)


def require(request: HttpRequest, name: str) -> Action:
    """Return the action. Raises: PermissionDenied, for one that does not exist, too."""
    action = ACTIONS.get(name)
    if action is None or not allowed(request, action):
        raise PermissionDenied
    return action


def applicable(request: HttpRequest, seen: Look) -> list[Action]:
    """Return what the person may do and what has to do with this kind of key, offered or refused."""
    is_message = seen.situation is Situation.TAKEN_IN
    fitting = (
        action
        for action in ACTIONS.values()
        if (seen.work is not None or not action.of_work) and is_message == action.of_message
    )
    return [action for action in fitting if allowed(request, action)]


def perform(request: HttpRequest, action: Action, key: Key, form: ActionForm) -> None:
    """Do it once, and tell the person what came of it."""
    actor, reason = request.user.get_username(), form.cleaned_data["reason"]
    begun = audit.begin(
        form=form.cleaned_data["form"],
        kind=f"staff-{action.name}",
        actor=actor,
        key_id=key.pk,
        reason=reason,
        detail={"before": key.state, **form.evidence()},
    )
    if not begun:
        messages.warning(request, REPEATED)
        return
    done = attempt(action, look(key), actor, reason, form.evidence())
    (messages.success if done.good else messages.warning)(request, done.text)


def attempt(
    action: Action, seen: Look, actor: str, reason: str, evidence: Mapping[str, Any]
) -> Done:
    """Do it to one key; a refusal is on record and in words, too."""
    target: uuid.UUID | None = seen.key.pk
    if action.of_work:
        target = seen.work.pk if seen.work else None
    if target is None:
        return Done("It has no deferred work.", good=False)
    try:
        return action.run(target, actor, reason, evidence)
    except _REFUSALS as error:
        said, first = str(error), _who_was_first(seen.key)
        _record_refusal(action, seen, actor, reason, said)
        return Done(f"Refused: {said}{first}", good=False)
    except Exception as error:
        # One key that fails must not keep the others of a list from being done.
        logger.exception("%s of key %s by %s failed", action.name, seen.key.pk, actor)
        _record_refusal(action, seen, actor, reason, type(error).__name__)
        lost = isinstance(error, OperationalError | InterfaceError) or is_outage(error)
        return Done(
            _LOST if lost else f"It failed: {type(error).__name__}. The log says more.", good=False
        )


def _record_refusal(action: Action, seen: Look, actor: str, reason: str, why: str) -> None:
    audit.record(
        kind="staff-refused",
        actor=actor,
        key_id=seen.key.pk,
        reason=reason,
        detail={"asked": action.name, "refusal": why},
    )


def _who_was_first(key: Key) -> str:
    """Return who has settled it meanwhile, which is what the second of two people wants to know."""
    now = (
        Key.objects.using(conf.DATABASE).filter(pk=key.pk).only("settled_by", "settled_at").first()
    )
    if now is None or now.settled_at is None:
        return ""
    at = day_and_time(now.settled_at, now=moment.counted(), seconds=True)
    return f" It was settled by {who(now.settled_by)} at {at}."


def back(address: str) -> HttpResponse:
    """Redirect after a POST, so that a reload of the page does nothing."""
    response = HttpResponseRedirect(address)
    response.status_code = 303
    return response
