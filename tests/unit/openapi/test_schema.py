"""What `@idempotent` does is described from the decorator itself, and nothing else is touched."""

from typing import Any

import pytest
from django.test import override_settings
from django.urls import path
from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema as SpectacularSchema
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from drf_spectacular.validation import validate_schema
from rest_framework import serializers
from rest_framework.decorators import api_view
from rest_framework.generics import CreateAPIView, GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.schemas.openapi import AutoSchema as DrfSchema
from rest_framework.viewsets import GenericViewSet

from idempotency.decorators import idempotent
from idempotency.http import problem
from idempotency.openapi import AutoSchema, IdempotentSchema, problems
from idempotency.operations import operation

KEY = "Idempotency-Key"


class Thing(serializers.Serializer[Any]):
    name = serializers.CharField()


class OnlyTheMixin(IdempotentSchema, SpectacularSchema):
    """As in a host that keeps everything else as it is."""


class HostsOwn(SpectacularSchema):
    """A schema class of a host's own, which adds to what it inherits."""

    def get_override_parameters(self) -> list[Any]:
        return [
            *super().get_override_parameters(),
            OpenApiParameter("X-Host", str, OpenApiParameter.HEADER),
        ]

    def get_tags(self) -> list[str]:
        return ["host"]


class OverTheHosts(IdempotentSchema, HostsOwn):
    """The mixin first."""


@operation("openapi.deferred")
def deferred(*, claim: Any, input: Any) -> Any:  # noqa: A002
    """Do nothing."""


