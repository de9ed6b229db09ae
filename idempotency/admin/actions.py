"""What staff may do about a key: who may, when it makes sense, what it will do, and doing it.

Whether it may be done is decided where it is done, at the moment of writing; the refusals here only keep a button from
being offered in vain.
"""

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from idempotency import operations, reconciliation
from idempotency.admin.detail import Look
from idempotency.admin.forms import ActionForm, SettleForm
from idempotency.admin.situations import Situation
from idempotency.http.header import mask
from idempotency.types import State


@dataclass(frozen=True, slots=True)
class Done:
    """What came of an action, in words for the person who did it."""

    text: str
    good: bool = True


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that staff may do."""

    name: str
    label: str
    permission: str
    consequences: tuple[str, ...]
    """What it will do and what it will not: the preview."""
    refusal: Callable[[Look], str]
    """Why it makes no sense now, or ""."""
    run: Callable[[uuid.UUID, str, str, Mapping[str, Any]], Done]
    """(id, actor, reason, evidence): the id of the key, or of its deferred work where `of_work`."""
    form: type[ActionForm] = ActionForm
    of_work: bool = False
    of_message: bool = False
    danger: bool = False


# -- ask ---------------------------------------------------------------------------------------------------------------

_DECISIONS = {
    "applied": "The other side has accepted it. The key is settled as the request itself would have done.",
    "rejected": "The other side refused it, and nothing happened. The key is settled so.",
    "not-applied": "It did not happen. Nothing was charged.",
    "not-done": "It is closed as not done, and watched: the other side could still carry out a late send.",
    "not-yet": "No verdict yet: a send is too recent for an empty answer to prove it. It is asked again by itself.",
    "pending": "The other side knows it and has not decided yet. It is asked again by itself.",
    "unreachable": "The other side could not be reached, which says nothing either way. It is asked again by itself.",
    "needs-person": "The other side’s answer proves too little: a person has to decide.",
    "unfinished": "The work is not done: a part of it was accepted and another was not. Nothing was settled.",
    "moved": "Somebody or something else settled it in the same moment.",
    "settled": "It is settled already.",
    "under-way": "It is under way: there is nothing to ask about yet.",
}
# Deferred work of which one run is decided, and the work is not.
_GOES_ON = {
    "applied": "The other side has accepted a part of it. The work goes on with the rest by itself.",
    "not-applied": "It has not happened so far. The work waits for its next run, which comes by itself.",
}
# Of a key that is settled while a send of it can still arrive.
_WATCHED = {
    "not-applied": "It has not happened so far, and the key is free. A send of it can still arrive at the other side, "
    "so it is watched: if it happens after all, an alarm is raised.",
    "applied": "It happened after all, although the key is settled otherwise: an alarm is raised. Read the key’s page "
    "before you tell anybody anything.",
    "not-yet": "Nothing new: the key stays as it is settled. A send of it can still arrive, so it is watched on.",
}
_NO_VERDICT = frozenset(
    {"not-yet", "pending", "unreachable", "needs-person", "unfinished", "moved", "under-way"}
)


def _ask(id: uuid.UUID, actor: str, reason: str, evidence: Mapping[str, Any]) -> Done:  # noqa: A002
    return told(reconciliation.ask_now(key_id=id, actor=actor))


def told(report: reconciliation.Report) -> Done:
    """Return a report in words."""
    text = _DECISIONS.get(report.decision, report.decision)
    if report.state is State.IN_PROGRESS:
        text = _GOES_ON.get(report.decision, text)
    elif report.watched:
        text = _WATCHED.get(report.decision, text)
    return Done(f"{text} {mask(report.detail)}".strip(), good=not _is_open(report))


def _is_open(report: reconciliation.Report) -> bool:
    is_news = report.watched and report.decision == "applied"
    return is_news or report.decision in _NO_VERDICT


def _not_askable(seen: Look) -> str:
    if seen.key.state == State.UNKNOWN or seen.key.watched or seen.situation is Situation.LAPSED:
        return ""
    if seen.key.state == State.IN_PROGRESS:
        return "It is under way: there is nothing to ask about yet."
    return "It is settled: there is nothing to ask about."


# -- settle ------------------------------------------------------------------------------------------------------------


def _settle(id: uuid.UUID, actor: str, reason: str, evidence: Mapping[str, Any]) -> Done:  # noqa: A002
    return told(
        reconciliation.settle_by_hand(
            key_id=id,
            happened=evidence["happened"] == "yes",
            actor=actor,
            reason=reason,
            evidence={name: value for name, value in evidence.items() if name != "happened"},
        )
    )


def _not_settleable(seen: Look) -> str:
    if seen.key.state != State.UNKNOWN:
        return "Only an unknown key is settled by hand."
    if seen.key.lookups == 0:
        return (
            "Ask the gateway first: no look-up has been answered yet, and until one is it is not "
            "settled on anybody’s word."
        )
    return ""


# -- deferred work -----------------------------------------------------------------------------------------------------


def _retry(id: uuid.UUID, actor: str, reason: str, evidence: Mapping[str, Any]) -> Done:  # noqa: A002
    operations.retry(operation_id=id, actor=actor, reason=reason)
    return Done("A new cycle of runs begins now, under the same key.")


def _not_retryable(seen: Look) -> str:
    if seen.work is None:
        return "It has no deferred work."
    given_up = (seen.work.error or {}).get("code") == "gave-up"
    if seen.key.due_at is not None or given_up or seen.key.state == State.UNKNOWN:
        return ""
    return (
        "Only work that waits or was given up begins again; what was refused or cancelled is over."
    )


def _cancel(id: uuid.UUID, actor: str, reason: str, evidence: Mapping[str, Any]) -> Done:  # noqa: A002
    operations.cancel(operation_id=id, actor=actor, reason=reason)
    return Done("It is cancelled. Nothing of it has happened and nothing will.")


def _not_cancellable(seen: Look) -> str:
    if seen.work is None:
        return "It has no deferred work."
    return (
        ""
        if seen.key.due_at is not None
        else "Too late: only work that still waits can be cancelled."
    )


# -- messages ----------------------------------------------------------------------------------------------------------


def _rerun(id: uuid.UUID, actor: str, reason: str, evidence: Mapping[str, Any]) -> Done:  # noqa: A002
    operations.run_again(key_id=id, actor=actor, reason=reason)
    return Done("The message was run again: what it tells is in our books now.")


def _not_rerunnable(seen: Look) -> str:
    if not operations.can_run(seen.key.scope):
        return f"Nothing is registered that runs messages of {seen.key.scope} again."
    return "" if seen.key.body else "The message itself is not kept, or not any more."


ACTIONS = {
    action.name: action
    for action in (
        Action(
            "ask",
            "Ask the gateway now",
            "idempotency.lookup_key",
            (
                "The other side is asked, once, whether it happened. Nothing is charged by asking.",
                "If its answer proves the outcome, the key is settled as it would be by itself.",
                "If not, the key stays as it is and is asked about again later.",
            ),
            _not_askable,
            _ask,
        ),
        Action(
            "settle",
            "Settle by hand",
            "idempotency.settle_key",
            (
                "The key is settled on your word, and your name stands beside it for good.",
                "“It happened”: our books are finished with the gateway’s id, and repeats get that answer.",
                "“It did not happen”: the caller may try again. If that is wrong, a customer can be charged twice.",
                "It is refused if the ledger or the gateway itself says the opposite, or a send could still arrive.",
            ),
            _not_settleable,
            _settle,
            form=SettleForm,
            danger=True,
        ),
        Action(
            "retry",
            "Retry the operation",
            "idempotency.retry_operation",
            (
                "The deferred work starts a new cycle of runs, under the same key and towards the other side, too.",
                "What has happened already is not done again.",
            ),
            _not_retryable,
            _retry,
            of_work=True,
        ),
        Action(
            "cancel",
            "Cancel the operation",
            "idempotency.cancel_operation",
            (
                "The deferred work ends without being done; its caller sees it as cancelled.",
                "It is refused as soon as anything of it may have happened.",
            ),
            _not_cancellable,
            _cancel,
            of_work=True,
            danger=True,
        ),
        Action(
            "rerun",
            "Run the message again",
            "idempotency.rerun_message",
            (
                "The message is taken in once more, exactly as it came.",
                "What is in our books already stays; only what is missing is written. Nothing is charged or sent.",
                "Where it contradicts our books, the alarm is raised again.",
            ),
            _not_rerunnable,
            _rerun,
            of_message=True,
        ),
    )
}
