"""What happens here, told as events: code emits; listeners log, count and signal. Pure Python.

A field named in `LABELS` takes few values and may become a metric's label; any other field is a
measure, or a detail for people and logs, never a label.
"""

from idempotency.telemetry.bus import Event, emit, subscribe
from idempotency.telemetry.events import (
    AdmissionRefused,
    AttemptEnded,
    BreakerChanged,
    CallEnded,
    CallRefused,
    KeyMet,
    KeyReconciled,
    KeySettled,
    LateNews,
    NudgeLost,
    OperationMoved,
    PersonNeeded,
    ReadOnlySwitched,
    RequestRefused,
    RunEnded,
    SourceDegraded,
    StaffActed,
    StoreFound,
    StoreLost,
    TurnEnded,
    catalogue,
)
from idempotency.telemetry.recent import turned_away

__all__ = [
    "AdmissionRefused",
    "AttemptEnded",
    "BreakerChanged",
    "CallEnded",
    "CallRefused",
    "Event",
    "KeyMet",
    "KeyReconciled",
    "KeySettled",
    "LateNews",
    "NudgeLost",
    "OperationMoved",
    "PersonNeeded",
    "ReadOnlySwitched",
    "RequestRefused",
    "RunEnded",
    "SourceDegraded",
    "StaffActed",
    "StoreFound",
    "StoreLost",
    "TurnEnded",
    "catalogue",
    "emit",
    "subscribe",
    "turned_away",
]
