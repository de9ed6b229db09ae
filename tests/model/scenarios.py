"""What is searched: every rule in force, and each rule taken out."""

from typing import Any, NamedTuple

from tests.model.search import (
    DENIED,
    DOUBLE_EFFECT,
    FOLLOW_UP_TWICE,
    NEVER_ENDS,
    ROWS_TWICE,
)
from tests.model.world import Setting


def _setting(**more: Any) -> Setting:
    return Setting(**{"late": False, "sends": 1, "crashes": 0, "losses": 0, "refusals": 0, **more})


SOME_OF_ALL = {"late": True, "sends": 2, "crashes": 1, "losses": 1, "refusals": 1}

SUITE = {
    "keyed, a no and a loss": _setting(losses=1, refusals=1, sends=2),
    "keyed, a crash and a loss": _setting(crashes=1, losses=1),
    "keyed, a crash and a halt": _setting(crashes=1, halts=1),
    "keyed, a crash without proof": _setting(crashes=1, proof=False, losses=1),
    "keyed, webhook and a crash": _setting(crashes=1, webhooks=True, refusals=1),
    "keyed, staff": _setting(losses=1, decisions=1, crashes=1),
    "keyed, its memory ends": _setting(forgets=True, crashes=1, losses=1),
    "keyed, a verdict after the call": _setting(verdict_after=True, crashes=1, losses=1),
    "keyed, two steps and a crash": _setting(steps=2, crashes=1),
    "keyed, two steps and a loss": _setting(steps=2, losses=1),
    "unkeyed": _setting(keyed=False, **SOME_OF_ALL),
    "unkeyed, staff and a halt": _setting(keyed=False, **SOME_OF_ALL, decisions=1, halts=1),
    "unkeyed without proof": _setting(keyed=False, **SOME_OF_ALL, decisions=1, proof=False),
    "unkeyed, two steps": _setting(keyed=False, steps=2, crashes=1, losses=1, refusals=1),
    "deferred": _setting(deferred=True, **SOME_OF_ALL, cancels=True),
    "deferred, staff and a halt": _setting(deferred=True, **SOME_OF_ALL, decisions=1, halts=1),
    "deferred, unkeyed": _setting(
        deferred=True, keyed=False, **SOME_OF_ALL, decisions=1, halts=1, cancels=True
    ),
    "deferred, two steps": _setting(deferred=True, steps=2, crashes=1, losses=1, cancels=True),
}

CHAOS = {
    "keyed": _setting(**SOME_OF_ALL, halts=1),
    "keyed, webhook and staff": _setting(**SOME_OF_ALL, webhooks=True, decisions=1),
    "keyed, its memory ends": _setting(**SOME_OF_ALL, forgets=True),
    "keyed, without proof": _setting(**SOME_OF_ALL, halts=1, proof=False),
    "keyed, two of each": _setting(sends=2, crashes=2, losses=2, refusals=2),
    "keyed, three at once": _setting(at_once=3, crashes=1, losses=1, refusals=1),
    "keyed, two steps": _setting(steps=2, crashes=1, losses=1, refusals=1, webhooks=True),
    "unkeyed, three at once": _setting(
        keyed=False, at_once=3, late=True, crashes=2, halts=1, losses=2, refusals=2, decisions=1
    ),
    "unkeyed, two steps": _setting(
        keyed=False, steps=2, **SOME_OF_ALL, halts=1, webhooks=True, decisions=1
    ),
    "deferred, three at once": _setting(
        deferred=True, at_once=3, attempts=3, **SOME_OF_ALL, halts=1, cancels=True
    ),
    "deferred, two steps": _setting(deferred=True, steps=2, **SOME_OF_ALL, webhooks=True),
}


class Hole(NamedTuple):
    """A setting in which the rule is needed, and what happens there without it."""

    setting: Setting
    fault: str
    also_out: tuple[str, ...] = ()
    """A second line of defence that covers the same hole."""


_UNKEYED: dict[str, Any] = {"keyed": False}
_DEFERRED: dict[str, Any] = {"deferred": True}

HOLES = {
    "evidence_from_anyone": Hole(_setting(**_UNKEYED), DOUBLE_EFFECT),
    "row_per_sender": Hole(_setting(refusals=1), DOUBLE_EFFECT),
    "all_claims": Hole(_setting(refusals=1), DOUBLE_EFFECT),
    "verdict_is_unfinished": Hole(_setting(verdict_after=True), DENIED),
    "ambiguous_is_unknown": Hole(_setting(**_DEFERRED, losses=2), DENIED),
    "rows_found_again": Hole(_setting(), ROWS_TWICE),
    "idle_limit": Hole(_setting(halts=1), NEVER_ENDS),
    "fenced": Hole(_setting(), FOLLOW_UP_TWICE),
    "lapse_is_unknown": Hole(_setting(**_UNKEYED), FOLLOW_UP_TWICE),
    "undeclared_is_ambiguous": Hole(_setting(losses=1), DOUBLE_EFFECT),
    "one_send_unkeyed": Hole(_setting(**_UNKEYED, losses=1, sends=2), DOUBLE_EFFECT),
    "absence_keeps_the_key": Hole(_setting(losses=1), DOUBLE_EFFECT, ("settling_time",)),
    "old_key_forbidden": Hole(_setting(forgets=True), DOUBLE_EFFECT),
    "settling_time": Hole(_setting(**_UNKEYED, losses=1), DOUBLE_EFFECT),
    "version": Hole(_setting(**_UNKEYED, losses=1), DOUBLE_EFFECT),
    "dead_first": Hole(_setting(**_UNKEYED, crashes=1), DOUBLE_EFFECT),
    "watch": Hole(_setting(crashes=1), DENIED),
    "open_never_gives_up": Hole(_setting(**_DEFERRED, attempts=1, crashes=1), DENIED),
    "cancel_guard": Hole(_setting(**_DEFERRED, cancels=True, crashes=1), DENIED),
    "staff_bound": Hole(_setting(**_UNKEYED, decisions=1, losses=1), DOUBLE_EFFECT),
    "watch_by_hand": Hole(_setting(**_UNKEYED, decisions=1, losses=1), DENIED),
    "staff_wait": Hole(_setting(decisions=1, losses=1), DENIED),
}
