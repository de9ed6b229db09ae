"""Mixins over drf-spectacular's `AutoSchema`. Its underscored methods used here are pinned by a test."""

from collections.abc import Iterable, Iterator
from typing import Any

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework.permissions import SAFE_METHODS, AllowAny, IsAuthenticatedOrReadOnly

from idempotency.decorated import config_of
from idempotency.decorators import Config
from idempotency.http import problem
from idempotency.http.header import MAX_LENGTH, NAME
from idempotency.http.response import REPLAYED
from idempotency.http.route import handler_of
from idempotency.openapi.problems import BODY_CODES, KEY_CODES, TURNED_AWAY_CODES, by_status
from idempotency.openapi.promises import PROMISED
from idempotency.operations.registry import definitions

_KEY_SCHEMA = {
    "type": "string",
    "minLength": 1,
    # A quoted key may have each of its characters escaped.
    "maxLength": 2 * MAX_LENGTH + 2,
    "pattern": rf"^(?:[!#-+\--\[\]-~]{{1,{MAX_LENGTH}}}"
    rf'|"(?:[!#-\[\]-~]|\\["\\])(?:[ !#-\[\]-~]|\\["\\]){{0,{MAX_LENGTH - 1}}}")$',
    "example": "8e03978e-40d5-43dd-bc93-6894a57f9324",
}
_SECONDS = {"type": "integer", "minimum": 1}
_WAITS = [409, 429, 503, 504]


class ProblemSchema(AutoSchema):
    """Describes the problems that DRF itself answers any request with, where the view answers with problems at all."""

    def _get_response_bodies(self, direction: Any = "response") -> dict[str, Any]:
        bodies: dict[str, Any] = super()._get_response_bodies(direction)
        if _answers_with_problems(self.view):
            self.add_problems(bodies, self.framework_codes())
        return bodies

    def add_problems(self, bodies: dict[str, Any], codes: Iterable[str]) -> None:
        """Add a response for each status, or the examples that a response there does not have."""
        for (status, media_type), response in by_status(codes).items():
            made = _in_full(self, response, status, [media_type])
            _merge(bodies, str(status), made, media_type)

    def framework_codes(self) -> Iterator[str]:
        """Yield the codes of what DRF may raise before the handler, or in it."""
        if self.method in ("POST", "PUT", "PATCH"):
            yield from (code for code in BODY_CODES if code in _PLAIN)
        elif self._is_list_view():
            yield "invalid"
        if not _lets_everybody_in(self):
            yield from ("not-authenticated", "authentication-failed", "permission-denied")
        if "{" in self.path or self._is_list_view():
            yield "not-found"
        if self.view.get_throttles():
            yield "throttled"


class IdempotentSchema(AutoSchema):
    """Describes what `@idempotent` does; touches no operation that is not decorated.

    `problem_response` is the door for a host with an error format of its own.
    """

    def get_override_parameters(self) -> list[Any]:
        own = super().get_override_parameters()
        config = self.idempotent
        return own if config is None else [*own, *_parameters(config)]

    def get_response_serializers(self) -> Any:
        # What `@extend_schema(responses=…)` names comes first: this is asked where it names nothing.
        return PROMISED if self._is_promised() else super().get_response_serializers()

    def _get_response_bodies(self, direction: Any = "response") -> dict[str, Any]:
        bodies: dict[str, Any] = super()._get_response_bodies(direction)
        config = self.idempotent
        if config is None:
            return bodies
        if self._is_promised() and "202" not in bodies:
            bodies["202"] = _in_full(self, PROMISED[202], 202)
        for (status, media_type), response in by_status(_codes(config)).items():
            described = self.problem_response(status, response)
            types = [media_type] if described is response else None
            made = _in_full(self, described, status, types)
            _merge(bodies, str(status), made, media_type)
        return dict(sorted(bodies.items()))

    def problem_response(self, status: int, response: OpenApiResponse) -> OpenApiResponse:
        """Return how a problem is described, given how this package would answer it.

        Where the view's exception handler is another, only the status and its codes are known.
        """
        if _answers_with_problems(self.view):
            return response
        return OpenApiResponse({"type": "object"}, response.description)

    @property
    def idempotent(self) -> Config | None:
        """What `@idempotent` was given for this operation; None where it does not count here."""
        config = _config_of(self.view, self.method)
        return config if config is not None and self.method in config.methods else None

    def _is_promised(self) -> bool:
        config = self.idempotent
        return config is not None and config.operation in {each.name for each in definitions()}


