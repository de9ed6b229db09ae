"""Every write of a key's state, as data: from it come the test of each transition and the drawing in the docs.

    from where · event · to where, provided that … · the statement that writes it · the rule

What is not listed is refused: a statement that finds the key elsewhere writes nothing, and says so.
"""

import enum
from collections.abc import Iterator
from dataclasses import dataclass


class Position(enum.StrEnum):
    """Where a key stands: its state, as far as the guards tell them apart."""

    NONE = "none"
    LEASED = "in_progress, leased"
    RUNNING = "in_progress, running"
    """Leased too, by a run of deferred work."""
    LAPSED = "in_progress, lapsed"
    """The lease has run out and nobody has noticed yet; its owner may still settle."""
    WAITING = "in_progress, waiting"
    """Deferred work that is due now or later; nobody owns it."""
    COMPLETED = "completed"
    RELEASED = "released"
    UNKNOWN = "unknown"
    UNFINISHED = "unknown, unfinished"
    EXPIRED = "settled, expired"
    """Completed or released longer than `KEY_TTL` ago."""

    @property
    def state(self) -> str:
        """The state in the key's row."""
        return self.value.partition(",")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """One way from one position to another."""

    event: str
    before: Position
    after: Position
    guard: str
    """What must hold besides state and token."""
    written_by: str
    """Module and function within the ledger."""
    rule: str


_OWNED = (Position.LEASED, Position.RUNNING, Position.LAPSED)
"""Where a claim holds the key: its statements carry the token."""
_ASIDE = (Position.UNKNOWN, Position.UNFINISHED)


def _ways(
    event: str,
    before: tuple[Position, ...],
    after: Position,
    guard: str,
    written_by: str,
    rule: str,
) -> Iterator[Transition]:
    for position in before:
        yield Transition(
            event=event,
            before=position,
            after=after,
            guard=guard,
            written_by=written_by,
            rule=rule,
        )


P = Position

TRANSITIONS: tuple[Transition, ...] = (
    *_ways(
        "begin",
        (P.NONE,),
        P.LEASED,
        "no row of that identity; with the first outside call or deferred work of a claim",
        "draft.write, journal.begin",
        "R8",
    ),
    *_ways(
        "answer",
        (P.NONE,),
        P.COMPLETED,
        "no row of that identity; with the answer of a claim that has called nobody",
        "settlement.complete",
        "R8, R14",
    ),
    *_ways(
        "claim",
        (P.RELEASED, P.UNFINISHED),
        P.LEASED,
        "same fingerprint, journal as it was read; the token moves",
        "acquire.acquire",
        "R9, R14",
    ),
    *_ways(
        "claim",
        (P.EXPIRED,),
        P.LEASED,
        "past KEY_TTL; token and generation move",
        "acquire.acquire",
        "R20",
    ),
    *_ways(
        "complete",
        (P.LEASED, P.LAPSED),
        P.COMPLETED,
        "not deferred, no step open; with a refusal, none applied",
        "settlement.complete",
        "R14, R15",
    ),
    *_ways(
        "complete the work",
        (P.RUNNING,),
        P.COMPLETED,
        "deferred, no step open; with an error, none applied",
        "settlement.complete_deferred",
        "R31",
    ),
    *_ways(
        "promise",
        (P.LEASED, P.LAPSED),
        P.WAITING,
        "not deferred yet, its work written, no step open",
        "settlement.promise",
        "R31, R32",
    ),
    *_ways(
        "take",
        (P.WAITING,),
        P.RUNNING,
        "due, an attempt left; attempt and token move",
        "due.take",
        "R32, R33",
    ),
    *_ways(
        "wait again",
        (P.RUNNING,),
        P.WAITING,
        "deferred, no step open or applied; the token moves",
        "settlement.wait_again",
        "R33, R34",
    ),
    *_ways(
        "cancel",
        (P.WAITING,),
        P.COMPLETED,
        "deferred, no step open or applied; the token moves",
        "due.cancel",
        "R34",
    ),
    *_ways(
        "release",
        (P.LEASED, P.LAPSED),
        P.RELEASED,
        "a call begun, not deferred, no step open or applied; the token moves",
        "settlement.release",
        "R14, R36",
    ),
    *_ways(
        "mark unknown",
        _OWNED,
        P.UNKNOWN,
        "the token moves",
        "settlement.mark_unknown",
        "R12, R14",
    ),
    *_ways(
        "lapse",
        (P.LAPSED,),
        P.UNKNOWN,
        "the lease is over, a call or a deferred run begun; the token moves",
        "settlement.lapse",
        "R11",
    ),
    *_ways(
        "take over",
        _ASIDE,
        P.LEASED,
        "the journal is that of the evidence; the token moves",
        "settlement.take_over",
        "R36, R37",
    ),
    *_ways("purge", (P.EXPIRED,), P.NONE, "past KEY_TTL, not watched", "purge.purge_batch", "R21"),
)

EVENTS: tuple[str, ...] = tuple(dict.fromkeys(each.event for each in TRANSITIONS))


def find(*, event: str, before: Position) -> Transition | None:
    """Return the transition, or None: then the event is refused there and changes nothing."""
    return next((t for t in TRANSITIONS if (t.event, t.before) == (event, before)), None)


# -- for the documentation ---------------------------------------------------------------------------------------------


def drawing() -> str:
    """Return the lifecycle as a Mermaid state diagram."""
    names = {position: f"s{number}" for number, position in enumerate(Position)}
    lines = ["stateDiagram-v2"]
    lines += [f'    state "{p}" as {names[p]}' for p in Position if p is not P.NONE]
    names[P.NONE] = "[*]"
    together: dict[tuple[Position, Position], list[str]] = {}
    for each in TRANSITIONS:
        together.setdefault((each.before, each.after), []).append(each.event)
    lines += [
        f"    {names[before]} --> {names[after]}: {', '.join(events)}"
        for (before, after), events in together.items()
    ]
    lines += [f"    {names[p]} --> {names[P.EXPIRED]}: KEY_TTL" for p in (P.COMPLETED, P.RELEASED)]
    lines += [
        f"    {names[p]} --> {names[P.LAPSED]}: the lease runs out" for p in (P.LEASED, P.RUNNING)
    ]
    return "\n".join(lines)


def table() -> str:
    """Return every transition as a Markdown table."""
    rows = [
        f"| {t.before} | {t.event} | {t.after} | {t.guard} | `{t.written_by}` | {t.rule} |"
        for t in TRANSITIONS
    ]
    head = "| from | event | to | provided that | written by | rule |"
    return "\n".join((head, "|---|---|---|---|---|---|", *rows))


def markdown() -> str:
    """Return drawing and table as a page."""
    return (
        "# Every write of a key's state\n\n"
        "Generated by `manage.py idempotency_transitions` from `idempotency/ledger/transitions.py`; a test holds that "
        "it is current.\nEach write is one statement that carries state and token in its `WHERE`; what is not listed "
        "is refused and changes nothing.\nTwo arrows are no writes: a lease runs out and a settled key grows old by "
        "the database's clock.\nWhether an unknown key is unfinished is read off the journal, when the key becomes "
        "unknown and with each proof that is written since (`endings.weigh`).\n\n"
        f"```mermaid\n{drawing()}\n```\n\n{table()}\n"
    )
