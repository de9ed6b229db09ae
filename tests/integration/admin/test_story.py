"""The pages tell what happened, in words: repeats, look-ups that nobody answered, endings that are no success."""

import re
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from rest_framework.test import APIClient

from idempotency import reconciliation, repeats
from idempotency.exceptions import CallFailed
from idempotency.ledger.history import MOST_REPLAYS
from idempotency.models import Event, Heartbeat, Key
from idempotency.operations import cancel, heartbeat
from idempotency.types import Ending, Known, News, Pending, State
from tests.integration.admin.conftest import Login
from tests.support.factories import ago, make_event, make_key, make_step, make_waiting, make_work
from tests.support.host import other_side

pytestmark = pytest.mark.django_db
OVERVIEW = reverse("admin:idempotency_heartbeat_changelist")
# A charge is a request with a call outside, which no open transaction may surround.
charging = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _host(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.ROOT_URLCONF = "tests.support.consolehost"
    settings.IDEMPOTENCY = {
        **settings.IDEMPOTENCY,
        "TENANT": None,
        "RECORD_REPLAYS": True,
        "ADMIN_KNOWS": None,
    }
    monkeypatch.setattr(repeats, "_lately", repeats._Lately())
    other_side.reset()


def charge(key: str, **more: Any) -> Any:
    client = APIClient(raise_request_exception=False)
    client.force_authenticate(User.objects.get_or_create(username="alice")[0])
    headers = {"Idempotency-Key": key, "X-Request-Id": more.pop("request_id", "req-1")}
    return client.post("/charge/", {"name": key[:8]} | more, format="json", headers=headers)


def page(login: Login, key: Key) -> str:
    address = reverse("admin:idempotency_key_change", args=(key.pk,))
    return str(login("support").get(address).content.decode())


# -- replays -----------------------------------------------------------------------------------------------------------


@charging
def test_a_replay_is_in_the_timeline_with_its_request_id(login: Login) -> None:
    name = uuid.uuid4().hex
    charge(name)
    assert charge(name, request_id="req-2").headers["Idempotent-Replayed"] == "true"
    text = page(login, Key.objects.get(key=name))
    assert "repeated the request and got the stored answer again" in text
    assert "req-2" in text


@charging
def test_a_crowd_of_replays_is_written_once_a_minute(settings: Any) -> None:
    name = uuid.uuid4().hex
    for _ in range(4):
        charge(name)
    assert Event.objects.filter(kind="replayed").count() == 1


@charging
def test_another_process_does_not_write_it_a_second_time(monkeypatch: pytest.MonkeyPatch) -> None:
    name = uuid.uuid4().hex
    charge(name)
    for _ in range(2):
        monkeypatch.setattr(repeats, "_lately", repeats._Lately())
        charge(name)
    assert Event.objects.filter(kind="replayed").count() == 1


@charging
def test_replays_on_record_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    name = uuid.uuid4().hex
    charge(name)
    key = Key.objects.get(key=name)
    old = datetime.now(UTC) - timedelta(hours=1)
    for _ in range(MOST_REPLAYS):
        Event.objects.create(key_id=key.pk, kind="replayed", actor="request", at=old)
    charge(name)
    assert Event.objects.filter(kind="replayed").count() == MOST_REPLAYS


@charging
def test_a_replay_writes_nothing_where_it_is_not_wanted(settings: Any) -> None:
    settings.IDEMPOTENCY = {**settings.IDEMPOTENCY, "RECORD_REPLAYS": False}
    name = uuid.uuid4().hex
    charge(name)
    with CaptureQueriesContext(connection) as queries:
        charge(name)
    assert not [q for q in queries if "idempotency_event" in q["sql"]]


@charging
def test_a_replay_is_answered_before_it_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    monkeypatch.setattr(repeats, "_record_replay", lambda *args: written.append("recorded"))
    name = uuid.uuid4().hex
    charge(name)
    from django.test.client import ClientHandler
    from rest_framework.test import APIRequestFactory, force_authenticate

    request = APIRequestFactory().post(
        "/charge/", {"name": name[:8]}, format="json", headers={"Idempotency-Key": name}
    )
    force_authenticate(request, User.objects.get(username="alice"))
    handler = ClientHandler(enforce_csrf_checks=False)
    handler.load_middleware()
    response = handler.get_response(request)
    assert response.headers["Idempotent-Replayed"] == "true"
    assert written == []
    response.close()
    assert written == ["recorded"]


# -- refused repeats ---------------------------------------------------------------------------------------------------


@charging
def test_a_refused_repeat_is_told_in_words_and_not_as_json(login: Login) -> None:
    name = uuid.uuid4().hex
    charge(name)
    assert charge(name, more=1).status_code == 422
    text = page(login, Key.objects.get(key=name))
    assert "Refused: another request came under this key" in text
    assert "the body" in text
    assert "&quot;differing&quot;" not in text


@charging
def test_a_repeat_of_an_unknown_key_is_told_in_words(login: Login) -> None:
    other_side.script.append("lose")
    name = uuid.uuid4().hex
    charge(name)
    charge(name)
    text = page(login, Key.objects.get(key=name))
    assert "was told that the outcome is not known yet" in text


# -- look-ups ----------------------------------------------------------------------------------------------------------


@charging
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (CallFailed("the circuit is open"), "the other side could not be asked"),
        (Pending(), "known there, and not decided"),
    ],
)
def test_a_look_up_without_a_verdict_is_in_the_timeline_once_an_hour(
    login: Login, answer: Any, words: str
) -> None:
    other_side.script.append("lose")
    name = uuid.uuid4().hex
    charge(name)
    key = Key.objects.get(key=name)
    other_side.lookup = answer
    for _ in range(3):
        reconciliation.reconcile(key_id=key.pk)
    assert Event.objects.filter(kind="looked-up").count() == 1
    text = page(login, key)
    assert "Looked up by itself, without a verdict" in text
    assert words in text