_PLAIN = frozenset({"invalid", "parse-error", "unsupported-media-type"})


def _codes(config: Config) -> Iterator[str]:
    yield from (code for code in KEY_CODES if config.required or code != "key-missing")
    yield from BODY_CODES
    yield from TURNED_AWAY_CODES
    yield "error"


def _parameters(config: Config) -> Iterator[OpenApiParameter]:
    need = (
        "Required." if config.required else "Optional: without it each request is one of its own."
    )
    yield OpenApiParameter(
        NAME,
        _KEY_SCHEMA,
        OpenApiParameter.HEADER,
        required=config.required,
        description=(
            f"{need} One random value per operation, made with the intent and sent with every try of it: the work is "
            f"done once, and a repeat gets the first answer. Rules: [{problem.policy_address()}]"
            f"({problem.policy_address()}). Source: draft-ietf-httpapi-idempotency-key-header-07, an expired "
            "Internet-Draft."
        ),
    )
    yield _header(
        REPLAYED,
        {"type": "string", "enum": ["true"]},
        "There where the answer is that of an earlier request with this key.",
        # What is never stored is never replayed.
        [200, 201, 202, 204, 402, 409, 410, 412, 422],
    )
    yield _header("Retry-After", _SECONDS, "Seconds to wait before the next look.", [202])
    yield _header("Retry-After", _SECONDS, "Seconds to wait before the same request.", _WAITS)
    yield _header(
        "Location",
        {"type": "string", "format": "uri-reference"},
        "Where to see how the work stands.",
        [202],
        required=True,
    )
    if not config.required:
        yield _header(
            NAME,
            {"type": "string"},
            "The key that was made for a request without one.",
            [200, 201, 202],
        )


def _header(
    name: str, schema: dict[str, Any], description: str, statuses: list[int], **more: Any
) -> OpenApiParameter:
    return OpenApiParameter(
        name,
        schema,
        OpenApiParameter.HEADER,
        description=description,
        response=list(statuses),
        **more,
    )


def _in_full(
    schema: AutoSchema, response: OpenApiResponse, status: int, types: list[str] | None = None
) -> dict[str, Any]:
    made: dict[str, Any] = schema._get_response_for_code(  # type: ignore[no-untyped-call]  # noqa: SLF001
        response, str(status), types
    )
    return made


def _merge(bodies: dict[str, Any], status: str, made: dict[str, Any], media_type: str) -> None:
    """Put a problem response beside, or into, what is described for the status."""
    there = bodies.setdefault(status, made)
    if there is made:
        return
    content = there.setdefault("content", {})
    described = made.get("content", {})
    for name, body in described.items():
        known = content.setdefault(name, body)
        if known is not body and name == media_type:
            known["examples"] = {**known.get("examples", {}), **body.get("examples", {})}
    lines = (*there.get("description", "").split("\n"), *made["description"].split("\n"))
    there["description"] = "\n".join(dict.fromkeys(line for line in lines if line))


def _config_of(view: Any, method: str) -> Config | None:
    return config_of(handler_of(type(view), getattr(view, "action", None) or method.lower()))


def _answers_with_problems(view: Any) -> bool:
    return view.get_exception_handler() is problem.exception_handler


def _lets_everybody_in(schema: AutoSchema) -> bool:
    permissions = schema.view.get_permissions()
    if not permissions or not schema.view.get_authenticators():
        return True
    read = schema.method in SAFE_METHODS
    return all(
        isinstance(permission, AllowAny)
        or (read and isinstance(permission, IsAuthenticatedOrReadOnly))
        for permission in permissions
    )
