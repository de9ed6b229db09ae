"""Signatures of Standard Webhooks, symmetric: `v1`, HMAC-SHA256 over `id.timestamp.body`.

Source: standardwebhooks.com, "Webhook metadata" and "Signature scheme".
"""

import base64
import hmac
import secrets
from collections.abc import Iterable

PREFIX = "whsec_"
_BYTES = 32


def new_secret() -> str:
    """Return a secret as the receiver keeps it: `whsec_` and the base64 of 32 random bytes."""
    return PREFIX + base64.b64encode(secrets.token_bytes(_BYTES)).decode()


def headers(*, webhook_id: str, at: int, body: bytes, keys: Iterable[str]) -> dict[str, str]:
    """Return the three headers of one try.

    Args:
        at: when it is sent, in seconds since the epoch.
        keys: the secrets in force; the receiver accepts a signature by any.
    """
    signatures = " ".join(_signature(webhook_id, at, body, key) for key in keys)
    return {"webhook-id": webhook_id, "webhook-timestamp": str(at), "webhook-signature": signatures}


def _signature(webhook_id: str, at: int, body: bytes, secret: str) -> str:
    key = base64.b64decode(secret.removeprefix(PREFIX))
    digest = hmac.digest(key, f"{webhook_id}.{at}.".encode() + body, "sha256")
    return "v1," + base64.b64encode(digest).decode()