class Generic(CreateAPIView[Any]):
    serializer_class = Thing

    @idempotent(operation="openapi.generic", required=True)
    def create(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return Response()


def views(schema: type[SpectacularSchema]) -> dict[str, Any]:
    class Things(GenericViewSet[Any]):
        serializer_class = Thing

        def list(self, request: Request) -> Response:
            return Response()

        @idempotent(operation="openapi.create", required=True)
        def create(self, request: Request) -> Response:
            return Response()

        @extend_schema(
            responses={201: Thing, **problems("call-rejected")},
            parameters=[OpenApiParameter("X-More", str, OpenApiParameter.HEADER)],
        )
        @idempotent(operation="openapi.extended")
        def extended(self, request: Request) -> Response:
            return Response()

        @idempotent(operation="openapi.deferred", required=True)
        def defer(self, request: Request) -> Response:
            return Response()

    class Both(GenericAPIView[Any]):
        serializer_class = Thing

        @idempotent(operation="openapi.both", methods=["PUT"])
        def put(self, request: Request) -> Response:
            return Response()

        patch = put

        def get(self, request: Request) -> Response:
            return Response()

    @extend_schema(request=Thing, responses={200: Thing})
    @api_view(["POST"])
    @idempotent(operation="openapi.function", required=True)
    def function(request: Request) -> Response:
        return Response()

    # The class under test instead of the project's.
    for view in (Things, Both, Generic):
        view.schema = schema()
    for handler in (Things.extended,):
        kwargs = handler.kwargs["schema"]  # type: ignore[attr-defined]
        handler.kwargs["schema"] = type("Extended", (kwargs, schema), {})  # type: ignore[attr-defined]
    return {
        "things/": Things.as_view({"get": "list", "post": "create"}),
        "extended/": Things.as_view({"post": "extended"}),
        "deferred/": Things.as_view({"post": "defer"}),
        "both/": Both.as_view(),
        "function/": function,
        "generic/": Generic.as_view(),
    }


def described(schema: type[SpectacularSchema] = AutoSchema) -> dict[str, Any]:
    patterns = [path(route, view) for route, view in views(schema).items()]
    GENERATOR_STATS.reset()
    generator: Any = SchemaGenerator
    validate: Any = validate_schema
    made = generator(patterns=patterns).get_schema(public=True)
    assert not GENERATOR_STATS, GENERATOR_STATS._warn_cache
    validate(made)
    paths: dict[str, Any] = made["paths"]
    return paths


def header(operation: dict[str, Any], name: str = KEY) -> dict[str, Any]:
    return next((each for each in operation.get("parameters", ()) if each["name"] == name), {})


def codes(operation: dict[str, Any], status: str) -> set[str]:
    examples = operation["responses"][status]["content"][problem.MEDIA_TYPE]["examples"]
    return {each["value"]["code"] for each in examples.values()}


def test_the_key_is_a_parameter_and_says_whether_it_is_required() -> None:
    paths = described()
    required = header(paths["/things/"]["post"])
    assert (required["in"], required["required"]) == ("header", True)
    assert problem.policy_address() in required["description"]
    assert header(paths["/extended/"]["post"]).get("required", False) is False
    assert header(paths["/function/"]["post"])["required"]
    assert header(paths["/generic/"]["post"])["required"]


def test_every_problem_of_the_key_has_its_example() -> None:
    responses = described()["/things/"]["post"]["responses"]
    shown = {
        example["value"]["code"]
        for status, response in responses.items()
        for example in response["content"].get(problem.MEDIA_TYPE, {}).get("examples", {}).values()
        if status == str(example["value"]["status"])
    }
    built_in = set(problem.BUILT_IN) - {"too-late", "call-rejected"}
    unreachable = {"not-found", "method-not-allowed", "not-acceptable", "throttled"}
    assert built_in - unreachable <= shown
    assert "key-missing" not in codes(described()["/extended/"]["post"], "400")
    for status in ("409", "503", "504"):
        assert "Retry-After" in responses[status]["headers"]
    assert "Idempotent-Replayed" in responses["201"]["headers"]


def test_the_status_of_a_reused_key_is_the_settings() -> None:
    assert codes(described()["/things/"]["post"], "422") == {"key-reused"}
    with override_settings(IDEMPOTENCY={"MISMATCH_STATUS": 409}):
        operation = described()["/things/"]["post"]
    assert "key-reused" in codes(operation, "409")
    assert "422" not in operation["responses"]


def test_deferred_work_is_described_unasked_with_its_headers() -> None:
    """The operation's name alone says that the work is done later."""
    responses = described()["/deferred/"]["post"]["responses"]
    assert {"200", "201"}.isdisjoint(responses)
    assert {"Location", "Retry-After", "Idempotent-Replayed"} == set(responses["202"]["headers"])
    assert responses["202"]["content"]["application/json"]["examples"]


def test_what_extend_schema_says_stands_and_is_added_to() -> None:
    operation = described()["/extended/"]["post"]
    assert header(operation, "X-More")
    assert header(operation)
    assert codes(operation, "402") == {"call-rejected"}
    assert "201" in operation["responses"]


def test_reads_and_other_methods_are_left_untouched() -> None:
    paths, plain = described(OnlyTheMixin), described(SpectacularSchema)
    for route, method in (("/things/", "get"), ("/both/", "get"), ("/both/", "patch")):
        assert paths[route][method] == plain[route][method]
    assert header(paths["/both/"]["put"])


def test_it_works_over_a_hosts_own_schema_class() -> None:
    operation = described(OverTheHosts)["/things/"]["post"]
    assert header(operation, "X-Host")
    assert header(operation)
    assert operation["tags"] == ["host"]


def test_a_hosts_own_error_format_is_not_called_a_problem(settings: Any) -> None:
    """Only the status and its codes are known then."""
    settings.REST_FRAMEWORK = {
        **settings.REST_FRAMEWORK,
        "EXCEPTION_HANDLER": "rest_framework.views.exception_handler",
    }
    conflict = described()["/things/"]["post"]["responses"]["409"]
    assert set(conflict["content"]) == {"application/json"}
    assert "in-progress" in conflict["description"]


def test_an_unknown_code_is_told_at_once() -> None:
    with pytest.raises(KeyError):
        problems("no-such-code")


@pytest.mark.parametrize("name", ["_get_response_bodies", "_get_response_for_code"])
def test_the_underscored_methods_that_are_used_exist(name: str) -> None:
    """drf-spectacular promises nothing about them."""
    assert callable(getattr(SpectacularSchema, name))
    assert not hasattr(DrfSchema, name)
    assert isinstance(problems("call-rejected")[402, problem.MEDIA_TYPE], OpenApiResponse)
