"""The `Idempotency-Key` request header: one key out of it, or a refusal.

The header comes from draft-ietf-httpapi-idempotency-key-header-07, an expired Internet-Draft, which
makes it a Structured Field string. Most clients send it bare, so both forms are read as one key.
"""

import re
import uuid

from django.http import HttpRequest
from rest_framework.request import Request

from idempotency.http.problem import KeyInvalid, KeyMissing

NAME = "Idempotency-Key"
MAX_LENGTH = 255

# RFC 9651 §3.1.2 (parameters) and §3.3 (bare items). Each alternative starts with a character of
# its own, so a match never has to go back.
_PARAMETER_VALUE = r"""(?:
    -?[0-9]{1,12}\.[0-9]{1,3} | -?[0-9]{1,15}                # decimal, integer
  | "(?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*"              # string
  | [A-Za-z*][A-Za-z0-9!\#$%&'*+\-.^_`|~:/]*                 # token
  | :(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2,3}={0,2})?:     # byte sequence
  | \?[01]                                                   # boolean
  | @-?[0-9]{1,15}                                           # date
  | %"(?:[\x20\x21\x23\x24\x26-\x7e]|%[0-9a-f]{2})*"         # display string
)"""
_STRING_ITEM = re.compile(
    rf"""
    "(?P<value>(?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"   # §3.3.3
    (?P<parameters>(?:;[ ]*[a-z*][a-z0-9_\-.*]*(?:={_PARAMETER_VALUE})?)*)
    """,
    re.VERBOSE,
)
_ESCAPE = re.compile(r'\\(["\\])')
_DISPLAY_STRING = re.compile(r'=%"([^"]*)"')
_BARE = re.compile(r"[\x21\x23-\x2b\x2d-\x5b\x5d-\x7e]+")
_ACTING = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
# As written on a card, 4-4-4-4 or 4-6-5, or without gaps.
_CARD = re.compile(
    r"(?<![0-9])(?:[0-9]{13,19}"
    r"|[0-9]{4}([ -])(?:[0-9]{4}\1[0-9]{4}\1[0-9]{1,7}|[0-9]{6}\1[0-9]{4,5}))(?![0-9])"
)


def read_key(*, request: HttpRequest | Request, required: bool) -> str | None:
    """Read the key from the request; None only where the header is absent and not required.

    Returns 1 to 255 characters of printable ASCII. `"k1"` and `k1` are the same key.

    Raises:
        KeyMissing: required and absent.
        KeyInvalid: present and not exactly one well-formed key; blank counts as present.

    Source: RFC 9651 §4.2.5, RFC 9110 §5.5.
    """
    raw = request.META.get("HTTP_IDEMPOTENCY_KEY")
    if raw is None:
        if required:
            raise KeyMissing
        return None
    # RFC 9110 §5.5: white space around a field value is not part of it, and most servers drop it.
    key = parse(raw.strip(" \t"))
    if not key.strip(" "):
        raise KeyInvalid("The key is blank.")
    if len(key) > MAX_LENGTH:
        raise KeyInvalid(f"The key is longer than {MAX_LENGTH} characters.")
    return key


def parse(value: str) -> str:
    """Return the key that a field value stands for, unescaped.

    Raises: KeyInvalid, naming what is wrong but never repeating the value.
    """
    if value.startswith('"'):
        item = _STRING_ITEM.fullmatch(value)
        if item is None or not _is_utf8(item["parameters"]):
            raise KeyInvalid("A key that starts with a quote must be one RFC 9651 string.")
        return _ESCAPE.sub(r"\1", item["value"])
    if value and not _BARE.fullmatch(value):
        raise KeyInvalid(
            "A bare key is one value of visible ASCII characters without quote, comma or backslash."
        )
    return value


def mint() -> str:
    """Return a new key, for a request that came without one."""
    return str(uuid.uuid4())


def mask(text: str) -> str:
    """Return a key, or other text from outside, for logs and screens.

    Of a card number only the last four digits are left. U+FFFD stands for what would act on the screen: a terminal's
    control characters, those that turn the direction of the text around them, and half a pair, which cannot be written.
    """
    return _CARD.sub(lambda found: _masked(found[0]), _ACTING.sub("\ufffd", text))


def _is_utf8(parameters: str) -> bool:
    # RFC 9651 §4.2.10: a display string is percent-encoded UTF-8, or the whole field is wrong.
    for text in _DISPLAY_STRING.findall(parameters):
        try:
            re.sub(
                rb"%(..)", lambda octet: bytes.fromhex(octet[1].decode()), text.encode()
            ).decode()
        except UnicodeDecodeError:
            return False
    return True


def _masked(text: str) -> str:
    digits = [int(character) for character in text if character.isdigit()]
    if not _passes_luhn(digits):
        return text
    return re.sub(r"[0-9]", "*", text[:-4]) + text[-4:]


def _passes_luhn(digits: list[int]) -> bool:
    doubled = (sum(divmod(2 * digit, 10)) for digit in digits[-2::-2])
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0
