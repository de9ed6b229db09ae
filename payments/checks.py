"""System checks of `settings.PAYMENTS`, and of what must fit between it and `settings.IDEMPOTENCY`.

E001  PAYMENTS is not a dict               E005  the attempts do not fit into the request's budget
E002  a value is of the wrong kind         E006  the gateway forgets a key before a series can end
E003  there is no such setting             E007  the public demo secret outside DEBUG
E004  the gateway has no usable address    E008  the lease ends before an outcome can be known
W001  events could be taken in twice       W002  no webhook secret: every event is refused
W003  the gateway's key memory leaves reconciliation little time
E009  endpoints of merchants may be at private addresses, outside DEBUG
W004  the secrets of merchants' endpoints are stored readable (only by `check --deploy`)
"""

import difflib
import math
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register  # noqa: A004
from django.core.exceptions import ImproperlyConfigured

from idempotency.conf import conf as ledger
from payments.conf import DEMO_SECRET, SETTINGS, conf

RESERVE = 0.5
"""Seconds of a request's budget for all that is not a call: the claim, the settlement, the answer."""
_RETRIES = 3 * 86_400
"""Seconds over which Stripe repeats an event. Source: Stripe's documentation, "Webhooks", delivery behaviour."""
_SHORT_MEMORY = 3_600


def register_checks() -> None:
    """Register the checks; called once the apps are ready."""
    register(check_settings, Tags.compatibility)
    register(check_sealing, Tags.security, deploy=True)


def check_settings(**_: Any) -> list[CheckMessage]:
    """Report every setting that is wrong, alone or beside another."""
    try:
        unknown = conf.unknown()
    except ImproperlyConfigured as error:
        hint = 'Write PAYMENTS = {"GATEWAY_URL": "https://…"}.'
        return [Error(str(error), hint=hint, id="payments.E001")]
    messages: list[CheckMessage] = [_no_such(name) for name in unknown]
    unreadable = list(_unreadable())
    messages += unreadable
    if not unreadable:
        messages += [*_gateway(), *_times(), *_events(), *_endpoints()]
    return messages


def check_sealing(**_: Any) -> list[CheckMessage]:
    """Warn where what merchants' endpoints know us by would be stored as it is."""
    if ledger.ENCRYPTION_KEYS:
        return []
    return [
        Warning(
            "IDEMPOTENCY['ENCRYPTION_KEYS'] is empty: the secrets of merchants' endpoints are stored readable.",
            hint="Whoever reads the database could sign events. Make a key: "
            "python -c 'from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())'.",
            id="payments.W004",
        )
    ]


def _unreadable() -> Iterator[CheckMessage]:
    for setting in SETTINGS:
        try:
            getattr(conf, setting.name)
        except ImproperlyConfigured as error:
            yield Error(str(error), hint=setting.doc, id="payments.E002")


def _no_such(name: str) -> CheckMessage:
    names = [setting.name for setting in SETTINGS]
    near = difflib.get_close_matches(name.upper(), names, n=1)
    hint = f"Did you mean {near[0]}?" if near else f"The settings are {', '.join(names)}."
    return Error(f"PAYMENTS[{name!r}] is not a setting.", hint=hint, id="payments.E003")


def _gateway() -> Iterator[CheckMessage]:
    try:
        parts = urlsplit(conf.GATEWAY_URL)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        usable = False
    if not usable:
        yield Error(
            "PAYMENTS['GATEWAY_URL'] is not the http(s) address of a payment gateway.",
            hint="Every payment would fail. Name it, e.g. https://api.stripe.com.",
            id="payments.E004",
        )


def _times() -> Iterator[CheckMessage]:
    series = conf.GATEWAY_ATTEMPTS * conf.GATEWAY_TIMEOUT + longest_pauses()
    if series + RESERVE > ledger.REQUEST_BUDGET:
        yield Error(
            f"{conf.GATEWAY_ATTEMPTS} attempts of {conf.GATEWAY_TIMEOUT:g} s with their pauses ({series:g} s) and "
            f"{RESERVE:g} s for the answer exceed IDEMPOTENCY['REQUEST_BUDGET'] ({ledger.REQUEST_BUDGET:g} s).",
            hint="The last attempt would be cut short, and its outcome be unknown. Lower GATEWAY_ATTEMPTS or "
            "GATEWAY_TIMEOUT, or raise the budget.",
            id="payments.E005",
        )
    if conf.GATEWAY_KEYED and series >= conf.GATEWAY_KEY_TTL:
        yield Error(
            f"PAYMENTS['GATEWAY_KEY_TTL'] ({conf.GATEWAY_KEY_TTL:g} s) is shorter than one series of attempts.",
            hint="The gateway would take a repeat for a new operation: that is a double charge. Where it honours no "
            "keys set GATEWAY_KEYED to 0.",
            id="payments.E006",
        )
    elif conf.GATEWAY_KEYED and conf.GATEWAY_KEY_TTL < _SHORT_MEMORY + conf.GATEWAY_SETTLING_TIME:
        yield Warning(
            f"The gateway remembers a key for {conf.GATEWAY_KEY_TTL:g} s only.",
            hint="After that a call that may have been applied is only looked up, never repeated.",
            id="payments.W003",
        )
    if ledger.LEASE <= ledger.REQUEST_BUDGET + conf.GATEWAY_SETTLING_TIME:
        yield Error(
            f"IDEMPOTENCY['LEASE'] ({ledger.LEASE:g} s) is not longer than REQUEST_BUDGET "
            f"({ledger.REQUEST_BUDGET:g} s) with PAYMENTS['GATEWAY_SETTLING_TIME'] ({conf.GATEWAY_SETTLING_TIME:g} s).",
            hint="A key would be looked up before the gateway can be believed when it knows nothing.",
            id="payments.E008",
        )


def longest_pauses() -> float:
    """Return the seconds that the pauses between the attempts of one call take at most."""
    between = range(conf.GATEWAY_ATTEMPTS - 1)
    return math.fsum(
        min(conf.GATEWAY_RETRY_CAP, conf.GATEWAY_RETRY_BASE * 2.0 ** min(number, 60))
        for number in between
    )


def _endpoints() -> Iterator[CheckMessage]:
    if conf.ENDPOINT_PRIVATE and not settings.DEBUG:
        yield Error(
            "PAYMENTS['ENDPOINT_PRIVATE'] is on outside DEBUG.",
            hint="Any merchant could have requests sent into your own network, e.g. to a metadata service.",
            id="payments.E009",
        )


def _events() -> Iterator[CheckMessage]:
    if not settings.DEBUG and conf.WEBHOOK_SECRET == DEMO_SECRET:
        yield Error(
            "PAYMENTS['WEBHOOK_SECRET'] is the public demo value.",
            hint="Anybody could sign a 'paid'. Take the secret of your webhook endpoint.",
            id="payments.E007",
        )
    if not conf.WEBHOOK_SECRET:
        yield Warning(
            "PAYMENTS['WEBHOOK_SECRET'] is not set.",
            hint="Every event is refused; outcomes are learnt by look-ups alone, later.",
            id="payments.W002",
        )
    if max(2 * conf.WEBHOOK_TOLERANCE, _RETRIES) > ledger.KEY_TTL:
        yield Warning(
            f"IDEMPOTENCY['KEY_TTL'] ({ledger.KEY_TTL:g} s) is shorter than the time over which events are repeated.",
            hint="An event that comes again after that is taken in again. It changes nothing twice, for rows only move "
            "forward; but it is not recognised.",
            id="payments.W001",
        )
