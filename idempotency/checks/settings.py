"""Checks of `settings.IDEMPOTENCY`: each value by itself, then those that must fit each other."""

import difflib
from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning  # noqa: A004
from django.core.exceptions import ImproperlyConfigured
from django.db import router
from django.db.utils import load_backend
from django.template import TemplateDoesNotExist
from django.template.loader import get_template
from django.urls import Resolver404, resolve

from idempotency.conf import SETTINGS, conf
from idempotency.http.problem import catalogue
from idempotency.ledger.sealing import check_keys

_DAY = 86_400
_SHORTEST_SECRET = 16
_NEVER_STORED = frozenset(
    {
        "set-cookie",
        "www-authenticate",
        "proxy-authenticate",
        "authentication-info",
        "authorization",
        "date",
        "x-csrftoken",
        "transfer-encoding",
        "connection",
        "content-length",
        "content-type",
    }
)
_NEVER_STORED_PREFIXES = ("ratelimit", "x-ratelimit", "x-rate-limit", "access-control-")
_NEW_ON_EACH_TRY = frozenset(
    {
        "authorization",
        "cookie",
        "date",
        "idempotency-key",
        "traceparent",
        "tracestate",
        "x-request-id",
        "x-csrftoken",
        "x-forwarded-for",
        "content-length",
    }
)


def check_settings(**kwargs: Any) -> list[CheckMessage]:
    """Report every setting that is wrong, alone or beside another."""
    try:
        unknown = conf.unknown()
    except ImproperlyConfigured as error:
        return [
            Error(str(error), hint='Write IDEMPOTENCY = {"LEASE": 45, …}.', id="idempotency.E001")
        ]
    readable = {}
    messages: list[CheckMessage] = []
    for setting in SETTINGS:
        try:
            readable[setting.name] = getattr(conf, setting.name)
        except ImproperlyConfigured as error:
            messages.append(Error(str(error), hint=setting.doc, id="idempotency.E002"))
    messages += [_unknown_name(name) for name in unknown]
    messages += _pairs(readable)
    messages += _headers(readable)
    messages += _database(readable)
    messages += _secrets(readable)
    messages += _encryption(readable)
    messages += _problems(readable)
    return messages


def _unknown_name(name: str) -> CheckMessage:
    names = [setting.name for setting in SETTINGS]
    near = difflib.get_close_matches(name.upper(), names, n=1)
    hint = f"Did you mean {near[0]}?" if near else f"The settings are {', '.join(names)}."
    return Error(f"IDEMPOTENCY[{name!r}] is not a setting.", hint=hint, id="idempotency.E003")


def _pairs(value: dict[str, Any]) -> Iterator[CheckMessage]:
    """Compare settings with one another; those that could not be read are left out."""

    def above(one: str, other: str, *, equal: bool = False) -> bool:
        if one not in value or other not in value:
            return False
        return bool(value[one] >= value[other] if equal else value[one] > value[other])

    if above("REQUEST_BUDGET", "LEASE", equal=True):
        yield Error(
            "LEASE must be longer than REQUEST_BUDGET.",
            hint="A request that is still within its budget would lose its key while it calls out.",
            id="idempotency.E004",
        )
    if above("RESULT_TTL", "KEY_TTL"):
        yield Error(
            "RESULT_TTL must not be longer than KEY_TTL.",
            hint="The answer goes with its key; set both to one value for a single horizon.",
            id="idempotency.E005",
        )
    if above("RETRY_BASE", "RETRY_CAP"):
        yield Error(
            "RETRY_BASE must not be longer than RETRY_CAP.",
            hint="The cap is the longest pause, the base the first.",
            id="idempotency.E006",
        )
    if above("OPERATION_TIME_LIMIT", "LEASE", equal=True):
        yield Error(
            "LEASE must be longer than OPERATION_TIME_LIMIT.",
            hint="A run that is still within its limit would lose its key.",
            id="idempotency.E007",
        )
    if above("WAIT", "REQUEST_BUDGET", equal=True):
        yield Error(
            "WAIT must be shorter than REQUEST_BUDGET.",
            hint="A repeat that waits for the first answer needs time to give it.",
            id="idempotency.E008",
        )
    if value.get("KEY_TTL", 3 * _DAY) < 3 * _DAY:
        yield Warning(
            "KEY_TTL is shorter than three days.",
            hint="Webhook providers repeat for days: a later repeat would count as a new request.",
            id="idempotency.W003",
        )


