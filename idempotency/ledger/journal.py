"""The journal of outside calls: committed before the first send, ended by evidence (R22, R23)."""

import hashlib
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from idempotency.exceptions import Fenced
from idempotency.ledger import draft as drafts
from idempotency.ledger import history, sealing, storable
from idempotency.ledger.draft import Draft
from idempotency.ledger.endings import weigh
from idempotency.ledger.phases import Phases
from idempotency.ledger.process import current_process
from idempotency.ledger.values import NOTHING_NEW, SET_ABOUT, About
from idempotency.types import Downstream, Ending, State


@dataclass(frozen=True, slots=True)
class Recorded:
    """A step of this generation as an earlier run left it."""

    name: str
    rotation: int
    downstream_key: str
    payload: bytes
    reference: str
    result: Mapping[str, Any] | None
    """Not None: it is applied, and this is what the other side said."""
    endings: tuple[Ending | None, ...]
    """One per sender; None is open."""
    may_resend: bool
    """Whether the other side will still remember the downstream key when this claim sends for the last time."""

    @property
    def is_open(self) -> bool:
        """Whether it may have been applied, or may yet be."""
        return self.result is None and any(e in (None, Ending.AMBIGUOUS) for e in self.endings)

    @property
    def refused(self) -> bool:
        """Whether the other side itself said "no", with no sender left that could still act."""
        said_no = any(e in (Ending.NOT_APPLIED, Ending.REJECTED) for e in self.endings)
        return said_no and not self.is_open and self.result is None


@dataclass(frozen=True, slots=True)
class OpenSender:
    """This claim's right to send a step."""

    id: int
    step_id: int
    downstream_key: str
    payload: bytes
    keyed: bool
    """Whether the other side honours keys."""


def downstream_key(*, key_id: uuid.UUID, generation: int, step: str, rotation: int) -> str:
    """Derive what the other side is given as its idempotency key: constant over sends, workers and restarts.

    A key's id stands for its scope, operation and name, and unlike them it is never given out twice, so that a key
    that was purged and came back cannot meet its own past at the other side.
    """
    digest = hashlib.sha256(b"idempotency/downstream/1")
    for part in (key_id.bytes, str(generation).encode(), step.encode(), str(rotation).encode()):
        digest.update(len(part).to_bytes(4, "big") + part)
    return digest.hexdigest()[:48]


def read(
    *, phases: Phases, key_id: uuid.UUID, generation: int, send_within: float
) -> dict[str, Recorded]:
    """Return the last rotation of each step of a generation, by name.

    Args:
        send_within: seconds from now after which this claim sends nothing any more.
    """
    parameters: dict[str, Any] = {
        "key": key_id,
        "generation": generation,
        "within": send_within,
    }
    with phases.connection.cursor() as cursor:
        cursor.execute(_READ, parameters)
        return {row[0]: _recorded(row) for row in cursor.fetchall()}


_MARGIN = 0.01
"""Of another side's memory: its clock is not ours (R23)."""

_READ = """
SELECT DISTINCT ON (s.name) s.name, s.rotation, s.downstream_key, s.payload, s.reference, s.result,
    (SELECT array_agg(COALESCE(x.ending, '') ORDER BY x.id) FROM idempotency_sender x WHERE x.step_id = s.id),
    s.resend_until > clock_timestamp() + %(within)s * interval '1 second'
FROM idempotency_step s WHERE s.key_id = %(key)s AND s.generation = %(generation)s
ORDER BY s.name, s.rotation DESC
"""


def _recorded(row: tuple[Any, ...]) -> Recorded:
    name, rotation, key, payload, reference, result, endings, may_resend = row
    return Recorded(
        name=name,
        rotation=rotation,
        downstream_key=key,
        payload=sealing.unseal(payload),
        reference=reference,
        result=None if result is None else sealing.unseal_json(json.loads(result)),
        endings=tuple(Ending(e) if e else None for e in endings or ()),
        may_resend=may_resend,
    )


def begin(
    *,
    phases: Phases,
    key_id: uuid.UUID,
    token: int,
    generation: int,
    step: str,
    rotation: int,
    payload: bytes,
    subject: str,
    downstream: Downstream,
    send_within: float,
    about: About = NOTHING_NEW,
    draft: Draft | None = None,
) -> OpenSender:
    """Write the step and this claim's sender, fenced by the token and a live lease (R12).

    Args:
        draft: the key's row, where it may not be written yet: then it is written with them.
        payload: the bytes to send; where the step exists already, its own frozen bytes are returned instead.
        send_within: seconds from now after which this claim sends nothing any more.

    Raises:
        Fenced: the key has another owner, or the lease has run out.
    """
    process = current_process()
    parameters: dict[str, Any] = {
        "key_id": key_id,
        "token": token,
        "generation": generation,
        "name": step,
        "rotation": rotation,
        "downstream": downstream.name,
        "downstream_key": downstream_key(
            key_id=key_id, generation=generation, step=step, rotation=rotation
        ),
        "payload": sealing.seal(payload),
        "subject": storable.text(subject)[:100],
        "keyed": downstream.keyed,
        "settling": downstream.settling_time,
        "memory": (1 - _MARGIN) * downstream.key_memory,
        "send_within": send_within,
        "host": process.host,
        "boot": process.boot_id,
        "namespace": process.pid_namespace,
        "pid": process.pid,
        "started": process.started,
    } | about.parameters()
    if draft is not None:
        parameters |= draft.parameters()
    with phases.connection.cursor() as cursor:
        cursor.execute(_BEGIN if draft is None else _BEGIN_DRAFT, parameters)
        row = cursor.fetchone()
    if row is None:
        raise Fenced("The key has another owner, or its lease ran out before the call began.")
    sender_id, step_id, frozen_key, frozen = row
    return OpenSender(sender_id, step_id, frozen_key, sealing.unseal(frozen), downstream.keyed)