# -- endings -----------------------------------------------------------------------------------------------------------


def test_cancelled_work_is_called_cancelled(login: Login) -> None:
    key, work = make_waiting()
    cancel(operation_id=work.pk, actor="olga", reason="The caller asked for it.")
    text = page(login, key)
    assert "cancelled at" in text
    assert "by olga; nothing happened" in text
    assert "Closed as cancelled" in text
    assert "Settled as completed" not in text


@pytest.mark.parametrize(("code", "words"), [("gave-up", "gave up"), ("payout-refused", "refused")])
def test_deferred_work_that_ended_badly_says_how(login: Login, code: str, words: str) -> None:
    key = make_key(state=State.COMPLETED, deferred=True, status=202)
    make_work(key, attempts=1, error={"code": code, "detail": "No such account."})
    text = page(login, key)
    assert f">{words}</span>" in text
    assert "Settled as completed" not in text
    assert "No such account." in text


def test_what_stopped_halfway_does_not_speak_of_look_ups(login: Login) -> None:
    key = make_key(
        state=State.UNKNOWN,
        unfinished=True,
        needs_person_since=datetime.now(UTC),
        needs_person_reason="No attempt is left, and the work is done only in part.",
    )
    text = page(login, key)
    assert "stuck halfway" in text
    assert "done only in part" in text
    assert "look-ups gave no verdict" not in text


@pytest.mark.parametrize(
    ("more", "badge"),
    [
        ({}, "half done"),
        (
            {"needs_person_since": ago(minutes=1), "needs_person_reason": "It cannot be finished"},
            "stuck halfway",
        ),
    ],
)
def test_a_proven_call_that_our_own_books_do_not_follow_is_half_done(
    login: Login, more: dict[str, Any], badge: str
) -> None:
    key = make_key(state=State.UNKNOWN, unfinished=True, **more)
    make_step(key, ending=Ending.APPLIED)
    client = login("support")
    lists = [reverse("admin:idempotency_key_changelist"), OVERVIEW]
    for address in (*lists, reverse("admin:idempotency_key_change", args=(key.pk,))):
        text = client.get(address).content.decode()
        assert f">{badge}</span>" in text
        assert "half done since" in text
        assert "unknown since" not in text


