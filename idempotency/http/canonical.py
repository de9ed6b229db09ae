"""JSON bytes become one canonical form: equal for two bodies if and only if they mean the same.

Equal whatever the member order, white space, escapes, and spelling of a number: 10, 10.0 and 1e1
are one value, and -0 is 0. Different: array order, null and a missing member, texts of different
code points (no Unicode normalisation), and integers beyond 2**53, which floats would merge.

Refused, since readers disagree about them or cannot hold them: a member given twice, NaN and
infinities, also by overflow (1e400), a lone surrogate, too deep nesting, bytes that are not text.
"""

import json
from typing import Any

MAX_DEPTH = 100
_LONGEST_EXPONENT = 6
_NAN = float("nan")


class NotCanonical(ValueError):
    """The body has no canonical form; the message is one sentence for the caller."""


def canonical(*, body: bytes, encoding: str = "utf-8") -> bytes:
    """Return the canonical form of a JSON text as UTF-8.

    Raises: NotCanonical.

    Source: RFC 8259; RFC 7493 §2 for what is refused.
    """
    try:
        text = body.decode(encoding)
    except ValueError as error:
        raise NotCanonical(f"it is not {encoding} text") from error
    if text.startswith("\ufeff"):
        raise NotCanonical("it starts with a byte order mark")
    try:
        tree = _DECODER.decode(text)
    except RecursionError as error:
        raise NotCanonical(_TOO_DEEP) from error
    except json.JSONDecodeError as error:
        raise NotCanonical(str(error)) from error
    except NotCanonical:
        raise
    except ValueError as error:
        # Python's own limit, against numbers that take long to read.
        raise NotCanonical("a number has too many digits") from error
    _refuse_depth(tree, text)
    try:
        return _ENCODER.encode(tree).encode()
    except UnicodeEncodeError as error:
        raise NotCanonical("a text holds a lone surrogate") from error


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise NotCanonical("an object has the same member twice")
    return members


def _number(text: str) -> Any:
    """Return a number written with a fraction or exponent, as its exact value.

    A whole number is an int, as if it had been written so. Any other is a tuple that starts with
    NaN, which no body can hold: the encoder writes an array that nothing else is written as.
    """
    mantissa, _, exponent = text.lower().partition("e")
    if len(exponent) > _LONGEST_EXPONENT or float(text) in (float("inf"), float("-inf")):
        raise NotCanonical("a number is out of range")
    sign = "-" if mantissa.startswith("-") else ""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits = (whole + fraction).lstrip("0")
    scale = int(exponent or 0) - len(fraction)
    significant = digits.rstrip("0")
    if not significant:
        return 0
    scale += len(digits) - len(significant)
    if scale >= 0:
        return int(sign + significant + "0" * scale)
    return (_NAN, f"{sign}{significant}e{scale}")


def _refuse_constant(text: str) -> None:
    raise NotCanonical(f"{text} is not JSON")


def _refuse_depth(tree: Any, text: str) -> None:
    # Most bodies have fewer brackets than they may have levels.
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return
    level = [tree]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for value in level
            if type(value) in _CONTAINERS
            for child in (value.values() if type(value) is dict else value)
            if type(child) in _CONTAINERS
        ]
        if not level:
            return
    raise NotCanonical(_TOO_DEEP)


_CONTAINERS = (dict, list)
_DECODER = json.JSONDecoder(
    object_pairs_hook=_members, parse_float=_number, parse_constant=_refuse_constant
)
# The encoder in C does the work. It knows no exact decimals, see `_number`.
_ENCODER = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, sort_keys=True, separators=(",", ":")
)
_TOO_DEEP = f"it is nested more than {MAX_DEPTH} levels deep"
