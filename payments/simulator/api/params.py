"""Typed readers of request parameters; each refuses as Stripe does, before the endpoint begins."""

from __future__ import annotations

import re
from collections.abc import Sequence

from payments.simulator.api.errors import invalid_parameter
from payments.simulator.wire.http import Json

# Stripe's own limits: eight digits for most currencies, 50 metadata keys of 40 and 500 characters.
MAX_AMOUNT = 99_999_999
_MAX_METADATA_KEYS = 50
_MAX_METADATA_NAME = 40
_MAX_METADATA_VALUE = 500


def text(params: Json, name: str) -> str | None:
    """Return a text, or None when it is absent or empty."""
    value = params.get(name)
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise invalid_parameter(f"Invalid string: {name}", param=name)
    return value


def required_text(params: Json, name: str) -> str:
    """Return a text that must be there."""
    value = text(params, name)
    if value is None:
        raise invalid_parameter(
            f"Missing required param: {name}.", param=name, code="parameter_missing"
        )
    return value


def amount(params: Json, name: str = "amount") -> int | None:
    """Return an amount in minor units, at least 1, or None when it is absent."""
    value = text(params, name)
    if value is None:
        return None
    if not re.fullmatch(r"-?[0-9]{1,18}", value):
        raise invalid_parameter(
            f"Invalid integer: {value}", param=name, code="parameter_invalid_integer"
        )
    if int(value) < 1:
        raise invalid_parameter(
            "This value must be greater than or equal to 1.",
            param=name, code="parameter_invalid_integer",
        )  # fmt: skip
    if int(value) > MAX_AMOUNT:
        raise invalid_parameter(
            f"Amount must be no more than {MAX_AMOUNT}.", param=name, code="amount_too_large"
        )
    return int(value)


def required_amount(params: Json) -> int:
    """Return an amount that must be there."""
    required_text(params, "amount")
    return amount(params) or 0


def currency(params: Json) -> str:
    """Return an ISO 4217 code in lower case."""
    value = required_text(params, "currency").lower()
    if not re.fullmatch(r"[a-z]{3}", value):
        raise invalid_parameter(f"Invalid currency: {value}", param="currency")
    return value


def flag(params: Json, name: str) -> bool:
    """Return a boolean; absent is false."""
    value = text(params, name)
    if value not in (None, "true", "false"):
        raise invalid_parameter(f"Invalid boolean: {value}", param=name)
    return value == "true"


def choice(params: Json, name: str, *, among: Sequence[str], default: str) -> str:
    """Return one of a few words."""
    value = text(params, name) or default
    if value not in among:
        raise invalid_parameter(f"Invalid {name}: must be one of {', '.join(among)}", param=name)
    return value


def metadata(params: Json) -> dict[str, str]:
    """Return the metadata, empty when there is none."""
    value = params.get("metadata") or {}
    if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
        raise invalid_parameter("Invalid metadata: must be a flat hash", param="metadata")
    if len(value) > _MAX_METADATA_KEYS:
        raise invalid_parameter("Metadata can have up to 50 keys.", param="metadata")
    for name, item in value.items():
        if len(name) > _MAX_METADATA_NAME or len(item) > _MAX_METADATA_VALUE:
            raise invalid_parameter(
                "Metadata names can be up to 40 characters long, values up to 500.",
                param=f"metadata[{name}]",
            )
    return dict(value)
