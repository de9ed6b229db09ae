from __future__ import annotations

import time

import pytest
import stripe

from payments.simulator.webhooks.signing import signature


def test_stripe_accepts_the_signature() -> None:
    stamp = signature(b'{"id": "\xc3\xa9"}', secret="whsec_x", timestamp=int(time.time()))
    assert stripe.WebhookSignature.verify_header('{"id": "é"}', stamp, "whsec_x", 300)


def test_stripe_refuses_another_body() -> None:
    stamp = signature(b"{}", secret="whsec_x", timestamp=int(time.time()))
    with pytest.raises(stripe.SignatureVerificationError):
        stripe.WebhookSignature.verify_header("{ }", stamp, "whsec_x", 300)