@pytest.mark.parametrize("ending", [Ending.REJECTED, Ending.ABSENT, Ending.NOT_APPLIED])
def test_the_story_of_a_call_says_nothing_that_late_news_makes_untrue(
    login: Login, ending: Ending
) -> None:
    key = make_key(state=State.RELEASED, needs_person_since=ago(minutes=1))
    make_step(key, ending=ending)
    Key.objects.update(needs_person_reason=News.OTHERWISE.sentence)
    text = page(login, key)
    assert "nothing happened" not in text
    assert "it did not happen" not in text


@pytest.mark.parametrize(
    "settled",
    [{"state": State.RELEASED}, {"state": State.COMPLETED, "status": 402}],
)
def test_of_what_can_still_arrive_nobody_says_that_it_did_not_happen(
    login: Login, settled: dict[str, Any]
) -> None:
    key = make_key(watched=True, next_lookup_at=ago(seconds=-9), **settled)
    make_step(key, ending=None)
    text = page(login, key)
    assert "nothing has happened so far" in text
    assert "nothing happened" not in text


# -- the same reference under two keys ---------------------------------------------------------------------------------


def twins(**fields: Any) -> list[Key]:
    common = {"state": State.COMPLETED, "reference": "881"} | fields
    return [
        make_key(summary=f"Charge of {amount} UAH for order 881", **common)
        for amount in ("12.00", "15.00")
    ]


def test_two_keys_that_did_one_thing_say_so_on_both_pages(login: Login) -> None:
    first, second = twins()
    text = page(login, first)
    assert "Done 2 times" in text
    assert "refund" in text
    assert "15.00 UAH" in text
    address = reverse("admin:idempotency_key_change", args=(second.pk,))
    assert "12.00 UAH" in text
    assert address in text


@pytest.mark.parametrize("term", ["881", "order 881", "Order #881"])
def test_a_search_for_the_order_warns_and_shows_both_amounts(login: Login, term: str) -> None:
    twins()
    address = reverse("admin:idempotency_key_changelist")
    text = login("support").get(address, {"q": term}).content.decode()
    assert "Done 2 times for “881”, under different keys" in text
    assert "12.00 UAH" in text
    assert "15.00 UAH" in text


@pytest.mark.parametrize(
    "second",
    [
        {"status": 402},
        {"operation": "refunds.create"},
        {"reference": "882"},
        {"scope": "somebody else"},
        {"state": State.RELEASED},
    ],
)
def test_what_is_not_done_twice_is_not_said_to_be(login: Login, second: dict[str, Any]) -> None:
    first = make_key(state=State.COMPLETED, reference="881")
    make_key(**{"state": State.COMPLETED, "reference": "881"} | second)
    assert "Done 2 times" not in page(login, first)


def test_the_users_of_one_tenant_are_one_caller_and_tenants_are_not(login: Login) -> None:
    first = make_key(state=State.COMPLETED, reference="881", scope="1:7/user:1")
    make_key(state=State.COMPLETED, reference="881", scope="1:7/user:2")
    make_key(state=State.COMPLETED, reference="881", scope="1:8/user:3")
    assert "Done 2 times" in page(login, first)


def test_what_the_host_has_undone_does_not_count(login: Login, settings: Any) -> None:
    first, second = twins()
    settings.IDEMPOTENCY = {
        **settings.IDEMPOTENCY,
        "ADMIN_KNOWS": lambda keys: {second.pk: Known(counts=False, since="refunded since")},
    }
    text = page(login, first)
    assert "Done 2 times" not in text
    assert "refunded since" in text


# -- what the host knows -----------------------------------------------------------------------------------------------


