"""What of a stored body is shown: its shape to everybody, its values to whoever may see them, secrets to nobody."""

import json
import re
from collections.abc import Mapping
from typing import Any

from idempotency.http.header import mask

HIDDEN = "•••"

# Words without which a shape says nothing; none of them tells who somebody is.
_PLAIN = frozenset(
    (
        *(
            "id",
            "object",
            "order_id",
            "payment",
            "operation_ref",
            "status",
            "state",
            "code",
            "type",
            "title",
        ),
        *("currency", "amount", "created", "created_at", "livemode", "retryable", "safe_new_key"),
    )
)
# What the ledger and its staff write as evidence, and what a host says in late news: no caller's data is in it.
_EVIDENCE = frozenset(
    (
        *(
            "decision",
            "detail",
            "error",
            "reference",
            "references",
            "looked_at",
            "looked-up",
            "code",
            "step",
            "by",
        ),
        *(
            "downstream_key",
            "gateway_reference",
            "seen_at",
            "note",
            "happened",
            "refusal",
            "asked",
            "outcome",
        ),
        *("our_books_said", "about", "said", "expected", "kind", "seen_where", "request_id"),
        *("breaker", "before", "rows", "list", "event"),
    )
)
_SECRET = re.compile(
    r"secret|token|password|authorization|cookie|api_?key|private|cvc|cvv|^pan$|card_?number",
    re.IGNORECASE,
)
_DEPTH = 12
_LONGEST = 20_000


def shown(raw: object, *, revealed: bool) -> str:
    """Return a stored value as indented text.

    Args:
        raw: bytes as they were stored, or what JSON holds.
        revealed: whether values are shown; secrets and card numbers never are.
    """
    value = _parsed(bytes(raw)) if isinstance(raw, bytes | memoryview) else raw
    if isinstance(value, bytes):
        return _opaque(value, revealed=revealed)
    text = json.dumps(_walked(value, "", revealed, 0), indent=2, ensure_ascii=False, default=str)
    return (
        text
        if len(text) <= _LONGEST
        else f"{text[:_LONGEST]}\n… {len(text) - _LONGEST:,} more characters"
    )


def evidence(detail: Mapping[str, Any], *, revealed: bool) -> tuple[dict[str, str], str]:
    """Return evidence as facts to read at once, and the rest of it, such as another side's whole answer, as text."""
    inner = detail.get("evidence")
    if isinstance(inner, Mapping):
        detail = {name: value for name, value in detail.items() if name != "evidence"} | dict(inner)
    plain = {
        name: value for name, value in detail.items() if name in _EVIDENCE and _is_plain(value)
    }
    rest = {name: value for name, value in detail.items() if name not in plain}
    facts = {
        name.replace("_", " ").replace("-", " "): _said(value) for name, value in plain.items()
    }
    return {name: value for name, value in facts.items() if value}, shown(
        rest, revealed=revealed
    ) if rest else ""


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, str | int | float | list)


def _said(value: object) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case None:
            return ""
        case list():
            return ", ".join(_said(item) for item in value)
        case _:
            return mask(str(value))


def _parsed(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return raw


def _opaque(raw: bytes, *, revealed: bool) -> str:
    if not revealed:
        return f"{HIDDEN} ({len(raw):,} bytes)"
    try:
        return mask(raw[:_LONGEST].decode())
    except UnicodeDecodeError:
        return f"{len(raw):,} bytes that are not text"


def _walked(value: Any, name: str, revealed: bool, depth: int) -> Any:
    if depth > _DEPTH:
        return HIDDEN
    if isinstance(value, dict):
        return {
            mask(str(key)): _walked(item, str(key), revealed, depth + 1)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_walked(item, name, revealed, depth + 1) for item in value]
    if value is None or isinstance(value, bool):
        return value
    if _SECRET.search(name) or not (revealed or name in _PLAIN):
        return HIDDEN
    return mask(value) if isinstance(value, str) else value
