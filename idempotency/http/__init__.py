"""What is read from a request and written to a response, and nothing of what happens in between."""

from idempotency.http import fingerprint, header, problem, response, scope
from idempotency.http.problem import handler

__all__ = ["fingerprint", "handler", "header", "problem", "response", "scope"]
