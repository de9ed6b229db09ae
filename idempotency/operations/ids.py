"""Ids of operations that remember whose they were, so that a purged one is "gone" to its owner without being kept.

# Note [Gone]
After the purge its caller is told 410, everybody else 404 (R31). Instead of a table of what is no longer there, the id
carries the proof: its last 40 bits are a MAC over the rest and the scope. It is a UUIDv7 all the same.
"""

import hashlib
import hmac
import uuid

from idempotency.conf import conf
from idempotency.models.fields import uuid7

_MAC_BITS = 40
_MAC_MASK = (1 << _MAC_BITS) - 1


def new_id(*, scope: str) -> uuid.UUID:
    """Make the id of an operation of that scope.

    34 random bits per millisecond are left; the primary key refuses the rare twin.
    """
    secret = next(iter(conf.FINGERPRINT_SECRETS.values()))
    value = uuid7().int & ~_MAC_MASK
    return uuid.UUID(int=value | _mac(secret, value, scope))


def was_made_for(id: uuid.UUID, *, scope: str) -> bool:  # noqa: A002 - the word for it
    """Whether this id was made for that scope, under any secret that is still known."""
    value, mac = id.int & ~_MAC_MASK, id.int & _MAC_MASK
    return any(mac == _mac(secret, value, scope) for secret in conf.FINGERPRINT_SECRETS.values())


def _mac(secret: bytes, value: int, scope: str) -> int:
    message = b"idempotency.operation-id" + value.to_bytes(16, "big") + scope.encode()
    return int.from_bytes(hmac.digest(secret, message, hashlib.sha256)[:5], "big")