def test_a_list_and_a_page_name_the_caller_in_one_question(login: Login, settings: Any) -> None:
    asked: list[int] = []

    def knows(keys: Any) -> dict[uuid.UUID, Known]:
        asked.append(len(keys))
        return {key.pk: Known(owner="Merchant A, user maria") for key in keys}

    settings.IDEMPOTENCY = {**settings.IDEMPOTENCY, "ADMIN_KNOWS": knows}
    keys = twins()
    address = reverse("admin:idempotency_key_changelist")
    text = login("engineers").get(address, {"state": "all"}).content.decode()
    assert text.count("Merchant A, user maria") == 2
    assert asked == [2]
    assert "Merchant A, user maria" in page(login, keys[0])


def test_a_host_that_fails_hides_nothing(login: Login, settings: Any) -> None:
    def fails(keys: Any) -> Any:
        raise RuntimeError("no")

    settings.IDEMPOTENCY = {**settings.IDEMPOTENCY, "ADMIN_KNOWS": fails}
    assert "Charge of 12.00 UAH" in page(login, twins()[0])


def test_lists_tell_the_time_of_day(login: Login) -> None:
    make_key(at=datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC))
    make_event(make_key(), at=datetime(2026, 3, 4, 5, 6, 8, tzinfo=UTC))
    client = login("support")
    for model, seconds in (("key", "07"), ("event", "08")):
        address = reverse(f"admin:idempotency_{model}_changelist")
        assert (
            f"05:06:{seconds}"
            in client.get(address, {"state": "all"} if model == "key" else {}).content.decode()
        )


# -- recurring tasks ---------------------------------------------------------------------------------------------------


def test_what_is_not_due_since_beat_began_is_not_late(login: Login, settings: Any) -> None:
    heartbeat.beat(name="beat", detail={"running": 60})
    text = login("support").get(reverse("admin:idempotency_heartbeat_changelist")).content.decode()
    rows = {re.sub(r"<.*", "", row).split()[0]: row for row in text.split('<th scope="row">')[1:]}
    # A minute after it began: what comes every five seconds is late, and what comes every five minutes is not.
    assert ">late<" in rows["reconcile"]
    assert ">not yet due<" in rows["purge"]


def test_the_overview_can_be_reached_from_the_index(login: Login) -> None:
    text = login("support").get(reverse("admin:index")).content.decode()
    assert reverse("admin:idempotency_heartbeat_changelist") in text


def test_a_step_s_events_are_beside_the_key(login: Login) -> None:
    key = make_key(state=State.COMPLETED)
    make_step(key, reference="pi_1")
    make_key(
        state=State.COMPLETED,
        operation="inbox",
        scope="stripe",
        reference="pi_1",
        settled_by="message",
        status=204,
        body=b"{}",
        summary="Event of the gateway: charge of 12.00 UAH succeeded",
    )
    text = page(login, key)
    assert "Other keys about the same" in text
    assert "Event of the gateway: charge of 12.00 UAH succeeded" in text


# -- for whom a page is ------------------------------------------------------------------------------------------------


def test_who_only_looks_is_told_that_a_colleague_may_act(login: Login) -> None:
    open_key, done = make_key(state=State.UNKNOWN), make_key(state=State.COMPLETED)
    support, operations = login("support"), login("operations")
    address = reverse("admin:idempotency_key_change", args=(open_key.pk,))
    assert "Your role only looks" in support.get(address).content.decode()
    assert "Your role only looks" not in operations.get(address).content.decode()
    address = reverse("admin:idempotency_key_change", args=(done.pk,))
    assert "Your role only looks" not in support.get(address).content.decode()


def test_look_ups_that_nobody_answers_are_said_first(login: Login) -> None:
    at = datetime.now(UTC) - timedelta(minutes=72)
    silent = make_key(state=State.UNKNOWN, at=at)
    answered = make_key(state=State.UNKNOWN, at=at, lookups=1)
    young = make_key(state=State.UNKNOWN, at=datetime.now(UTC) - timedelta(seconds=20))
    client = login("support")
    said = {
        key: "No look-up of it has been answered for 1 h 11 min"
        in client.get(reverse("admin:idempotency_key_change", args=(key.pk,))).content.decode()
        for key in (silent, answered, young)
    }
    assert said == {silent: True, answered: False, young: False}


