"""Plain Django views: the same pipeline; problems are answers, where DRF's handler would have made them."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.http import HttpRequest, HttpResponse
from django.test import Client

from idempotency.decorators import idempotent
from idempotency.exceptions import CallUnknown, Misuse
from idempotency.models import Key
from idempotency.reconciliation import reconcile
from idempotency.types import Applied, OutsideResult
from tests.support.host import other_side

pytestmark = pytest.mark.django_db(transaction=True)
Post = Callable[..., Any]


@pytest.fixture
def post(settings: Any) -> Post:
    settings.ROOT_URLCONF = "tests.hosts.plainviews"
    settings.IDEMPOTENCY = {"LEASE": 45}
    other_side.reset()
    client = Client(raise_request_exception=False)
    client.force_login(User.objects.create_user("alice"))

    def send(path: str, data: Any = None, *, key: str | None = "k1", **more: Any) -> Any:
        headers = {} if key is None else {"Idempotency-Key": key}
        more.setdefault("content_type", "application/json")
        return client.post(path, data or {}, headers=headers, **more)

    return send


def test_r16_a_function_is_replayed_byte_for_byte(post: Post) -> None:
    first, again = post("/order/"), post("/order/")
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.content == first.content
    assert again["Idempotent-Replayed"] == "true"
    assert "Idempotent-Replayed" not in first
    assert Group.objects.count() == 1


def test_r4_r9_refusals_are_problem_json(post: Post) -> None:
    assert _problem(post("/order/", key=None)) == (400, "key-missing")
    assert _problem(post("/order/", key="a,b")) == (400, "key-invalid")
    post("/order/", {"kind": ""})
    assert _problem(post("/order/", {"kind": "other"})) == (422, "key-reused")


def test_r14_a_verdict_is_kept_and_its_effects_are_not(post: Post) -> None:
    first, again = (post("/order/", {"kind": "verdict"}) for _ in range(2))
    assert _problem(first) == _problem(again) == (402, "call-rejected")
    assert again["Idempotent-Replayed"] == "true"
    assert not Group.objects.exists()


@pytest.mark.parametrize(("kind", "status"), [("forbidden", 403), ("broken", 500)])
def test_r14_what_django_itself_answers_leaves_the_key_free(
    post: Post, kind: str, status: int
) -> None:
    assert post("/order/", {"kind": kind}).status_code == status
    assert not Key.objects.exists()
    assert not Group.objects.exists()


def test_r15_a_lazy_template_is_rendered_before_it_is_kept(post: Post) -> None:
    first, again = (post("/order/", {"kind": "template"}) for _ in range(2))
    assert first.content.startswith(b"It is ")
    assert again.content == first.content


def test_r7_a_form_can_still_be_read_and_the_path_counts(post: Post) -> None:
    form = {"content_type": "application/x-www-form-urlencoded"}
    assert post("/form/1/", "name=a", **form).content == b"1 a"
    assert post("/form/1/", "name=a", **form)["Idempotent-Replayed"] == "true"
    assert _problem(post("/form/2/", "name=a", **form)) == (422, "key-reused")


def test_r2_other_methods_pass(post: Post) -> None:
    client = Client()
    client.force_login(User.objects.get())
    assert client.get("/form/1/", headers={"Idempotency-Key": "k1"}).content == b"1 "
    assert not Key.objects.exists()


def test_r1_what_stands_above_the_decorator_comes_first(post: Post) -> None:
    first = Client().post("/order/", {}, headers={"Idempotency-Key": "k1"})
    assert first.status_code == 302
    assert not Key.objects.exists()


def test_r36_an_unknown_outcome_is_finished_as_the_view_would(post: Post) -> None:
    other_side.script.append(CallUnknown("lost"))
    assert _problem(post("/charge/")) == (504, "outcome-unknown")
    other_side.lookup = Applied(OutsideResult(reference="r-1", record={}))
    reconcile(key_id=Key.objects.get().id)
    again = post("/charge/")
    assert (again.status_code, again.json()) == (201, {"reference": "r-1"})
    assert again["Idempotent-Replayed"] == "true"


def test_r5_everybody_may_share_a_scope_where_the_host_says_so(post: Post) -> None:
    first, again = (post("/nobody/") for _ in range(2))
    assert again.content == first.content


def test_drfs_response_out_of_a_plain_view_is_refused_loudly(post: Post) -> None:
    assert post("/order/", {"kind": "of-drf"}).status_code == 500
    assert not Key.objects.exists()
    assert not Group.objects.exists()


def test_an_async_handler_is_refused_where_it_is_decorated() -> None:
    async def handler(request: HttpRequest) -> HttpResponse:
        return HttpResponse()

    with pytest.raises(Misuse, match="no async handler"):
        idempotent()(handler)


def _problem(response: Any) -> tuple[int, str]:
    assert response["Content-Type"] == "application/problem+json"
    body = json.loads(response.content)
    assert body["status"] == response.status_code
    return response.status_code, body["code"]
