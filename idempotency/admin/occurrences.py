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
    "staff-ask": "Somebody asked the gateway from this console",
    "staff-settle": "Somebody settled it by hand from this console",
    "staff-retry": "Somebody started a new cycle of runs",
    "staff-cancel": "Somebody cancelled the work",
    "staff-rerun": "Somebody ran the message again",
    "staff-breaker": "Somebody forced a circuit breaker",
    "staff-export": "Somebody exported a list",
    "staff-ask-many": "Somebody asked the gateway about many at once",
    "staff-retry-many": "Somebody retried many at once",
    "staff-cancel-many": "Somebody cancelled many at once",
    "staff-refused": "Refused: what was asked for is not allowed now",
    "staff-reveal": "Somebody looked at the stored data",
}
_NEWS = {
    News.OTHERWISE: "Late news: it happened although the key says otherwise",
    News.TWICE: "Late news: the other side did it a second time",
    News.DIFFERENT: "Late news: the other side did something else than was asked for",
    News.UNRECORDED: "Late news: it happened, and nothing here knows of it",
}
_DECISIONS = {
    "not-yet": "not found, and too recent for that to prove anything",
    "pending": "known there, and not decided",
    "unreachable": "the other side could not be asked",
    "needs-person": "a person has to decide",
    "unfinished": "a part of it happened, and the work is not done",
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
    return Occurrence(title, facts, "", "warn")
