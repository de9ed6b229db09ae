"""What is read from a request and written to a response, and nothing of what happens in between."""

from idempotency.http import fingerprint, header, plain, policy, problem, response, route, scope

__all__ = ["fingerprint", "header", "plain", "policy", "problem", "response", "route", "scope"]
