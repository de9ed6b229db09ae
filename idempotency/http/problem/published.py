"""Every problem code: the pages, the OpenAPI document and the reference are made from this."""

from collections.abc import Mapping
from types import MappingProxyType

from django.utils.module_loading import import_string

from idempotency.conf import conf
from idempotency.http.problem.entries import KEYS, REQUESTS, UNAVAILABLE, Entry


def _plain(code: str, status: int, title: str, when: str, client: str) -> Entry:
    return Entry(code=code, status=status, title=title, when=when, client=client)


# What DRF itself raises, under its own codes.
_FRAMEWORK = (
    _plain(
        "invalid",
        400,
        "The input is not valid",
        "A field is missing or has a value that is not allowed; errors names them.",
        "Correct the fields; the same key can be used.",
    ),
    _plain(
        "parse-error",
        400,
        "The request could not be read",
        "The body is not well formed.",
        "Correct the body; the same key can be used.",
    ),
    _plain(
        "not-authenticated",
        401,
        "Credentials are missing",
        "The request has no credentials.",
        "Send credentials; the same key can be used.",
    ),
    _plain(
        "authentication-failed",
        401,
        "Credentials are wrong",
        "The credentials are unknown, expired or revoked.",
        "Get new credentials of the same account; the same key can be used.",
    ),
    _plain(
        "permission-denied",
        403,
        "This is not allowed",
        "The account may not do this.",
        "Ask for the right; repeating will not help.",
    ),
    _plain(
        "not-found",
        404,
        "There is nothing here",
        "The address names nothing that the account may see.",
        "Check the address.",
    ),
    _plain(
        "method-not-allowed",
        405,
        "The method is not supported here",
        "The address exists, but not for this method.",
        "See the Allow header.",
    ),
    _plain(
        "not-acceptable",
        406,
        "No acceptable form of the answer",
        "The Accept header names no media type that the service can write.",
        "Accept application/json.",
    ),
    _plain(
        "unsupported-media-type",
        415,
        "The media type of the body is not supported",
        "The Content-Type names a form of body that the endpoint cannot read.",
        "Send JSON, or what the endpoint's description names.",
    ),
    _plain(
        "throttled",
        429,
        "Too many requests",
        "The account has sent too many requests.",
        "Repeat the same request with the same key after Retry-After.",
    ),
    _plain(
        "error",
        500,
        "Something went wrong here",
        "The service failed in a way that it does not explain.",
        "Repeat the same request with the same key, later.",
    ),
)

BUILT_IN: Mapping[str, Entry] = MappingProxyType(
    {entry.code: entry for entry in (*KEYS, *UNAVAILABLE, *REQUESTS, *_FRAMEWORK)}
)


def catalogue() -> Mapping[str, Entry]:
    """Return every code that is published here: the built-in ones and those of `conf.PROBLEMS`.

    Each path names a mapping from a code to the other fields of its entry, e.g.
    `{"payment-declined": {"status": 402, "title": "…", "when": "…", "client": "…"}}`.
    """
    entries = dict(BUILT_IN)
    for path in conf.PROBLEMS:
        for code, fields in import_string(path).items():
            entries[code] = Entry(code=code, **fields)
    return entries
