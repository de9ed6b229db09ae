"""Alarms: their evidence can be seen by who may, and they go from the overview when somebody has handled them."""

import html
import re
import threading
import uuid
from typing import Any

import pytest
from django.db import connections
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from idempotency.admin.advice import ADVICE
from idempotency.admin.situations import Situation
from idempotency.ledger.phases import phase
from idempotency.models import Event, Key
from idempotency.operations import late_news
from idempotency.types import News, State
from tests.integration.admin.conftest import Login
from tests.support.factories import make_key, make_message

pytestmark = pytest.mark.django_db

KEYS = reverse("admin:idempotency_key_changelist")
OVERVIEW = reverse("admin:idempotency_heartbeat_changelist")
REASON = "Refunded pi_2 in the gateway's dashboard."


def hear(key: Key | None, news: News = News.OTHERWISE, **detail: Any) -> Event:
    with phase(using="default"):
        late_news(key_id=key.pk if key else None, actor="event", detail=detail, news=news)
    return Event.objects.latest("pk")


def page_of(key: Key) -> str:
    return reverse("admin:idempotency_key_change", args=(key.pk,))


def address(event: Event, page: str = "change") -> str:
    return reverse(f"admin:idempotency_event_{page}", args=(event.pk,))


def handle(client: Client, event: Event) -> str:
    page = client.get(address(event, "handle")).content.decode()
    form = re.findall(r'name="form" value="([^"]+)"', page)[0]
    data = {"form": form, "reason": REASON}
    return client.post(address(event, "handle"), data, follow=True).content.decode()


@pytest.mark.parametrize(
    ("news", "situation"),
    [
        (News.OTHERWISE, Situation.LATE_NEWS),
        (News.TWICE, Situation.DONE_TWICE),
        (News.DIFFERENT, Situation.DONE_DIFFERENTLY),
    ],
)
def test_each_kind_of_news_has_its_own_words(
    login: Login, news: News, situation: Situation
) -> None:
    key = make_key(state=State.COMPLETED)
    hear(key, news, gateway_reference="pi_2", our_books_said="succeeded by pi_1")
    page = html.unescape(login("support").get(page_of(key)).content.decode())
    assert ADVICE[situation].label in page
    assert ADVICE[situation].action.split(".")[0] in page
    assert "pi_2" in page
    assert "succeeded by pi_1" in page


def test_a_handled_alarm_leaves_the_overview_and_stays_on_the_page(login: Login) -> None:
    key = make_key(state=State.COMPLETED, summary="Charge for order 881")
    event = hear(key, News.TWICE)
    client = login("operations")
    before = client.get(OVERVIEW).content.decode()
    assert News.TWICE.sentence.rstrip(".") in before
    assert "The alarm is marked as handled." in handle(client, event)

    after = client.get(OVERVIEW).content.decode()
    assert News.TWICE.sentence.rstrip(".") not in after
    assert "nobody has handled" not in after
    key.refresh_from_db()
    assert key.needs_person_since is None
    page = client.get(page_of(key)).content.decode()
    assert "Late news: the other side did it a second time" in page
    assert "Marked as handled" in page
    assert "Refunded pi_2" in page


def test_a_key_needs_a_person_until_all_its_alarms_are_handled(login: Login) -> None:
    key = make_key(state=State.COMPLETED)
    first, second = hear(key, News.TWICE), hear(key, News.DIFFERENT)
    client = login("operations")
    handle(client, first)
    key.refresh_from_db()
    assert key.needs_person_since is not None
    handle(client, second)
    key.refresh_from_db()
    assert key.needs_person_since is None


@pytest.mark.parametrize(
    ("settled", "news", "said"),
    [
        ({"state": State.RELEASED}, News.OTHERWISE, "It happened at the other side after"),
        ({"state": State.COMPLETED, "status": 402}, News.OTHERWISE, "It happened at the other"),
        ({"state": State.COMPLETED}, News.TWICE, "it happened a second time"),
        ({"state": State.COMPLETED}, News.DIFFERENT, "something else than was asked for"),
    ],
)
def test_what_the_other_side_did_is_still_told_once_somebody_has_seen_to_it(
    login: Login, settled: dict[str, Any], news: News, said: str
) -> None:
    key = make_key(**settled)
    event, client = hear(key, news), login("operations")
    handle(client, event)
    for address in (page_of(key), f"{KEYS}?q={key.key}"):
        page = client.get(address).content.decode()
        assert said in page
        assert "It happened, once." not in page
        assert "nothing happened" not in page
        assert "may be sent again" not in page
        assert "use a new key" not in page
    assert "A colleague has seen to it" in client.get(page_of(key)).content.decode()


