"""Problems in the API's description: one response a status, one example a code, out of the catalogue."""

from collections.abc import Iterable, Mapping
from typing import Any

from drf_spectacular.utils import OpenApiExample, OpenApiResponse
from rest_framework import serializers

from idempotency.conf import conf
from idempotency.http import problem
from idempotency.http.problem import Entry

KEY_CODES = (
    "key-missing",
    "key-invalid",
    "key-reused",
    "in-progress",
    "outcome-unknown",
    "result-unavailable",
    "result-expired",
    "not-done",
)
"""What a decorated handler can answer about its key."""

TURNED_AWAY_CODES = (
    "ledger-unavailable",
    "overloaded",
    "no-time",
    "circuit-open",
    "gateway-unavailable",
    "read-only",
)
BODY_CODES = (
    "invalid",
    "parse-error",
    "body-invalid",
    "body-unreadable",
    "length-required",
    "body-too-large",
    "unsupported-media-type",
)
"""What any operation that takes a body can answer about it; `body-…` and `length-required` only under a key."""

_REF = "01990c2e-6f4a-7c1b-9a55-0f3c2d1e4b5a"
_KNOWN_KEY = {"operation_ref": _REF, "resource": "/api/things/1/"}
_MEMBERS: Mapping[str, Mapping[str, Any]] = {
    "key-reused": {
        **_KNOWN_KEY,
        "safe_new_key": True,
        "operation_state": "settled",
        "differing": ["body"],
    },
    "in-progress": {"operation_ref": _REF},
    "outcome-unknown": _KNOWN_KEY,
    "result-unavailable": _KNOWN_KEY,
    "result-expired": _KNOWN_KEY,
    "not-done": {"operation_ref": _REF},
    "invalid": {"errors": {"amount": ["A valid integer is required."]}},
}
"""What the example of a code shows beside type, title, status, detail and code."""


class ProblemOut(serializers.Serializer[Any]):
    """Why a request was not answered with success. Source: RFC 9457."""

    type = serializers.CharField(help_text="Address of a page about the code, or `about:blank`")
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    code = serializers.CharField(help_text="What to decide by; each has a page")
    retryable = serializers.BooleanField(
        required=False, help_text="Whether the same request under the same key is worth another try"
    )
    safe_new_key = serializers.BooleanField(
        required=False, help_text="Whether a new key can never do the same work twice"
    )
    operation_ref = serializers.CharField(required=False, help_text="What to show to support")
    resource = serializers.CharField(required=False, help_text="Where the outcome can be read")
    operation_state = serializers.CharField(
        required=False, help_text="How far the request is that the key belongs to"
    )
    differing = serializers.ListField(
        child=serializers.CharField(), required=False, help_text="In what it differs from this one"
    )
    policy = serializers.CharField(required=False, help_text="Address of the rules for keys")
    errors = serializers.JSONField(  # type: ignore[assignment]  # DRF takes it off the class
        required=False, help_text="What is wrong, by field"
    )

    class Meta:
        ref_name = "Problem"


def problems(*codes: str) -> dict[Any, OpenApiResponse]:
    """Return responses for `@extend_schema(responses={…, **problems("payment-declined")})`.

    Raises:
        KeyError: a code is in no catalogue.
    """
    return by_status(codes)


def by_status(codes: Iterable[str]) -> dict[Any, OpenApiResponse]:
    """Return one problem response for each (status, media type) that the codes have."""
    entries = problem.catalogue()
    found: dict[int, list[Entry]] = {}
    for code in dict.fromkeys(codes):
        for status in statuses_of(entries[code]):
            found.setdefault(status, []).append(entries[code])
    return {
        (status, problem.MEDIA_TYPE): OpenApiResponse(
            ProblemOut, described(group), [_example(entry, status) for entry in group]
        )
        for status, group in sorted(found.items())
    }


def statuses_of(entry: Entry) -> tuple[int, ...]:
    """Return every status that carries the code under the live settings."""
    if entry.code == "key-reused":
        return (conf.MISMATCH_STATUS,)
    return (entry.status, *entry.also)


def described(entries: Iterable[Entry]) -> str:
    """Return one line a code, as Markdown."""
    return "\n".join(f"- `{entry.code}`: {entry.title}." for entry in entries)


def _example(entry: Entry, status: int) -> OpenApiExample:
    body: dict[str, Any] = {
        "type": f"{conf.PROBLEM_BASE}{entry.code}/",
        "title": entry.title,
        "status": status,
        "detail": entry.when,
        "code": entry.code,
    }
    if entry.retryable is not None:
        body["retryable"] = entry.retryable
    if entry.safe_new_key is not None:
        body["safe_new_key"] = entry.safe_new_key
    if entry.code in problem.ABOUT_KEYS:
        body["policy"] = problem.policy_address()
    return OpenApiExample(
        entry.code,
        value={**body, **_MEMBERS.get(entry.code, {})},
        summary=entry.title,
        media_type=problem.MEDIA_TYPE,
        status_codes=[str(status)],
        response_only=True,
    )
