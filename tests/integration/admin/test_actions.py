"""What staff do: once, on record first, decided at the moment of writing, and in words for whoever comes second."""

import re
import threading
import uuid
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connections
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from idempotency.admin.actions import told
from idempotency.exceptions import CallFailed
from idempotency.models import Event, Key, Sender
from idempotency.reconciliation import Report
from idempotency.types import Applied, OutsideResult, Pending, State
from tests.integration.admin.conftest import Login
from tests.support.factories import (
    ago,
    make_key,
    make_step,
    make_variety,
    make_waiting,
    make_work,
)
from tests.support.host import other_side

pytestmark = pytest.mark.django_db(transaction=True)

REASON = "The caller is on the line, ticket 17."


@pytest.fixture(autouse=True)
def _host(settings: Any) -> None:
    settings.ROOT_URLCONF = "tests.support.consolehost"
    settings.IDEMPOTENCY = {**settings.IDEMPOTENCY, "TENANT": None}
    other_side.reset()


def unknown_charge(does: str = "apply-and-lose") -> Key:
    """Make a charge whose answer was lost, by a real request."""
    other_side.script.append(does)
    client = APIClient(raise_request_exception=False)
    client.force_authenticate(User.objects.get_or_create(username="alice")[0])
    key = str(uuid.uuid4())
    client.post("/charge/", {"name": key[:8]}, format="json", HTTP_IDEMPOTENCY_KEY=key)
    found = Key.objects.get(key=key)
    assert found.state == State.UNKNOWN
    return found


def address_of(key: Key, action: str) -> str:
    return reverse("admin:idempotency_key_act", args=(key.pk, action))


def send(client: Client, address: str, **fields: str) -> Any:
    """Open the form, fill it in, send it: as a person does."""
    page = client.get(address).content.decode()
    found = re.search(r'name="form" value="([^"]+)"', page)
    assert found, page
    return client.post(address, {"form": found[1], "reason": REASON, **fields}, follow=True)


# -- ask ---------------------------------------------------------------------------------------------------------------


def test_asking_settles_what_has_happened(login: Login) -> None:
    key = unknown_charge()
    page = send(login("operations"), address_of(key, "ask")).content.decode()
    assert "The other side has accepted it." in page
    key.refresh_from_db()
    assert (key.state, key.settled_by) == (State.COMPLETED, "operations")
    kinds = list(Event.objects.filter(key_id=key.pk).order_by("pk").values_list("kind", "actor"))
    assert kinds == [("staff-ask", "operations"), ("asked", "operations")]
    assert Event.objects.get(kind="staff-ask").reason == REASON


@pytest.mark.parametrize(
    ("answer", "word"),
    [(Pending(), "has not decided yet"), (CallFailed("down"), "could not be reached")],
)
def test_no_verdict_leaves_the_key_and_says_so(login: Login, answer: Any, word: str) -> None:
    key = unknown_charge()
    other_side.lookup = answer
    page = send(login("operations"), address_of(key, "ask")).content.decode()
    assert word in page
    key.refresh_from_db()
    assert key.state == State.UNKNOWN


def sender_without_word(key: Key) -> None:
    """Make its sender one of a machine that is gone: it may be paused, and go on."""
    Sender.objects.filter(step__key=key).update(
        ending=None, ended_at=None, host="far", boot_id="", send_before=ago(hours=1)
    )


@pytest.mark.parametrize("action", ["ask", "settle"])
def test_of_what_can_still_arrive_nobody_is_told_that_it_did_not_happen(
    login: Login, action: str
) -> None:
    key = unknown_charge("lose")
    Key.objects.update(lookups=1)
    sender_without_word(key)
    more = {"happened": "no", "seen_where": "their dashboard"} if action == "settle" else {}
    page = send(login("operations"), address_of(key, action), **more).content.decode()
    key.refresh_from_db()
    assert (key.state, key.watched) == (State.RELEASED, True)
    assert "It has not happened so far" in page
    assert "did not happen. Nothing was charged" not in page


def test_who_asks_about_a_watched_key_is_told_what_is_new_of_it(login: Login) -> None:
    key, client = unknown_charge("lose"), login("operations")
    sender_without_word(key)
    send(client, address_of(key, "ask"))
    assert "Nothing new: the key stays" in send(client, address_of(key, "ask")).content.decode()
    other_side.lookup = Applied(OutsideResult("ref-late", {"status": "succeeded"}))
    page = send(client, address_of(key, "ask")).content.decode()
    key.refresh_from_db()
    assert (key.state, key.needs_person_since is None) == (State.RELEASED, False)
    assert "It happened after all" in page
    assert "The key is settled as the request itself" not in page


@pytest.mark.parametrize(
    ("decision", "state", "said"),
    [
        ("not-applied", State.IN_PROGRESS, "It has not happened so far. The work waits"),
        ("applied", State.IN_PROGRESS, "accepted a part of it. The work goes on"),
        ("not-applied", State.RELEASED, "It did not happen."),
        ("applied", State.COMPLETED, "The key is settled"),
    ],
)
def test_what_goes_on_is_not_said_to_be_over(decision: str, state: State, said: str) -> None:
    assert said in told(Report(uuid.uuid4(), decision, state)).text


