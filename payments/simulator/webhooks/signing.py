"""Stripe's webhook signature. Source: Stripe's documentation, "Verify webhook signatures"."""

from __future__ import annotations

import hashlib
import hmac


def signature(payload: bytes, *, secret: str, timestamp: int) -> str:
    """Return the Stripe-Signature header for a raw body sent at `timestamp`."""
    signed = b"%d." % timestamp + payload
    digest = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    return f"t={timestamp},v1={digest}"
