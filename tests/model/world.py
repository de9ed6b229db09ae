"""One key, its claimants and the other side, as one value: each field is a fact that some step can change.

Token numbers, times and process ids are abstracted: a process `owns` the key until the token moves; a lease is live or
over; a look-up is qualified if no message of an ended series was on the wire when it began.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

State = Literal["none", "in_progress", "completed", "released", "unknown"]
Held = Literal["", "lease", "lapsed", "due"]
"""What holds an in-progress key: a lease, one that has run out, or the date at which deferred work is due."""
Told = Literal["", "success", "no"]
"""What the answer of a completed key says."""
Place = Literal["phase one", "runs", "journalled", "checked", "sends", "last phase"]
"""Where a process is: with an uncommitted claim; with a committed run and no call; then within one outside call."""
Word = Literal["", "applied", "refused", "declined", "lost"]
"""What came back from a send: it was done, it was stated not to be done, a business no, or nothing that tells."""
Ending = Literal["applied", "no", "nothing", "maybe", "open"]
"""How a sender's series ended: `no` is the other side's own; `nothing` is certain too (not sent, absent); `open` is
that of a process that died within it."""
Message = tuple[int, int]
"""One request to the other side: its step, and the rotation of its downstream key."""

SENDERS: frozenset[Place] = frozenset({"journalled", "checked", "sends", "last phase"})
HOLDS_A_LOCK: frozenset[Place] = frozenset({"phase one", "last phase"})
UNSETTLED: frozenset[Ending] = frozenset({"maybe", "open"})


class Process(NamedTuple):
    """One claimant: a request, a run of deferred work, or a reconciler that resumes."""

    place: Place
    owns: bool
    in_time: bool = True
    step: int = -1
    rotation: int = -1
    sends_left: int = 0
    maybe: bool = False
    """An earlier send of the series may have been applied."""
    word: Word = ""
    halted: bool = False
    """It is never scheduled again: SIGSTOP, or a host that was cut off."""

    @property
    def message(self) -> Message:
        return self.step, self.rotation


class LookUp(NamedTuple):
    """A look-up under way: what it sees, and what "not found" will prove."""

    found: frozenset[int]
    declined: frozenset[int]
    quiet: Literal["no", "ended", "all"]
    """Nothing on the wire: cannot be said yet; of any series that ended; of anybody."""
    live: int


class World(NamedTuple):
    """Everything at one moment."""

    # The key's row.
    state: State = "none"
    told: Told = ""
    held: Held = ""
    watched: bool = False
    attempts: int = 0
    # Its journal: the rotation in force of each step, and the endings of senders that are no more.
    rotations: tuple[int, ...] = ()
    endings: frozenset[tuple[int, int, Ending]] = frozenset()
    # Who is at work, and what is on the wire without a sender.
    processes: tuple[Process, ...] = ()
    wire: tuple[Message, ...] = ()
    lookup: LookUp | None = None
    # The other side.
    effects: tuple[Message, ...] = ()
    declines: frozenset[Message] = frozenset()
    memory: Literal["fresh", "over", "renewed"] = "fresh"
    # What came of it here.
    rows: tuple[int, ...] = ()
    follow_ups: int = 0
    news: bool = False
    reported: frozenset[Message] = frozenset()
    # What may still go wrong.
    crashes: int = 0
    halts: int = 0
    losses: int = 0
    refusals: int = 0
    decisions: int = 0


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What is tried: the other side, the handler, and how much goes wrong."""

    keyed: bool = True
    steps: int = 1
    deferred: bool = False
    at_once: int = 2
    """Live processes at most."""
    attempts: int = 2
    sends: int = 2
    crashes: int = 1
    halts: int = 0
    losses: int = 1
    refusals: int = 1
    decisions: int = 0
    """By staff."""
    webhooks: bool = False
    proof: bool = True
    """Whether the death of a process can be proven."""
    forgets: bool = False
    """Whether the gateway's key memory can be over."""
    cancels: bool = False
    verdict_after: bool = False
    """The handler may raise a verdict after its last step was applied."""
    late: bool = True
    """A message may outlive the lease: more than R11 allows."""

    def start(self) -> World:
        return World(
            rotations=(0,) * self.steps,
            rows=(0,) * self.steps,
            crashes=self.crashes,
            halts=self.halts,
            losses=self.losses,
            refusals=self.refusals,
            decisions=self.decisions,
        )


@dataclass(frozen=True, kw_only=True)
class Rules:
    """The wordings that close a hole, each of which can be taken out to see the hole."""

    evidence_from_anyone: bool = True
    """R22: the ending of a superseded sender is kept."""
    row_per_sender: bool = True
    """R22: every sender has its own row; else one per step and downstream key."""
    all_claims: bool = True
    """R14: the journal decides over all claims of the generation; else only this claim's own steps count."""
    verdict_is_unfinished: bool = True
    """R14: a verdict after an applied step does not complete the key."""
    ambiguous_is_unknown: bool = True
    """R14 before R33: an ambiguous attempt of deferred work does not simply wait again."""
    rows_found_again: bool = True
    """R13: rows of a committed phase are found by a repeated run, not made again."""
    idle_limit: bool = True
    """R13: the server ends a phase that sits idle."""
    fenced: bool = True
    """R12: who was superseded settles nothing."""
    lapse_is_unknown: bool = True
    """R11: a key whose lease ran out is never simply run again."""
    undeclared_is_ambiguous: bool = True
    """R24: a 503 of which nobody declared what it means may have been executed."""
    one_send_unkeyed: bool = True
    """R23: an ambiguous send is not repeated where the other side honours no keys."""
    absence_keeps_the_key: bool = True
    """R23: absence in a look-up never rotates the downstream key."""
    old_key_forbidden: bool = True
    """R23: past the key memory nothing is sent under the old key."""
    settling_time: bool = True
    """R36: "not found" counts only after the settling time."""
    version: bool = True
    """R36: a look-up of a journal that moved settles nothing."""
    dead_first: bool = True
    """R36: death is proven, and the settling time passes, before the look-up begins."""
    watch: bool = True
    """R36, R39: a key that was settled with a send open is looked up on."""
    open_never_gives_up: bool = True
    """R36: deferred work is not completed with its error while a sender may still act."""
    cancel_guard: bool = True
    """R34: no cancelling over an open or ambiguous step."""
    staff_bound: bool = True
    """R37: no release by hand where a sender may still act and the other side honours no keys."""
    watch_by_hand: bool = True
    """R37: what staff close over a send that ended ambiguous is watched too."""
    staff_wait: bool = True
    """R36: staff, too, wait for the settling time before they say "no"."""
