"""Whose key it is: a tenant and a stable principal, never the credential that was used today."""

import hashlib
from collections.abc import Callable
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import Model
from django.http import HttpRequest
from rest_framework.request import Request

from idempotency.conf import conf
from idempotency.exceptions import Misuse

MAX_LENGTH = 200
_DIGEST_PREFIX = "~sha256:"


def scope_of(*, request: HttpRequest | Request, scope: Callable[[Any], str] | None = None) -> str:
    """Return the scope of the request's key: 1 to 200 printable characters, equal for one caller.

    `scope` is the endpoint's own callable; without it `conf.SCOPE` is asked. What is too long or
    not printable is replaced by its digest.

    Raises:
        Misuse: the callable gave no name, or the caller is anonymous and no callable of the host's
            says whose key it is.
    """
    hook = scope or conf.SCOPE
    value = hook(request) if hook else None
    if not isinstance(value, str) or not value:
        raise Misuse(f"The scope callable {hook!r} must return a string that is not empty.")
    # A value that looks like a digest is digested too: no caller can name another's scope.
    if len(value) <= MAX_LENGTH and value.isprintable() and not value.startswith(_DIGEST_PREFIX):
        return value
    return _DIGEST_PREFIX + hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()


def tenant_and_user(request: HttpRequest | Request) -> str:
    """Return `user:<pk>`, after the length and the id of the tenant where `conf.TENANT` names one.

    The primary key stays the same when a token is refreshed or a session replaced.

    Raises: Misuse, for an anonymous caller.
    """
    # Without Django's middleware a plain request has none; DRF's UNAUTHENTICATED_USER may be None, and a user that is
    # not saved has no key.
    user: Any = getattr(request, "user", None)
    if not getattr(user, "is_authenticated", False) or getattr(user, "pk", None) is None:
        raise Misuse(
            "Idempotency keys need to know their caller: require authentication on this view, or "
            "give it a scope callable that names anonymous callers."
        )
    principal = f"{_kind(user)}:{user.pk}"
    tenant = conf.TENANT(request) if conf.TENANT else None
    if tenant is None:
        return principal
    name = str(tenant.pk if isinstance(tenant, Model) else tenant)
    # The length keeps ("a", "b/user:1") and ("a/b", "user:1") apart, and a principal alone never
    # starts with a digit.
    return f"{len(name)}:{name}/{principal}"


def tenant_of(scope: str) -> str:
    """Return whose keys belong together: the tenant of a scope that `tenant_and_user` made, else the whole scope."""
    length, colon, rest = scope.partition(":")
    if colon and length.isdecimal() and rest[int(length) : int(length) + 1] == "/":
        return f"{length}:{rest[: int(length)]}"
    return scope


def _kind(user: Any) -> str:
    # Ids of two kinds of caller may be equal: a view can authenticate other things than users.
    if isinstance(user, get_user_model()):
        return "user"
    if isinstance(user, Model):
        return str(user._meta.label_lower)
    return f"{type(user).__module__}.{type(user).__qualname__}"
