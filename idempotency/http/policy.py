"""The policy for keys, out of the live settings: what the draft says a server MUST publish.

Source: draft-ietf-httpapi-idempotency-key-header-07 §2.3, an expired Internet-Draft.
"""

from typing import Any

from idempotency.conf import conf
from idempotency.http.header import MAX_LENGTH, NAME
from idempotency.http.response import REPLAYED

DRAFT = "draft-ietf-httpapi-idempotency-key-header-07"


def policy() -> dict[str, Any]:
    """Return the policy as data. Durations are seconds."""
    return {
        "header": NAME,
        "based_on": f"{DRAFT} (an expired Internet-Draft)",
        "key": {
            "length": {"least": 1, "most": MAX_LENGTH},
            "characters": "visible ASCII without quote, comma and backslash; or an RFC 9651 string",
            "recommended": "UUID version 4",
        },
        "scope": {"by": _hook(conf.SCOPE), "tenant": _hook(conf.TENANT) if conf.TENANT else None},
        "same_request": {
            "compared": ["method", "route", "path", "query", "media type", "body as sent"],
            "headers": list(conf.FINGERPRINT_HEADERS),
            "mismatch_status": conf.MISMATCH_STATUS,
        },
        "repeat_while_in_progress": {"status": 409, "waits": conf.WAIT},
        "time_to_live": {
            "counted_from": "the settlement of the operation",
            "answer": conf.RESULT_TTL,
            "key": conf.KEY_TTL,
            "unsettled": None,
        },
        "stored": {
            "answer": ["status", "body", "content type"],
            "headers": list(conf.STORED_HEADERS),
            "longest_body": conf.MAX_RESPONSE_BYTES,
            "request": "a keyed digest of it, never its body",
        },
        "replay_marker": {"header": REPLAYED, "value": "true"},
        "problems": conf.PROBLEM_BASE,
    }


def sections() -> list[tuple[str, list[str]]]:
    """Return the policy as headings with sentences, for people; `code` is in backticks."""
    return [
        ("The key", _key()),
        ("Whose key it is", _scope()),
        ("What counts as the same request", _same_request()),
        ("What a repeat gets", _repeat()),
        ("How long it holds", _time_to_live()),
        ("What is stored", _stored()),
        ("What is not promised", _not_promised()),
    ]


def markdown() -> str:
    """Return the policy as a Markdown document."""
    parts = [f"# {TITLE}", INTRODUCTION]
    for heading, sentences in sections():
        parts += [f"## {heading}", "\n".join(f"- {sentence}" for sentence in sentences)]
    return "\n\n".join(parts) + "\n"


TITLE = "Idempotency keys"
INTRODUCTION = (
    f"Rules for the `{NAME}` request header, after {DRAFT}, an expired Internet-Draft. They are made from the "
    "settings in force."
)


def _key() -> list[str]:
    return [
        f"A key has 1 to {MAX_LENGTH} characters.",
        (
            "It is sent bare, as visible ASCII without quote, comma and backslash, or in double quotes as an RFC 9651 "
            'string: `k1` and `"k1"` are one key.'
        ),
        (
            "Make it at random, e.g. a UUID version 4: one for each operation, made with the intent to do it, "
            "kept where a restart does not lose it, and sent with every try."
        ),
        "A blank or repeated header, or one with other characters, is refused with 400 `key-invalid`.",
        "On GET, HEAD and OPTIONS the header is ignored.",
    ]


def _scope() -> list[str]:
    tenant = "the tenant and " if conf.TENANT else ""
    own = "" if _hook(conf.SCOPE) == _DEFAULT_SCOPE else f" (by `{_hook(conf.SCOPE)}`)"
    return [
        (
            f"A key belongs to {tenant}the caller who sent it{own}, never to the credential: a renewed token is the "
            "same caller."
        ),
        "Two callers may use equal keys; neither learns of the other's.",
        "A key counts per operation: the same key at another operation is another key.",
    ]


def _same_request() -> list[str]:
    headers = ", ".join(f"`{name}`" for name in conf.FINGERPRINT_HEADERS)
    return [
        "Compared are method, route, path, query, media type and the body as sent"
        + (f", and the headers {headers}." if headers else "; no headers."),
        "In the query the order of different names does not matter; that of equal names does.",
        (
            "In JSON the order of members, white space and escapes do not matter, and numbers compare by their "
            "exact value: `1`, `1.0` and `1e0` are equal; `9007199254740992` and `9007199254740993` are not, nor are "
            '`1` and `"1"`.'
        ),
        (
            "The order of an array, null instead of a missing member, and a text of other characters make another "
            "request: nothing is trimmed, filled in or normalised first."
        ),
        (
            "JSON that two readers could understand differently (a member given twice, NaN, infinity, a lone "
            "surrogate) is refused with 400 `body-invalid`, and the key stays free."
        ),
        (
            "A form is its pairs in their order; a multipart body is its parts by name, a file with its name, type and "
            "content, whatever the boundary; of any other body every byte counts."
        ),
        f"The same key with another request is refused with {conf.MISMATCH_STATUS} `key-reused`, and changes nothing.",
    ]


def _repeat() -> list[str]:
    wait = f", after up to {duration(conf.WAIT)}," if conf.WAIT else ""
    return [
        f"Of a settled operation: the first answer again, byte for byte, with `{REPLAYED}: true`.",
        f"While the first request runs{wait}: 409 `in-progress` with Retry-After.",
        (
            "While it is not known whether it happened: 409 `outcome-unknown` with Retry-After; the first request got "
            "504. Never use a new key then."
        ),
        "Of deferred work: the same 202, whose Location tells how it stands.",
        (
            "What was refused before anything happened (400, 401, 403, 404, 429 and the like, and every 503) leaves "
            "the key free: send the same key again."
        ),
    ]


def _time_to_live() -> list[str]:
    return [
        "Both times count from the moment when the operation is settled.",
        (
            f"The answer is replayed for {duration(conf.RESULT_TTL)}; after that a repeat gets 410 `result-expired`, "
            "and nothing runs."
        ),
        f"The key is known for {duration(conf.KEY_TTL)}; after that it counts as new.",
        "A key whose operation is in progress or unknown never expires.",
    ]


def _stored() -> list[str]:
    headers = ", ".join(f"`{name}`" for name in conf.STORED_HEADERS)
    return [
        f"Of the answer: status, body up to {conf.MAX_RESPONSE_BYTES} bytes, content type, and the headers {headers}.",
        "Of a longer answer only that the work is done: a repeat gets 409 `result-unavailable`.",
        "Of the request: a keyed digest, by which a repeat is recognised, and never its body.",
        "Of calls to other systems: what was sent and what came back, for as long as the key.",
    ]


def _not_promised() -> list[str]:
    return [
        "A key does not promise that a request is run once, but that its effect happens once.",
        "Two different keys are two operations, whatever their bodies.",
    ]


def duration(seconds: float) -> str:
    """Return a time in the largest unit that measures it without a rest: `3 days`, `90 seconds`."""
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds and seconds % size == 0:
            count = int(seconds // size)
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return f"{seconds:g} second{'' if seconds == 1 else 's'}"


_DEFAULT_SCOPE = "idempotency.http.scope.tenant_and_user"


def _hook(hook: Any) -> str:
    return f"{hook.__module__}.{hook.__qualname__}" if hasattr(hook, "__qualname__") else repr(hook)