def test_the_form_says_what_to_search_for_at_the_other_side(login: Login) -> None:
    key = make_key(state=State.UNKNOWN, lookups=1, reference="881")
    make_step(key, subject="payment 0190")
    client = login("operations")
    pages = {
        name: client.get(reverse("admin:idempotency_key_act", args=(key.pk, name))).content.decode()
        for name in ("settle", "ask")
    }
    assert "own console for: <b>881, payment 0190</b>" in pages["settle"]
    assert "own console for" not in pages["ask"]


@charging
def test_another_body_under_a_key_is_told_with_what_cannot_be_told(login: Login) -> None:
    name = uuid.uuid4().hex
    charge(name)
    assert charge(name, more=1).status_code == 422
    text = page(login, Key.objects.get(key=name))
    assert "what differs: <b>the body</b>" in text
    assert "no body is kept" in text


def test_the_overview_says_what_does_not_run(login: Login, settings: Any) -> None:
    settings.IDEMPOTENCY = {**settings.IDEMPOTENCY, "RUNBOOK": "https://runbooks.example.com/x"}
    for sign in heartbeat.SIGNS:
        heartbeat.beat(name=sign)
    address = reverse("admin:idempotency_heartbeat_changelist")
    text = login("support").get(address).content.decode()
    assert "No worker does the recurring tasks" in text
    assert 'href="https://runbooks.example.com/x#silence"' in text
    for task in heartbeat.watched():
        heartbeat.beat(name=task.name)
    text = login("operations").get(address).content.decode()
    assert "idem-silence" not in text


def test_a_sign_by_a_clock_ahead_of_ours_is_not_in_the_future(login: Login) -> None:
    for name in (*heartbeat.SIGNS, *(task.name for task in heartbeat.watched())):
        heartbeat.beat(name=name)
    Heartbeat.objects.update(last_ok_at=datetime.now(UTC) + timedelta(seconds=9))
    text = login("support").get(reverse("admin:idempotency_heartbeat_changelist")).content.decode()
    assert "in 9 s" not in text
    assert ">now</time>" in text


@pytest.mark.parametrize(
    ("fields", "said", "not_said"),
    [
        ({"body": None, "note": "expired"}, "repeats are told so", "gets this first answer again"),
        ({"settled_at": ago(days=4)}, "repeats are told so", "gets this first answer again"),
        ({"settled_at": ago(days=2)}, "gets this first answer again", "repeats are told so"),
    ],
)
def test_what_a_repeat_gets_is_true(
    login: Login, fields: dict[str, Any], said: str, not_said: str
) -> None:
    text = page(login, make_key(state=State.COMPLETED, **fields))
    assert said in text
    assert not_said not in text


def test_what_is_watched_is_not_said_to_be_over(login: Login) -> None:
    key = make_key(state=State.RELEASED, watched=True, next_lookup_at=ago(seconds=-60))
    text = page(login, key)
    assert "can still arrive" in text
    assert "certainly changed nothing" not in text


@pytest.mark.django_db(transaction=True)
def test_of_what_was_accepted_and_then_refused_nobody_says_that_nothing_happened(
    login: Login, settings: Any
) -> None:
    settings.ROOT_URLCONF = "tests.support.consolehost"
    settings.IDEMPOTENCY = {**settings.IDEMPOTENCY, "TENANT": None}
    other_side.reset()
    caller = APIClient()
    caller.force_authenticate(User.objects.create_user("alice"))
    sent = {"name": "881", "kind": "returned-after"}
    answer = caller.post("/charge/", sent, format="json", HTTP_IDEMPOTENCY_KEY="k1")
    assert (answer.status_code, len(other_side.effects)) == (409, 1)
    key, client = Key.objects.get(), login("support")
    pages = [
        reverse("admin:idempotency_key_change", args=(key.pk,)),
        reverse("admin:idempotency_key_changelist") + "?q=881",
    ]
    for address in pages:
        text = client.get(address).content.decode()
        assert "a call of it was accepted before" in text
        assert "nothing happened" not in text
        assert "nothing was charged" not in text
