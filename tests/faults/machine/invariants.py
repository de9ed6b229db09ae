"""What must be so of every key, whatever befell it. To add an invariant, write a function here.

@of_each_key
def my_invariant(facts: Facts) -> Iterator[str]:
    if …:
        yield "what is wrong"
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from idempotency.models import Key, Operation, Step
from idempotency.types import Ending, State
from tests.faults.machine.facts import BOOKS, Facts, World

SETTLED = ("completed", "released")
DID_NOT_HAPPEN = ("declined", "refused", "abandoned", "not_charged")
# What the contract allows of a 5xx.
HONEST_5XX = (503, 504)

OfKey = Callable[[Facts], Iterator[str]]
OfWorld = Callable[[World], Iterator[str]]
_of_each_key: list[OfKey] = []
_at_any_time: list[OfKey] = []
_of_all: list[OfWorld] = []


def of_each_key(check: OfKey) -> OfKey:
    """Have it checked for each key, at the end."""
    _of_each_key.append(check)
    return check


def at_any_time(check: OfKey) -> OfKey:
    """Have it checked for each key, during the run and at the end."""
    _at_any_time.append(check)
    return check


def of_all(check: OfWorld) -> OfWorld:
    """Have it checked for the whole run, at the end."""
    _of_all.append(check)
    return check


# -- at any time ---------------------------------------------------------------------------------


@at_any_time
def the_effect_happens_at_most_once(facts: Facts) -> Iterator[str]:
    if len(facts.effects) > 1:
        yield f"the money moved {len(facts.effects)} times"


@at_any_time
def it_happened_where_a_client_was_told_so(facts: Facts) -> Iterator[str]:
    if facts.effect and facts.talk.told_success and not facts.effects:
        yield "the client was told that it happened, and it did not"


@at_any_time
def nothing_is_settled_twice(facts: Facts) -> Iterator[str]:
    """A final answer is given once per life of a key, and never taken back; the books move to success once."""
    completed = [m for m in facts.moves if m.table == "idempotency_key" and m.new == "completed"]
    lives = [move.generation for move in completed]
    if len(lives) != len(set(lives)):
        yield f"completed {len(lives)} times"
    for move in facts.moves:
        if move.table == "idempotency_key" and move.old == "completed":
            yield f"a final answer was taken back: {move}"
    done = [m for m in facts.moves if m.table != "idempotency_key" and m.new == "succeeded"]
    if len(done) > 1:
        yield f"our books counted it {len(done)} times"


@at_any_time
def every_repeat_hears_the_same(facts: Facts) -> Iterator[str]:
    """Status, bytes and content type of the final word never change (R16, R31)."""
    final = [h for h in facts.talk.heard if h.final and (h.status < 300 or h.replayed)]
    versions = {(h.status, h.body, h.headers.get("Content-Type")) for h in final}
    if len(versions) > 1:
        yield f"{len(versions)} versions of the answer: {sorted(str(v) for v in versions)}"
    first = [h for h in facts.talk.heard if h.final and h.status < 300 and not h.replayed]
    if len(first) > 1:
        yield f"{len(first)} requests were answered as if each were the first"


@at_any_time
def no_error_of_the_server(facts: Facts) -> Iterator[str]:
    for heard in chain(facts.talk.heard, facts.talk.told):
        if heard.status >= 500 and heard.status not in HONEST_5XX:
            yield f"{heard}: {heard.body[:300]!r}"


# -- at the end ----------------------------------------------------------------------------------


@of_each_key
def it_did_not_happen_where_that_was_the_final_word(facts: Facts) -> Iterator[str]:
    refused = getattr(facts.row, "status", "") in DID_NOT_HAPPEN
    final = facts.talk.told_failure or refused or facts.state == "released"
    if final and facts.effects and not facts.late_news:
        yield f"the final word is that it did not happen ({facts.state}), and it did"


@of_each_key
def it_is_settled_or_shown_to_a_person(facts: Facts) -> Iterator[str]:
    if facts.state in (*SETTLED, "(none)"):
        return
    if not facts.shown_to_a_person:
        yield f"it is still {facts.state}"
    elif not may_need_a_person(facts.steps, facts.work):
        yield f"a person is asked without need: {facts.key and facts.key.needs_person_reason}"


def may_need_a_person(steps: Iterable[Step], work: Operation | None) -> bool:
    """Whether no machine may decide.

    A send that may still act without a key; or work that was done in part, and then refused or tried too often.
    """
    endings = [(step, sender.ending) for step in steps for sender in step.senders.all()]
    unkeyed = any(not step.keyed and end in (None, Ending.AMBIGUOUS) for step, end in endings)
    applied = any(step.applied_at for step, _ in endings)
    refused = any(end == Ending.REJECTED for _, end in endings)
    spent = work is not None and work.cycle_attempts == work.max_attempts
    return unkeyed or (applied and (refused or spent))


@of_each_key
def what_happened_is_in_our_books(facts: Facts) -> Iterator[str]:
    if not facts.effect or facts.state == "unknown":
        return
    booked = facts.row is not None and facts.row.status == "succeeded"
    if booked != bool(facts.effects) and not facts.late_news:
        yield f"our books say {getattr(facts.row, 'status', None)}, the gateway {len(facts.effects)}"
    for effect in facts.effects:
        if effect["kind"] != facts.effect or effect["amount"] != facts.row.amount:
            yield f"the gateway moved {effect['kind']} of {effect['amount']}"


# -- of all --------------------------------------------------------------------------------------


@of_all
def no_money_moved_that_we_know_nothing_of(world: World) -> Iterator[str]:
    known = {
        str(pk) for books in BOOKS.values() for pk in books.objects.values_list("pk", flat=True)
    }
    yield from (str(effect) for effect in world.effects if str(effect["reference"]) not in known)


@of_all
def the_sums_agree(world: World) -> Iterator[str]:
    """Our books' sums are the gateway's, apart from keys of which a person knows that they are open."""
    open_rows = {
        str(f.row.pk)
        for f in world.facts
        if f.row is not None and (f.state == "unknown" or f.late_news)
    }
    for kind, model in BOOKS.items():
        booked = sum(
            row.amount
            for row in model.objects.filter(status="succeeded")
            if str(row.pk) not in open_rows
        )
        moved = sum(
            effect["amount"]
            for effect in world.effects
            if effect["kind"] == kind and effect["reference"] not in open_rows
        )
        if booked != moved:
            yield f"{kind}s: our books say {booked}, the gateway {moved}"


def open_keys() -> list[Key]:
    """Return the keys that machines have still to settle."""
    unsettled = Key.objects.filter(state__in=[State.IN_PROGRESS, State.UNKNOWN])
    return [
        key
        for key in unsettled.select_related("work").prefetch_related("steps__senders")
        if key.needs_person_since is None
        or not may_need_a_person(key.steps.all(), getattr(key, "work", None))
    ]


# -- checking ------------------------------------------------------------------------------------


def check(world: World, *, replay: str, ended: bool = True) -> None:
    """Check every invariant that applies. Raises: AssertionError, with all that was wrong and how to replay it."""
    wrong = []
    for facts in world.facts:
        for invariant in (*_at_any_time, *(_of_each_key if ended else ())):
            said = "; ".join(invariant(facts))
            if said:
                wrong.append(f"{invariant.__name__}: {said}\n{facts}")
    for rule in _of_all if ended else ():
        wrong += [f"{rule.__name__}: {said}" for said in rule(world)]
    if wrong:
        raise AssertionError("\n\n".join([f"{len(wrong)} broken; {replay}", *wrong]))
