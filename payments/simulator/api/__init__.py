"""The part of Stripe's API that this gateway speaks."""
