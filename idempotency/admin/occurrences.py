"""What an event says, as a sentence with its facts: no event is shown as the JSON that it is."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from idempotency.admin.redaction import evidence
from idempotency.http.header import mask
from idempotency.models import Event
from idempotency.types import News


@dataclass(frozen=True, slots=True)
class Occurrence:
    """An event in words."""

    title: str
    facts: Mapping[str, str]
    rest: str
    """What is no fact to read at once, as text; its values are hidden unless they are revealed."""
    tone: str


_TITLES = {
    "asked": "The gateway was asked, by hand",
    "looked-up": "Looked up by itself, without a verdict",
    "replayed": "The caller repeated the request and got the stored answer again",
    "retried": "A person let the work begin again",
    "cancelled": "A person cancelled the work",
    "settled-by-hand": "A person settled it",
    "run-again": "The message was run again",
    "handled": "Marked as handled",
    # Written before anything is done, so they tell what was asked for; what came of it is a line of its own.
    "staff-ask": "Somebody pressed “Ask the gateway now”",
    "staff-settle": "Somebody pressed “Settle by hand”",
    "staff-retry": "Somebody pressed “Retry the operation”",
    "staff-cancel": "Somebody pressed “Cancel the operation”",
    "staff-rerun": "Somebody pressed “Run the message again”",
    "staff-breaker": "Somebody forced a circuit breaker",
    "staff-webhook": "Somebody acted on the delivery of webhooks",
    "staff-export": "Somebody exported a list",
    "staff-ask-many": "Somebody pressed “Ask the gateway now” for many at once",
    "staff-retry-many": "Somebody pressed “Retry the operation” for many at once",
    "staff-cancel-many": "Somebody pressed “Cancel the operation” for many at once",
    "staff-refused": "Refused: what was asked for cannot be done now",
    "staff-reveal": "Somebody looked at the stored data",
}
_NEWS = {
    News.OTHERWISE: "Late news: it happened although the key says otherwise",
    News.TWICE: "Late news: the other side did it a second time",
    News.DIFFERENT: "Late news: the other side did something else than was asked for",
    News.UNRECORDED: "Late news: it happened, and nothing here knows of it",
    News.UNREADABLE: "Late news: a signed message of the other side cannot be read",
}
_DECISIONS = {
    "not-yet": "not found, and too recent for that to prove anything",
    "pending": "known there, and not decided",
    "unreachable": "the other side could not be asked",
    "needs-person": "a person has to decide",
    "unfinished": "a part of it was accepted, and the work is not done",
}
_PARTS = {"path arguments": "the object in the address", "route": "the address"}
# The form's own key, the event that is meant, and which kind of news it is: all said otherwise.
_UNSAID = frozenset({"form", "handles", "news"})


def occurrence(event: Event, *, revealed: bool) -> Occurrence:
    """Return an event in words."""
    if event.kind == "refused-repeat":
        return _refused_repeat(event)
    detail = {name: value for name, value in event.detail.items() if name not in _UNSAID}
    if event.kind == "looked-up":
        decision = str(detail.pop("decision", ""))
        detail = {"outcome": _DECISIONS.get(decision, decision), **detail}
    facts, rest = evidence(detail, revealed=revealed)
    if event.kind == "late-news":
        facts = _in_order(facts)
    said = {"reason": mask(event.reason)} if event.reason and not event.alarming else {}
    tone = "bad" if event.alarming else "warn" if event.kind == "looked-up" else ""
    return Occurrence(title_of(event), said | facts, rest, tone)


# In the order in which they are read; the database has one of its own.
_NEWS_FACTS = {
    "about": "about",
    "our books said": "our books said",
    "expected": "asked for",
    "said": "the other side says",
    "gateway reference": "its id there",
}


def _in_order(facts: Mapping[str, str]) -> dict[str, str]:
    known = {label: facts[name] for name, label in _NEWS_FACTS.items() if name in facts}
    return known | {name: value for name, value in facts.items() if name not in _NEWS_FACTS}


def title_of(event: Event) -> str:
    """Return what happened as one sentence."""
    if event.kind == "late-news":
        return _NEWS[_news(event.detail)]
    return _TITLES.get(event.kind, event.kind.replace("-", " ").capitalize())


def _news(detail: Mapping[str, Any]) -> News:
    word = detail.get("news")
    return News(word) if word in set(News) else News.OTHERWISE


def _refused_repeat(event: Event) -> Occurrence:
    differing = [_PARTS.get(part, f"the {part}") for part in event.detail.get("differing", ())]
    if not differing:
        title = "The caller repeated the request and was told that the outcome is not known yet"
        return Occurrence(title, {}, "", "")
    title = "Refused: another request came under this key"
    facts = {"what differs": ", ".join(differing), "this one": "changed nothing"}
    if "body" in event.detail["differing"]:
        facts["which member of the body"] = "cannot be told: no body is kept"
    return Occurrence(title, facts, "", "warn")
