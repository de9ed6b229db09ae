"""Checks of what surrounds the views: CORS, and other middleware that wants to be idempotent."""

from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Warning  # noqa: A004

from idempotency.http.header import NAME
from idempotency.http.response import REPLAYED

_CORS = "corsheaders.middleware.CorsMiddleware"
_COMMON = "django.middleware.common.CommonMiddleware"
_EXPOSED = (REPLAYED, NAME, "Retry-After", "Location")


def check_middleware(**kwargs: Any) -> list[CheckMessage]:
    """Report what would keep a browser from sending a key, or answer keys before the ledger does."""
    messages = list(_rivals())
    if "corsheaders" in settings.INSTALLED_APPS:
        messages += _cors()
    return messages


def _rivals() -> Iterator[CheckMessage]:
    for path in settings.MIDDLEWARE:
        if "idempoten" in path.lower():
            yield Warning(
                f"The middleware {path} looks like another keeper of idempotency keys.",
                hint="Two memories of one key disagree, and middleware runs before authentication.",
                id="idempotency.W033",
            )


def _cors() -> Iterator[CheckMessage]:
    allowed = {name.lower() for name in getattr(settings, "CORS_ALLOW_HEADERS", ())}
    if NAME.lower() not in allowed:
        yield Warning(
            f"CORS does not allow browsers to send {NAME}.",
            hint=f'Set CORS_ALLOW_HEADERS = (*corsheaders.defaults.default_headers, "{NAME.lower()}").',
            id="idempotency.W030",
        )
    exposed = {name.lower() for name in getattr(settings, "CORS_EXPOSE_HEADERS", ())}
    if hidden := [name for name in _EXPOSED if name.lower() not in exposed]:
        yield Warning(
            f"CORS hides {', '.join(hidden)} from the code of browsers.",
            hint="Add them to CORS_EXPOSE_HEADERS: a client needs them to know what to do next.",
            id="idempotency.W031",
        )
    order = list(settings.MIDDLEWARE)
    if _CORS not in order or (_COMMON in order and order.index(_CORS) > order.index(_COMMON)):
        yield Warning(
            "CorsMiddleware is missing, or stands below CommonMiddleware.",
            hint="Put it at the top: what answers above it has no CORS headers.",
            id="idempotency.W032",
        )