_BEGUN = f"call_begun = true, journal_version = k.journal_version + 1, {SET_ABOUT}"
_HELD = "k.id = %(key_id)s AND k.token = %(token)s AND k.state = 'in_progress' AND k.lease_until > clock_timestamp()"
_WRITE_STEP = """
s AS (
    INSERT INTO idempotency_step (
        key_id, generation, name, rotation, downstream, downstream_key, payload, subject, keyed,
        settling_seconds, resend_until, reference)
    SELECT id, %(generation)s, %(name)s, %(rotation)s, %(downstream)s, %(downstream_key)s, %(payload)s,
        %(subject)s, %(keyed)s, %(settling)s, clock_timestamp() + %(memory)s * interval '1 second', ''
    FROM k
    ON CONFLICT ON CONSTRAINT idempotency_step_identity DO UPDATE SET name = EXCLUDED.name
    RETURNING id, downstream_key, payload
)
INSERT INTO idempotency_sender (
    step_id, token, host, boot_id, pid_namespace, pid, process_started, send_before, attempts, evidence)
SELECT s.id, %(token)s, %(host)s, %(boot)s, %(namespace)s, %(pid)s, %(started)s,
    clock_timestamp() + %(send_within)s * interval '1 second', 0, '{}'
FROM s
RETURNING id, step_id, (SELECT downstream_key FROM s), (SELECT payload FROM s)
"""

_BEGIN = f"""
WITH k AS (UPDATE idempotency_key AS k SET {_BEGUN} WHERE {_HELD} RETURNING id),
{_WRITE_STEP}
"""

_BEGIN_DRAFT = f"""
WITH k AS (
    INSERT INTO idempotency_key AS k ({drafts.COLUMNS}, state, lease_until, call_begun, journal_version, headers, note,
        settled_by, evidence, resource, reference, summary)
    SELECT {drafts.VALUES}, 'in_progress', {drafts.LEASE_END}, true, 1, '{{}}', '',
        '', '{{}}', %(resource)s, %(reference)s, %(summary)s
    WHERE {drafts.LEASE_END} > clock_timestamp()
    {drafts.CONFLICT} DO UPDATE SET {_BEGUN} WHERE {_HELD}
    RETURNING id
),
{_WRITE_STEP}
"""


@dataclass(frozen=True, slots=True)
class StepEnding:
    """How this claim's series of sends ended."""

    ending: Ending
    attempts: int
    reference: str = ""
    record: Mapping[str, Any] | None = None
    """The other side's answer; with `APPLIED` it becomes the step's recorded result."""
    error: str = ""
    code: str = ""
    """The other side's own code of a refusal: what a later run answers by."""

    def evidence(self) -> dict[str, Any]:
        """Return what is kept of it with the sender."""
        kept: dict[str, Any] = {"reference": self.reference, "error": self.error, "code": self.code}
        if self.record is not None and self.ending is not Ending.APPLIED:
            kept["record"] = self.record
        return {name: value for name, value in kept.items() if value}


def end(
    *, phases: Phases, key_id: uuid.UUID, token: int, sender: OpenSender, ending: StepEnding
) -> bool:
    """Lock the key, then write the sender's ending, whoever holds the token: an ending is evidence.

    Where it is news to somebody who was told otherwise, or the key has been purged, a person is called (R39).

    Returns: whether the claim with that token may still write to the key.
    """
    with phases.connection.cursor() as cursor:
        cursor.execute(
            _END,
            {
                "key": key_id,
                "sender": sender.id,
                "ending": ending.ending,
                "attempts": ending.attempts,
                "evidence": storable.as_json(ending.evidence()),
                "applied": ending.ending is Ending.APPLIED,
                "reference": storable.text(ending.reference)[:200],
                "result": sealing.seal_json(storable.as_json(ending.record or {})),
                "idle": phases.idle_limit,
            },
        )
        state, owner, newly_applied, _ = cursor.fetchone() or ("purged", None, 1, None)
    if state == State.UNKNOWN:
        weigh(connection=phases.connection, key_id=key_id)
    told_otherwise = state in (State.COMPLETED, State.RELEASED, "purged")
    if ending.ending is Ending.APPLIED and newly_applied and told_otherwise:
        history.late_news(
            connection=phases.connection,
            key_id=key_id,
            state=state,
            actor="superseded sender",
            detail={"reference": ending.reference, "downstream_key": sender.downstream_key},
        )
    return owner == token and state == State.IN_PROGRESS


_END = """
WITH k AS (
    UPDATE idempotency_key SET journal_version = journal_version + 1 WHERE id = %(key)s
    RETURNING id, state, token
), e AS (
    UPDATE idempotency_sender AS x SET ending = %(ending)s, ended_at = clock_timestamp(), attempts = %(attempts)s,
        evidence = %(evidence)s
    FROM k WHERE x.id = %(sender)s AND x.ending IS DISTINCT FROM 'applied'
    RETURNING x.step_id
), a AS (
    UPDATE idempotency_step AS s SET applied_at = clock_timestamp(), result = %(result)s, reference = %(reference)s
    FROM e WHERE s.id = e.step_id AND s.applied_at IS NULL AND %(applied)s
    RETURNING s.id
)
SELECT state, token, (SELECT count(*) FROM a), set_config('idle_in_transaction_session_timeout', %(idle)s, true) FROM k
"""
