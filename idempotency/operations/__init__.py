"""Work that is done later, messages, and how an unknown outcome is looked up."""

from idempotency.operations.registry import Resolver, resolver

__all__ = ["Resolver", "resolver"]