def _headers(value: dict[str, Any]) -> Iterator[CheckMessage]:
    for name in value.get("STORED_HEADERS", ()):
        if name.lower() in _NEVER_STORED or name.lower().startswith(_NEVER_STORED_PREFIXES):
            yield Error(
                f"STORED_HEADERS must not hold {name!r}.",
                hint="It belongs to one exchange or one connection, not to the answer.",
                id="idempotency.E009",
            )
    for name in value.get("FINGERPRINT_HEADERS", ()):
        if name.lower() in _NEW_ON_EACH_TRY:
            yield Warning(
                f"FINGERPRINT_HEADERS holds {name!r}, which differs between two tries.",
                hint="An honest retry would be refused as another request.",
                id="idempotency.W002",
            )


def _database(value: dict[str, Any]) -> Iterator[CheckMessage]:
    alias = value.get("DATABASE")
    if alias is None:
        return
    if alias not in settings.DATABASES:
        yield Error(
            f"DATABASE names {alias!r}, which is not in DATABASES.",
            hint=f"Known are {', '.join(settings.DATABASES)}.",
            id="idempotency.E010",
        )
        return
    database = settings.DATABASES[alias]
    if not _is_postgresql(str(database.get("ENGINE", ""))):
        yield Error(
            f"The database {alias!r} is not PostgreSQL.",
            hint="The ledger rests on its row locks, advisory locks and ON CONFLICT.",
            id="idempotency.E011",
        )
    if database.get("AUTOCOMMIT") is False:
        yield Error(
            f"The database {alias!r} has AUTOCOMMIT off.",
            hint="The ledger opens and ends its transactions itself, around outside calls.",
            id="idempotency.E012",
        )
    if _is_apart(alias):
        yield Warning(
            f"No model of yours is written to the database {alias!r}, which holds the ledger.",
            hint="What a handler writes to another one is not undone when it fails, and a repeat writes it again: keep "
            "the ledger in the database of the rows that have to commit with their key.",
            id="idempotency.W005",
        )


def _is_postgresql(engine: str) -> bool:
    if engine.rpartition(".")[2].startswith(("postgresql", "postgis")):
        return True
    try:
        return bool(load_backend(engine).DatabaseWrapper.vendor == "postgresql")
    except (ImproperlyConfigured, ImportError):
        return False


def _is_apart(alias: str) -> bool:
    """Whether no model but the ledger's own is written there, so that nothing commits with a key."""
    return not any(
        router.db_for_write(model) == alias
        for model in apps.get_models()
        if model._meta.app_label != "idempotency"
    )


def _secrets(value: dict[str, Any]) -> Iterator[CheckMessage]:
    for name, secret in value.get("FINGERPRINT_SECRETS", {}).items():
        if len(secret) < _SHORTEST_SECRET:
            yield Warning(
                f"The secret {name!r} in FINGERPRINT_SECRETS is shorter than "
                f"{_SHORTEST_SECRET} bytes.",
                hint="Whoever reads the table could try bodies until a fingerprint fits.",
                id="idempotency.W001",
            )


def _encryption(value: dict[str, Any]) -> Iterator[CheckMessage]:
    if not value.get("ENCRYPTION_KEYS"):
        return
    try:
        check_keys()
    except (ImproperlyConfigured, ImportError) as error:
        yield Error(
            f"ENCRYPTION_KEYS cannot be used: {error}.",
            hint="Make one with cryptography.fernet.Fernet.generate_key().decode(); the current one stands first.",
            id="idempotency.E014",
        )


def _problems(value: dict[str, Any]) -> Iterator[CheckMessage]:
    try:
        catalogue()
    except (ImproperlyConfigured, ImportError, AttributeError, TypeError) as error:
        yield Error(
            f"PROBLEMS cannot be read: {error}.",
            hint="Each path names a mapping from a code to its status, title, when and client.",
            id="idempotency.E013",
        )
    base = value.get("PROBLEM_BASE", "")
    if not base.startswith("/"):
        return
    if not _leads_to_a_page(f"{base}key-missing/"):
        yield Warning(
            f"PROBLEM_BASE is {base!r}, but no page answers there.",
            hint='Add path("", include("idempotency.urls")) to the URL conf, or set PROBLEM_BASE; it begins with '
            "FORCE_SCRIPT_NAME, where there is one.",
            id="idempotency.W004",
        )
    elif not _is_there("idempotency/problem.html"):
        yield Warning(
            f"The pages under {base!r} have no template.",
            hint="Add Django's template engine with APP_DIRS to TEMPLATES, or set PROBLEM_BASE to pages of your own.",
            id="idempotency.W006",
        )


def _is_there(template: str) -> bool:
    try:
        get_template(template)
    except TemplateDoesNotExist:
        return False
    return True


def _leads_to_a_page(address: str) -> bool:
    # What the server puts before every path is not in the URL conf.
    prefix = (settings.FORCE_SCRIPT_NAME or "").rstrip("/")
    try:
        resolve(address.removeprefix(prefix))
    except Resolver404:
        return False
    return address.startswith(f"{prefix}/")
