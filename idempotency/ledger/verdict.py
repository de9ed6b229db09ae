"""What an existing key means for the request that meets it (R9)."""

import json
from dataclasses import dataclass
from typing import Any, assert_never

from idempotency.conf import conf
from idempotency.ledger import sealing
from idempotency.ledger.values import (
    Fingerprint,
    Found,
    InProgress,
    Refusal,
    Replay,
    ResultExpired,
    ResultUnavailable,
    Reused,
    StillUnknown,
)
from idempotency.types import Answer, State


@dataclass(frozen=True, slots=True)
class Claimable:
    """Nobody owns it: it may be claimed again."""

    new_generation: bool = False


def judge(row: dict[str, Any], fingerprint: Fingerprint) -> Claimable | Replay | Refusal:
    """Decide in the order of R9: past its time to live, another request, answer expired, state."""
    found = found_in(row)
    if not row["watched"] and _settled_for(row, conf.KEY_TTL):
        return Claimable(new_generation=True)
    version, secret = row["fingerprint_version"], row["fingerprint_secret"]
    digest, parts = bytes(row["fingerprint"]), bytes(row["fingerprint_parts"])
    if not fingerprint.matches(version=version, secret_name=secret, digest=digest):
        return Reused(found, fingerprint.differing(parts, version=version, secret_name=secret))
    result_expired = _settled_for(row, conf.RESULT_TTL)
    if row["deferred"] and row["status"] is not None and not result_expired:
        return _stored(row, found)
    match found.state:
        case State.COMPLETED:
            return ResultExpired(found) if result_expired else _stored(row, found)
        case State.RELEASED:
            return Claimable()
        case State.UNKNOWN:
            return Claimable() if row["unfinished"] else StillUnknown(found)
        case State.IN_PROGRESS:
            lapsed = row["lease_left"] is not None and row["lease_left"] <= 0
            return StillUnknown(found) if lapsed else InProgress(1, found)
        case _:
            assert_never(found.state)


def _settled_for(row: dict[str, Any], seconds: float) -> bool:
    return row["settled_for"] is not None and row["settled_for"] >= seconds


def _stored(row: dict[str, Any], found: Found) -> Replay | ResultUnavailable:
    if row["body"] is None:
        return ResultUnavailable(found, row["note"])
    return Replay(
        found,
        Answer(
            status=row["status"],
            body=sealing.unseal(row["body"]),
            content_type=row["content_type"],
            headers=json.loads(row["headers"]),
            note=row["note"],
        ),
    )


def found_in(row: dict[str, Any]) -> Found:
    """Return what is told of a key that was met."""
    return Found(
        id=row["id"],
        state=State(row["state"]),
        token=row["token"],
        deferred=row["deferred"],
        resource=row["resource"],
        retry_after=max(1.0, float(row["seconds"] or 1)),
    )