def test_what_was_late_news_before_is_none_of_a_key_that_was_settled_since(login: Login) -> None:
    key = make_key(state=State.RELEASED)
    client = login("operations")
    handle(client, hear(key))
    answer = {"status": 201, "body": b"{}", "content_type": "application/json"}
    Key.objects.update(state=State.COMPLETED, settled_at=timezone.now(), **answer)
    assert "It happened, once." in client.get(page_of(key)).content.decode()


def test_an_order_that_was_charged_late_and_again_was_charged_twice(login: Login) -> None:
    late, client = make_key(state=State.RELEASED, reference="881"), login("operations")
    handle(client, hear(late))
    again = make_key(state=State.COMPLETED, reference="881")
    for key in (late, again):
        assert "Done 2 times" in client.get(page_of(key)).content.decode()


def test_an_unsettled_key_still_needs_its_person(login: Login) -> None:
    key = make_key(state=State.UNKNOWN)
    handle(login("operations"), hear(key, News.DIFFERENT))
    key.refresh_from_db()
    assert key.needs_person_since is not None


def test_money_that_nothing_here_knows_of_is_handled_too(login: Login) -> None:
    event = hear(None, gateway_reference="pi_9", said="5.00 UAH")
    client = login("operations")
    make_message(reference="pi_9")
    assert "5.00 UAH" in client.get(OVERVIEW).content.decode()
    assert "?q=pi_9" in client.get(address(event)).content.decode()
    found = client.get(reverse("admin:idempotency_key_changelist"), {"q": "pi_9"})
    assert "Event of the gateway" in found.content.decode()
    handle(client, event)
    assert "5.00 UAH" not in client.get(OVERVIEW).content.decode()


@pytest.mark.django_db(transaction=True)
def test_two_people_at_once_handle_it_once_and_the_second_is_told(login: Login) -> None:
    event = hear(make_key(state=State.COMPLETED))
    clients, pages, together = [login("operations"), login("engineers")], [], threading.Barrier(2)

    def press(client: Client) -> None:
        form = str(uuid.uuid4())
        together.wait()
        data = {"form": form, "reason": REASON}
        answer = client.post(address(event, "handle"), data, follow=True)
        pages.append(answer.content.decode())
        connections.close_all()

    threads = [threading.Thread(target=press, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Event.objects.filter(kind="handled").count() == 1
    assert sum("The alarm is marked as handled." in page for page in pages) == 1
    assert sum("marked it as handled at" in page for page in pages) == 1


def test_only_alarms_are_handled(login: Login) -> None:
    event = Event.objects.create(kind="asked", actor="ops")
    client = login("operations")
    assert "there is nothing to handle" in client.get(address(event, "handle")).content.decode()
    data = {"form": str(uuid.uuid4()), "reason": REASON}
    client.post(address(event, "handle"), data)
    assert not Event.objects.filter(kind="handled").exists()


def test_support_sees_the_alarm_and_handles_nothing(login: Login) -> None:
    event = hear(make_key(state=State.COMPLETED))
    client = login("support")
    page = client.get(address(event)).content.decode()
    assert "Late news" in page
    assert "Mark as handled" not in page
    for method in ("get", "post"):
        assert getattr(client, method)(address(event, "handle")).status_code == 403
        assert getattr(client, method)(address(event, "values")).status_code == 403


def test_the_evidence_of_an_alarm_is_shown_to_who_may_see_it_and_that_is_recorded(
    login: Login,
) -> None:
    event = hear(make_key(state=State.COMPLETED), statement={"payer": "Olena Koval"})
    client = login("operations")
    assert "Olena Koval" not in client.get(address(event)).content.decode()
    assert "Olena Koval" in client.post(address(event, "values")).content.decode()
    reveal = Event.objects.get(kind="staff-reveal")
    assert (reveal.actor, reveal.detail["event"]) == ("operations", event.pk)


def test_the_evidence_in_a_timeline_is_revealed_where_nothing_else_is_stored(login: Login) -> None:
    key = make_key(state=State.RELEASED)
    hear(key, statement={"payer": "Olena Koval"})
    client = login("operations")
    assert "Show the values" in client.get(page_of(key)).content.decode()
    reveal = reverse("admin:idempotency_key_reveal", args=(key.pk,))
    assert "Olena Koval" in client.post(reveal).content.decode()


def test_an_event_that_is_not_there_is_a_404(login: Login) -> None:
    client = login("operations")
    assert client.get(reverse("admin:idempotency_event_change", args=("x",))).status_code == 404
    assert client.get(reverse("admin:idempotency_event_handle", args=(9,))).status_code == 404
