"""Checks of the decorated views that the URL conf leads to."""

from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning  # noqa: A004
from rest_framework.permissions import AllowAny
from rest_framework.views import APIView

from idempotency.checks.walk import Decorated, decorated_handlers, whole_views

_MAX_OPERATION = 100
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


def check_routes(**kwargs: Any) -> list[CheckMessage]:
    """Report every decorated handler that cannot keep its promise where it is mounted."""
    handlers = list(decorated_handlers())
    told = [message for one in handlers for message in _judged(one)]
    # Of a handler with two routes, e.g. one with a format suffix, each thing is said once.
    once = {(message.id, message.msg): message for message in told}
    return [*once.values(), *_same_names(handlers), *_whole()]


def _judged(one: Decorated) -> Iterator[CheckMessage]:
    yield from _transaction(one)
    yield from _methods(one)
    yield from _name(one)
    if one.view is not None and issubclass(one.view, APIView):
        yield from _caller(one, one.view)
        yield from _finalized(one, one.view)


def _whole() -> Iterator[CheckMessage]:
    for view in dict.fromkeys(whole_views()):
        yield Error(
            f"{view.__module__}.{view.__qualname__} is decorated at its dispatch().",
            hint="DRF learns only there who calls, and whether they may: decorate the handler, e.g. post().",
            id="idempotency.E027",
        )


def _transaction(one: Decorated) -> Iterator[CheckMessage]:
    opted_out: set[str] = getattr(one.callback, "_non_atomic_requests", set())
    for alias, database in settings.DATABASES.items():
        if database.get("ATOMIC_REQUESTS") and alias not in opted_out:
            argument = "" if alias == "default" else f"(using={alias!r})"
            decorator = f"transaction.non_atomic_requests{argument}"
            yield Error(
                f"{one.place} runs inside ATOMIC_REQUESTS of the database {alias!r}.",
                hint=(
                    "Its outside calls would be made within a transaction. Opt out with "
                    f'@method_decorator({decorator}, name="dispatch") on the view, or '
                    f"@{decorator} above @api_view."
                ),
                id="idempotency.E020",
            )


def _caller(one: Decorated, view: type[APIView]) -> Iterator[CheckMessage]:
    configured = getattr(settings, "IDEMPOTENCY", {})
    if one.config.scope is not None or configured.get("SCOPE") is not None:
        return
    if "get_permissions" in vars(view) or view.get_permissions is not APIView.get_permissions:
        # Who may call is decided per request.
        return
    initial = getattr(one.callback, "initkwargs", {})
    permissions = initial.get("permission_classes", view.permission_classes)
    if all(permission is AllowAny for permission in permissions):
        yield Error(
            f"{one.place} lets anonymous callers in, but nothing says whose keys theirs are.",
            hint="Require authentication, or give @idempotent a scope callable.",
            id="idempotency.E022",
        )


def _finalized(one: Decorated, view: type[APIView]) -> Iterator[CheckMessage]:
    if view.finalize_response is not APIView.finalize_response:
        yield Warning(
            f"{one.place} is answered through a finalize_response() of the host's own.",
            hint="Set headers there. What it makes of the body comes too late, for the answer is kept by then, and a "
            "replay has no `data` to change: do that in the handler, or in a renderer.",
            id="idempotency.W022",
        )


def _methods(one: Decorated) -> Iterator[CheckMessage]:
    if safe := _SAFE.intersection(one.config.methods):
        yield Error(
            f"{one.label} is to honour keys on {', '.join(sorted(safe))}.",
            hint="Safe methods need no key: they change nothing.",
            id="idempotency.E025",
        )
    unprotected = [method for method in one.methods if method not in one.config.methods]
    hint = f"Give @idempotent methods=({', '.join(map(repr, one.methods))},)."
    if len(unprotected) == len(one.methods):
        yield Error(
            f"@idempotent has no effect on {one.label}: it is reached by "
            f"{', '.join(one.methods)} only.",
            hint=hint,
            id="idempotency.E024",
        )
    elif unsafe := [method for method in unprotected if method not in _SAFE]:
        yield Warning(
            f"{one.label} honours no key on {', '.join(unsafe)}.",
            hint=hint,
            id="idempotency.W021",
        )


def _name(one: Decorated) -> Iterator[CheckMessage]:
    operation = one.config.operation
    if operation is None:
        yield Warning(
            f"{one.label} has no operation name of its own: its route's name is used.",
            hint='Give @idempotent operation="…": keys would be new after a route is renamed.',
            id="idempotency.W020",
        )
    elif not 1 <= len(operation) <= _MAX_OPERATION or not operation.isprintable():
        yield Error(
            f"{one.label} has the operation name {operation!r}.",
            hint=f"A name has 1 to {_MAX_OPERATION} printable characters.",
            id="idempotency.E026",
        )


def _same_names(handlers: list[Decorated]) -> Iterator[CheckMessage]:
    labels: dict[str, dict[str, None]] = {}
    for one in handlers:
        if one.config.operation is not None:
            labels.setdefault(one.config.operation, {})[one.label] = None
    for operation, names in labels.items():
        if len(names) > 1:
            yield Error(
                f"The operation {operation!r} is the name of {' and '.join(names)}.",
                hint="Give each handler its own name: one key would mean both.",
                id="idempotency.E021",
            )