def test_a_reason_is_mandatory(login: Login) -> None:
    key = unknown_charge()
    page = send(login("operations"), address_of(key, "ask"), reason="  ").content.decode()
    assert "This field is required" in page
    assert other_side.looked_up == 0
    assert not Event.objects.exists()


def test_a_double_click_is_one_action(login: Login) -> None:
    key = unknown_charge()
    other_side.lookup = Pending()
    client, address = login("operations"), address_of(key, "ask")
    page = client.get(address).content.decode()
    form = re.findall(r'name="form" value="([^"]+)"', page)[0]
    answers = [
        client.post(address, {"form": form, "reason": REASON}, follow=True) for _ in range(2)
    ]
    assert other_side.looked_up == 1
    assert "had been sent before" in answers[1].content.decode()
    assert Event.objects.filter(kind="staff-ask").count() == 1


def test_a_post_is_answered_by_a_redirect(login: Login) -> None:
    key = unknown_charge()
    response = login("operations").post(
        address_of(key, "ask"), {"form": str(uuid.uuid4()), "reason": REASON}
    )
    assert response.status_code == 303


def test_two_people_pressing_at_once_have_one_effect(login: Login) -> None:
    key = unknown_charge()
    clients = [login("operations"), login("engineers")]
    pages: list[str] = []
    together = threading.Barrier(2)

    def press(client: Client) -> None:
        together.wait()
        pages.append(send(client, address_of(key, "ask")).content.decode())
        connections.close_all()

    threads = [threading.Thread(target=press, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    key.refresh_from_db()
    assert key.state == State.COMPLETED
    assert len(other_side.effects) == 1
    assert len(pages) == 2
    assert Event.objects.filter(kind="staff-ask").count() == 2


def test_a_settled_key_is_not_asked_about(login: Login) -> None:
    key = make_key(state=State.COMPLETED)
    page = login("operations").get(address_of(key, "ask")).content.decode()
    assert "nothing to ask about" in page
    assert 'name="reason"' not in page


# -- settle by hand ----------------------------------------------------------------------------------------------------

SEEN = {"happened": "yes", "reference": "pi_77", "seen_where": "the gateway's dashboard"}


def looked_up(key: Key) -> Key:
    Key.objects.filter(pk=key.pk).update(lookups=3)
    # Longer ago than the gateway's settling time.
    Sender.objects.update(ended_at=ago(minutes=2))
    return key


def test_settling_needs_a_look_up_first(login: Login) -> None:
    key = unknown_charge()
    client = login("operations")
    assert "Ask the gateway first" in client.get(address_of(key, "settle")).content.decode()
    form = {"form": str(uuid.uuid4()), "reason": REASON, **SEEN}
    page = client.post(address_of(key, "settle"), form, follow=True).content.decode()
    assert "Refused:" in page
    key.refresh_from_db()
    assert key.state == State.UNKNOWN
    refused = Event.objects.get(kind="staff-refused")
    assert (refused.actor, refused.detail["asked"]) == ("operations", "settle")


def test_settling_as_happened_needs_the_gateway_s_id(login: Login) -> None:
    key = looked_up(unknown_charge())
    page = send(login("operations"), address_of(key, "settle"), **{**SEEN, "reference": ""})
    assert "no proof that it happened" in page.content.decode()


def test_settling_as_not_happened_releases_the_key_under_a_name(login: Login) -> None:
    key = looked_up(unknown_charge("lose"))
    send(login("operations"), address_of(key, "settle"), happened="no", seen_where="the dashboard")
    key.refresh_from_db()
    assert (key.state, key.settled_by) == (State.RELEASED, "operations")
    event = Event.objects.get(kind="settled-by-hand")
    assert (event.actor, event.reason) == ("operations", REASON)
    assert event.detail["evidence"]["seen_where"] == "the dashboard"


def test_a_no_that_the_other_side_contradicts_is_refused_in_words(login: Login) -> None:
    key = looked_up(unknown_charge())
    form = {"happened": "no", "seen_where": "the dashboard"}
    page = send(login("operations"), address_of(key, "settle"), **form).content.decode()
    assert "Refused: The other side says that it happened" in page
    key.refresh_from_db()
    assert key.state == State.UNKNOWN


def test_the_second_person_is_told_who_was_first(login: Login) -> None:
    key = looked_up(unknown_charge("lose"))
    second, address = login("engineers"), address_of(key, "settle")
    form = re.findall(r'name="form" value="([^"]+)"', second.get(address).content.decode())[0]
    send(login("operations"), address, happened="no", seen_where="the dashboard")
    data = {"form": form, "reason": REASON, "happened": "no", "seen_where": "the dashboard"}
    page = second.post(address, data, follow=True).content.decode()
    assert "It was settled by operations at" in page


def test_who_was_first_is_told_with_the_day(login: Login) -> None:
    key = make_key(state=State.COMPLETED, settled_at=ago(days=300), settled_by="olga")
    client = login("operations")
    form = {"form": str(uuid.uuid4()), "reason": REASON, "happened": "no", "seen_where": "there"}
    page = client.post(address_of(key, "settle"), form, follow=True).content.decode()
    assert f"It was settled by olga at {key.settled_at:%-d %b %Y %H:%M:%S}." in page


def test_what_has_no_word_is_asked_about_by_a_person_where_nobody_sweeps(login: Login) -> None:
    key = unknown_charge()
    Key.objects.filter(pk=key.pk).update(
        state=State.IN_PROGRESS, unknown_since=None, next_lookup_at=None, lease_until=ago(minutes=1)
    )
    page = send(login("operations"), address_of(key, "ask")).content.decode()
    assert "The other side has accepted it." in page
    key.refresh_from_db()
    assert (key.state, key.settled_by) == (State.COMPLETED, "operations")


def test_what_runs_again_meanwhile_is_not_said_to_be_settled(login: Login) -> None:
    key = unknown_charge()
    client, address = login("operations"), address_of(key, "ask")
    form = re.findall(r'name="form" value="([^"]+)"', client.get(address).content.decode())[0]
    Key.objects.filter(pk=key.pk).update(
        state=State.IN_PROGRESS,
        unknown_since=None,
        next_lookup_at=None,
        lease_until=ago(minutes=-1),
    )
    data = {"form": form, "reason": REASON}
    page = client.post(address, data, follow=True).content.decode()
    assert "It is under way" in page
    assert "settled already" not in page


# -- deferred work -----------------------------------------------------------------------------------------------------


def test_work_that_waits_is_begun_again_and_cancelled(login: Login) -> None:
    key, work = make_waiting(work={"attempts": 2, "cycle_attempts": 2})
    client = login("operations")
    page = send(client, address_of(key, "retry")).content.decode()
    assert "A new cycle of runs begins now" in page
    assert "A person let the work begin again" in page
    work.refresh_from_db()
    assert work.cycle_attempts == 0
    assert "It is cancelled." in send(client, address_of(key, "cancel")).content.decode()
    key.refresh_from_db()
    assert (key.state, key.settled_by) == (State.COMPLETED, "operations")


def test_work_that_moved_meanwhile_is_refused_in_words(login: Login) -> None:
    key, _ = make_waiting()
    client, address = login("operations"), address_of(key, "cancel")
    page = client.get(address).content.decode()
    form = re.findall(r'name="form" value="([^"]+)"', page)[0]
    Key.objects.filter(pk=key.pk).update(due_at=None, lease_until=ago(seconds=-30))
    answer = client.post(address, {"form": form, "reason": REASON}, follow=True)
    assert "Refused: Too late" in answer.content.decode()
    assert Event.objects.filter(kind="staff-refused").count() == 1


def test_work_that_was_given_up_is_retried_in_bulk(login: Login) -> None:
    for code in ("gave-up", "gave-up", "cancelled"):
        failed = make_key(state=State.COMPLETED, deferred=True, status=202)
        make_work(failed, attempts=3, cycle_attempts=3, error={"code": code})
    address = reverse("admin:idempotency_operation_bulk", args=("retry",)) + "?state=failed"
    page = send(login("operations"), address).content.decode()
    assert "2 of 2 done" in page
    assert Key.objects.filter(due_at__isnull=False).count() == 2


def test_work_that_has_begun_is_not_offered_for_cancelling(login: Login) -> None:
    key = make_variety()["gave-up"]
    page = login("operations").get(address_of(key, "cancel")).content.decode()
    assert "Too late" in page


# -- many at once ------------------------------------------------------------------------------------------------------


def test_many_are_previewed_counted_again_and_done(login: Login) -> None:
    keys = [unknown_charge() for _ in range(3)]
    running = make_key(at=ago(seconds=5))
    client = login("operations")
    address = reverse("admin:idempotency_key_bulk", args=("ask",)) + "?state=open"
    page = client.get(address).content.decode()
    assert "3 will be taken" in page
    assert "1 of the list stay as they are" in page
    keys.append(unknown_charge())
    page = send(client, address).content.decode()
    assert "4 of 4 done" in page
    assert set(Key.objects.exclude(pk=running.pk).values_list("state", flat=True)) == {
        State.COMPLETED
    }
    told = Event.objects.filter(kind="staff-ask", reason=REASON)
    assert [event.detail["before"] for event in told] == [State.UNKNOWN] * 4
    assert Event.objects.get(kind="staff-ask-many").detail["list"] == "state=open"


def test_many_are_capped(login: Login, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("idempotency.admin.bulk.MOST", {"ask": 2})
    for _ in range(3):
        make_step(make_key(state=State.UNKNOWN))
    address = reverse("admin:idempotency_key_bulk", args=("ask",)) + "?state=unknown"
    page = login("operations").get(address).content.decode()
    assert "2 will be taken" in page
    assert "at most 2 rows" in page


def test_the_form_of_many_carries_no_ids(login: Login) -> None:
    key = unknown_charge()
    address = reverse("admin:idempotency_key_bulk", args=("ask",)) + "?state=unknown"
    page = login("operations").get(address).content.decode()
    assert f'value="{key.pk}"' not in page
