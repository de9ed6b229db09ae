"""What of a stored body is shown: its shape to everybody, its values to whoever may see them, secrets to nobody.

# Note [Redacted]
Secrets by their usual names, and card numbers wherever they stand, are shown to nobody. What else is not is the host's
to say, in `IDEMPOTENCY["REDACT"]`: by a field's name, wherever it is, or by its path from the top, in which `*` is any
one name or place in a list. What is hidden is hidden with all that is in it.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl

from idempotency.conf import conf
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
_FORM = re.compile(r"[\w.\[\]%+-]+=[^&=\s]*(?:&[\w.\[\]%+-]+=[^&=\s]*)*")
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
    text = json.dumps(_walked(value, (), revealed), indent=2, ensure_ascii=False, default=str)
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
        name.replace("_", " ").replace("-", " "): HIDDEN if _redacted((name,)) else _said(value)
        for name, value in plain.items()
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
        return _form(raw)


def _form(raw: bytes) -> Any:
    """Return the fields of a form, as payment gateways are sent them; the bytes where they are none."""
    try:
        text = raw.decode("ascii")
    except UnicodeDecodeError:
        return raw
    if not _FORM.fullmatch(text):
        return raw
    fields: dict[str, Any] = {}
    for name, value in parse_qsl(text, keep_blank_values=True):
        fields[name] = [*fields.get(name, []), value]
    return {name: values if len(values) > 1 else values[0] for name, values in fields.items()}


def _opaque(raw: bytes, *, revealed: bool) -> str:
    if not revealed:
        return f"{HIDDEN} ({len(raw):,} bytes)"
    try:
        return mask(raw[:_LONGEST].decode())
    except UnicodeDecodeError:
        return f"{len(raw):,} bytes that are not text"


def _walked(value: Any, path: tuple[str, ...], revealed: bool) -> Any:
    if len(path) > _DEPTH or (value is not None and _redacted(path)):
        return HIDDEN
    if isinstance(value, dict):
        return {
            mask(str(key)): _walked(item, (*path, *_steps(str(key))), revealed)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_walked(item, (*path, "*"), revealed) for item in value]
    if value is None or isinstance(value, bool):
        return value
    if not (revealed or _name(path) in _PLAIN):
        return HIDDEN
    return mask(value) if isinstance(value, str) else value


def _steps(key: str) -> Sequence[str]:
    """Return a key as steps of a path: forms write `card[number]`."""
    return [step for step in re.split(r"[\[\]]", key) if step] or [key]


def _name(path: tuple[str, ...]) -> str:
    """Return the name of what is at a path; what is in a list has the list's."""
    return next((step for step in reversed(path) if step != "*"), "")


def _redacted(path: tuple[str, ...]) -> bool:
    """Return whether nobody is shown what is there; see Note [Redacted]."""
    name = _name(path)
    if not name:
        return False
    if _SECRET.search(name):
        return True
    here = [_same(step) for step in path]
    for rule in conf.REDACT:
        steps = [_same(step) for step in rule.split(".")]
        if steps == [_same(name)]:
            return True
        if len(steps) == len(here) > 1 and all(
            step in ("*", at) for step, at in zip(steps, here, strict=True)
        ):
            return True
    return False


def _same(name: str) -> str:
    return name.casefold().replace("-", "_")
