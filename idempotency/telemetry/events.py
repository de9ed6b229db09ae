"""The catalogue: every event that is emitted here. It is published: a rename is breaking."""

from dataclasses import dataclass
from typing import ClassVar

from idempotency.telemetry.bus import Event

# -- outside calls ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AttemptEnded(Event):
    """One attempt of a guarded call came back, with or without an answer."""

    LABELS: ClassVar[tuple[str, ...]] = ("guard", "outcome", "reason")

    guard: str
    outcome: str
    """`success`, `rejected`, `fatal`, `transient` or `ambiguous`."""
    reason: str
    """The classifier's word, e.g. `read-timeout`."""
    number: int
    seconds: float


@dataclass(frozen=True, slots=True)
class CallRefused(Event):
    """A guard did not let an attempt begin."""

    LABELS: ClassVar[tuple[str, ...]] = ("guard", "reason")

    guard: str
    reason: str
    """`circuit-open`, `overloaded`, `no-time`, `retry-budget` or `superseded`."""


@dataclass(frozen=True, slots=True)
class CallEnded(Event):
    """A guarded call, a series of attempts, is over."""

    LABELS: ClassVar[tuple[str, ...]] = ("guard", "ending")

    guard: str
    ending: str
    """`success`, `rejected`, `failed`, `unknown` or `cancelled`."""
    attempts: int
    """Attempts begun; 0 when the call was refused before the first."""
    seconds: float


@dataclass(frozen=True, slots=True)
class BreakerChanged(Event):
    """A circuit breaker moved to another state, or staff forced it."""

    LABELS: ClassVar[tuple[str, ...]] = ("breaker", "before", "after", "cause")

    breaker: str
    before: str
    """`closed`, `open`, `half_open`, `forced_open` or `forced_closed`; so is `after`."""
    after: str
    cause: str
    """`failures`, `timer`, `probe-failed`, `probes-succeeded` or `staff`."""
    actor: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class StoreLost(Event):
    """A shared store does not answer: this process goes on with its own copy of the state."""

    LABELS: ClassVar[tuple[str, ...]] = ("store",)

    store: str
    error: str


@dataclass(frozen=True, slots=True)
class StoreFound(Event):
    """A shared store answers again."""

    LABELS: ClassVar[tuple[str, ...]] = ("store",)

    store: str


# -- the server's own protection -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AdmissionRefused(Event):
    """A request was turned away before any work was done for it."""

    LABELS: ClassVar[tuple[str, ...]] = ("admission", "reason")

    admission: str
    reason: str
    """`client-gone`, `no-time`, `in-flight` or `backlog`."""


@dataclass(frozen=True, slots=True)
class SourceDegraded(Event):
    """A non-critical source gave no live value; the answer stands on a lower rung."""

    LABELS: ClassVar[tuple[str, ...]] = ("source", "rung")

    source: str
    rung: str
    """`stale`, `default` or `skipped`."""


@dataclass(frozen=True, slots=True)
class ReadOnlySwitched(Event):
    """Staff switched read-only mode on or off."""

    LABELS: ClassVar[tuple[str, ...]] = ("mode",)

    mode: str
    """`on` or `off`."""
    actor: str
    reason: str


# -- keys ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RequestRefused(Event):
    """A request was refused before a key was claimed for it; nothing was run."""

    LABELS: ClassVar[tuple[str, ...]] = ("operation", "reason")

    operation: str
    reason: str
    """The problem's code, e.g. `key-missing` or `not-authenticated`; the status of an error that is the host's own."""


@dataclass(frozen=True, slots=True)
class KeyMet(Event):
    """A request with a key was answered from what the ledger knew; nothing was run."""

    LABELS: ClassVar[tuple[str, ...]] = ("operation", "answer")

    operation: str
    answer: str
    """`replay`, `in-progress`, `unknown`, `reused`, `expired` or `unavailable`."""
    key_id: str = ""


@dataclass(frozen=True, slots=True)
class KeySettled(Event):
    """A key's state moved to an ending, and that is committed; told once, whoever moved it."""

    LABELS: ClassVar[tuple[str, ...]] = ("operation", "state", "by")

    operation: str
    state: str
    """`completed`, `released` or `unknown`."""
    by: str
    """`request`, `worker`, `message`, `reconciler`, `caller` or `staff`; of an unknown one `run` or `lease`."""
    seconds: float
    """Since the key was first claimed."""
    deferred: bool
    key_id: str
    key_hash: str
    """Tells two keys apart in a log without showing them."""
    request_id: str


@dataclass(frozen=True, slots=True)
class PersonNeeded(Event):
    """A key waits for a person from now on."""

    LABELS: ClassVar[tuple[str, ...]] = ("operation",)

    operation: str
    reason: str
    key_id: str


@dataclass(frozen=True, slots=True)
class LateNews(Event):
    """Something happened outside that the key's settlement does not say."""

    LABELS: ClassVar[tuple[str, ...]] = ("heard_by",)

    heard_by: str
    """`reconciler`, or the host's word, e.g. `event`."""
    state: str
    key_id: str
    """Empty where nobody knows of which key it is."""


@dataclass(frozen=True, slots=True)
class KeyReconciled(Event):
    """A key whose outcome was in doubt has been asked about."""

    LABELS: ClassVar[tuple[str, ...]] = ("decision",)

    decision: str
    """The word of the report, e.g. `applied`, `not-applied`, `unreachable` or `needs-person`."""
    key_id: str


@dataclass(frozen=True, slots=True)
class RunEnded(Event):
    """A claimed key's work has ended."""

    LABELS: ClassVar[tuple[str, ...]] = ("operation", "by", "ending")

    operation: str
    by: str
    """`request`, `worker`, `reconciler` or `staff`."""
    ending: str
    """`settled`, `free`, `unknown` or `overtaken`."""
    seconds: float
    key_id: str = ""


# -- deferred work ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OperationMoved(Event):
    """A run of deferred work has ended, or it was cancelled; emitted within the settling transaction."""

    LABELS: ClassVar[tuple[str, ...]] = ("operation", "to")

    operation: str
    to: str
    """`completed`, `refused`, `gave-up`, `cancelled` or `waits`."""
    attempts: int
    """Runs begun so far."""
    key_id: str = ""


@dataclass(frozen=True, slots=True)
class NudgeLost(Event):
    """A message to the workers was not published; the sweep will find the work."""

    LABELS: ClassVar[tuple[str, ...]] = ("reason",)

    reason: str
    """`queue-full`, or the error's class."""


# -- operating it ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TurnEnded(Event):
    """One turn of a recurring task is over."""

    LABELS: ClassVar[tuple[str, ...]] = ("task", "result")

    task: str
    """`wake`, `reconcile`, `purge`, or one of the host's own."""
    result: str
    """`ok` or `failed`."""
    seconds: float


@dataclass(frozen=True, slots=True)
class StaffActed(Event):
    """A person did something in the console, or was refused it."""

    LABELS: ClassVar[tuple[str, ...]] = ("action",)

    action: str
    """The kind of the event in the audit, e.g. `staff-settle`."""
    actor: str
    key_id: str


def catalogue() -> tuple[type[Event], ...]:
    """Return every kind of event, in the order of this file."""
    kinds = (value for value in globals().values() if isinstance(value, type))
    return tuple(kind for kind in kinds if issubclass(kind, Event) and kind is not Event)
