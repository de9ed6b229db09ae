"""What there is to know of one key, from every side: the client, the ledger, our books, the gateway."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from idempotency.models import Event, Key, Operation, Step
from payments.models import Payment, Payout, Refund
from tests.faults.machine.talk import Talk
from tests.faults.machine.witness import Move, moves

BOOKS: dict[str, Any] = {"charge": Payment, "refund": Refund, "payout": Payout}
Effect = Mapping[str, Any]


@dataclass(frozen=True)
class Facts:
    """One client's intent and what became of it."""

    name: str
    talk: Talk
    effect: str
    """The kind of effect that it should have: charge, refund or payout; "" where it has none outside."""
    key: Key | None
    work: Operation | None
    row: Any
    """Our business row, or None."""
    effects: list[Effect]
    moves: list[Move]
    steps: list[Step]
    late_news: list[Event]

    @property
    def state(self) -> str:
        return self.key.state if self.key else "(none)"

    @property
    def shown_to_a_person(self) -> bool:
        return self.key is not None and self.key.needs_person_since is not None

    def __str__(self) -> str:
        why = (
            f", needs a person: {self.key.needs_person_reason}"
            if self.key and self.shown_to_a_person
            else ""
        )
        senders = [
            f"{step.name}{'' if step.keyed else ' unkeyed'}: "
            + ", ".join(str(sender.ending or "open") for sender in step.senders.all())
            for step in self.steps
        ]
        lines = (
            f"{self.name}",
            f"  client   {self.talk}",
            f"  ledger   {self.key and self.key.id} {self.state}{why}; {'; '.join(senders)}",
            f"  books    {getattr(self.row, 'status', None)} {getattr(self.row, 'pk', None)}",
            f"  gateway  {[(e['kind'], e['amount'], e['id']) for e in self.effects]}",
            f"  history  {'; '.join(map(str, self.moves))}",
        )
        return "\n".join(lines)


@dataclass(frozen=True)
class World:
    """All facts of a run together."""

    facts: list[Facts]
    effects: list[Effect]


def gather(asked: Collection[tuple[str, Talk, str]], effects: list[Effect]) -> World:
    """Read everything about these intents: a name, the talk, the kind of effect of each."""
    by_reference: dict[str, list[Effect]] = defaultdict(list)
    for moved in effects:
        by_reference[str(moved["reference"])].append(moved)
    keys = {key.key: key for key in Key.objects.filter(key__in=[talk.key for _, talk, _ in asked])}
    ids = [key.id for key in keys.values()]
    rows: dict[Any, Any] = {
        row.key_id: row for books in BOOKS.values() for row in books.objects.filter(key_id__in=ids)
    }
    works: dict[Any, Operation] = {
        work.key_id: work for work in Operation.objects.filter(key_id__in=ids)
    }
    seen = _by_key(moves(ids))
    steps = _by_key(Step.objects.filter(key_id__in=ids).prefetch_related("senders").order_by("id"))
    news = _by_key(Event.objects.filter(kind="late-news", key_id__in=ids))
    facts = []
    for name, talk, effect in asked:
        key = keys.get(talk.key)
        key_id = key.id if key else None
        row = rows.get(key_id)
        facts.append(
            Facts(
                name=name,
                talk=talk,
                effect=effect,
                key=key,
                work=works.get(key_id),
                row=row,
                effects=by_reference[str(row.pk)] if row is not None else [],
                moves=seen[key_id],
                steps=steps[key_id],
                late_news=news[key_id],
            )
        )
    return World(facts, effects)


def _by_key(things: Iterable[Any]) -> dict[Any, list[Any]]:
    found: dict[Any, list[Any]] = defaultdict(list)
    for thing in things:
        found[thing.key_id].append(thing)
    return found
