"""Every page renders for every kind of key, says the right thing, and asks the database a bounded number of times."""

import html
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from django.db import connection
from django.http.response import HttpResponseBase
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from idempotency.admin.advice import ADVICE
from idempotency.admin.chart import last_day
from idempotency.admin.situations import Situation
from idempotency.models import Key
from idempotency.operations import heartbeat
from idempotency.types import Ending, State
from tests.integration.admin.conftest import Login
from tests.support.factories import (
    ago,
    make_event,
    make_key,
    make_rarities,
    make_step,
    make_variety,
    make_waiting,
)

KEYS = reverse("admin:idempotency_key_changelist")
OVERVIEW = reverse("admin:idempotency_heartbeat_changelist")


def detail_of(key: Key) -> str:
    return reverse("admin:idempotency_key_change", args=(key.pk,))


def test_each_kind_of_key_has_its_advice_on_its_page(login: Login) -> None:
    client = login("support")
    keys = make_variety()
    wanted = {
        "person": Situation.NEEDS_PERSON,
        "late": Situation.LATE_NEWS,
        "gave-up": Situation.GAVE_UP,
    }
    for name, key in keys.items():
        page = client.get(detail_of(key)).content.decode()
        advice = ADVICE[wanted.get(name) or Situation(name)]
        assert advice.label in page, name
        assert advice.caller.split(".")[0] in page, name


def test_each_rare_kind_of_key_has_its_advice_on_its_page(login: Login) -> None:
    client = login("support")
    for name, key in make_rarities().items():
        page = html.unescape(client.get(detail_of(key)).content.decode())
        advice = ADVICE[Situation(name)]
        assert f">{advice.label}</span>" in page, name
        for said in (advice.meaning, advice.caller, advice.action):
            assert said in page, name


@pytest.mark.parametrize("zone", ["UTC", "Europe/Kyiv"])
def test_every_page_says_in_which_zone_its_times_are(
    login: Login, settings: Any, zone: str
) -> None:
    settings.TIME_ZONE = zone
    client, key = login("operations"), make_key(state=State.UNKNOWN)
    event = make_event(key, kind="late-news", alarming=True)
    for address in (
        OVERVIEW,
        KEYS,
        reverse("admin:idempotency_operation_changelist"),
        reverse("admin:idempotency_event_changelist"),
        detail_of(key),
        reverse("admin:idempotency_key_act", args=(key.pk, "settle")),
        reverse("admin:idempotency_event_change", args=(event.pk,)),
    ):
        assert f"Times are in {zone}." in client.get(address).content.decode(), address


def test_there_is_advice_for_every_situation() -> None:
    assert set(ADVICE) == set(Situation)


def test_an_unknown_key_reads_as_one_sentence(login: Login) -> None:
    key = make_key(state=State.UNKNOWN, summary="Charge of 12.00 UAH for order 881")
    page = login("support").get(detail_of(key)).content.decode()
    assert "Charge of 12.00 UAH for order 881: unknown since" in page
    assert "next look-up in" in page


def test_the_timeline_tells_calls_events_and_settlement_in_order(login: Login) -> None:
    key = make_key(state=State.COMPLETED, at=ago(minutes=5), settled_at=ago(minutes=1))
    make_step(key)
    make_event(key, kind="settled-by-hand", actor="olga", reason="Seen in the dashboard.")
    page = login("support").get(detail_of(key)).content.decode()
    story = [
        page.index(text)
        for text in (
            "Key claimed",
            "Outside call",
            "may have happened",
            "Settled as completed",
            "A person settled it",
        )
    ]
    assert story == sorted(story)
    assert "olga" in page
    assert "Seen in the dashboard." in page


def test_values_are_hidden_from_support(login: Login) -> None:
    key = make_key(state=State.COMPLETED)
    make_step(key)
    page = login("support").get(detail_of(key)).content.decode()
    assert "Olena Koval" not in page
    assert "customer" in page
    assert "Your role may not show them" in page


def test_a_card_number_is_masked_wherever_it_was_put(login: Login) -> None:
    card = "4242424242424242"
    key = make_key(
        state=State.UNKNOWN, key=card, reference=card, summary=f"Order {card}", request_id=card
    )
    make_event(key, reason=card)
    client = login("superuser")
    for address in (detail_of(key), KEYS, OVERVIEW, reverse("admin:idempotency_event_changelist")):
        page = client.get(address).content.decode()
        assert card not in page, address
    assert "************4242" in client.get(detail_of(key)).content.decode()


def test_the_list_shows_first_what_needs_a_person(login: Login) -> None:
    keys = make_variety()
    page = login("support").get(KEYS).content.decode()
    first = page.index(str(keys["late"].pk))
    assert first < page.index(str(keys["person"].pk)) < page.index(str(keys["waiting"].pk))
    assert str(keys["completed"].pk) not in page


@pytest.mark.parametrize(
    ("query", "there"),
    [
        ("state=person", {"person", "late"}),
        ("state=unknown", {"unknown", "person", "unfinished"}),
        ("state=running", {"running", "lapsed"}),
        ("state=waiting", {"waiting", "overdue"}),
        ("state=released", {"released", "late"}),
        ("state=completed", {"completed", "refused", "gave-up"}),
        ("state=person&seen=hour", set()),
        ("state=person&seen=before-hour", {"person", "late"}),
        (
            "state=all&seen=hour",
            {
                "completed",
                "refused",
                "unknown",
                "unfinished",
                "running",
                "lapsed",
                "released",
                "waiting",
                "overdue",
                "gave-up",
            },
        ),
        (
            "state=nonsense",
            {"person", "late", "unknown", "unfinished", "running", "lapsed", "waiting", "overdue"},
        ),
    ],
)
def test_the_filters_show_their_own(login: Login, query: str, there: set[str]) -> None:
    keys = make_variety()
    page = login("support").get(f"{KEYS}?{query}").content.decode()
    assert {name for name, key in keys.items() if str(key.pk) in page} == there


def test_pages_ask_the_database_a_bounded_number_of_times(login: Login) -> None:
    client = login("engineers")
    keys = [make_waiting()[0] for _ in range(30)]
    for each in keys:
        make_step(each)
    most = {
        OVERVIEW: 20,
        KEYS: 14,
        reverse("admin:idempotency_operation_changelist"): 14,
        detail_of(keys[0]): 16,
    }
    for address, limit in most.items():
        with CaptureQueriesContext(
            connection,
        ) as queries:
            assert client.get(address).status_code == 200
        assert len(queries) <= limit, (address, [q["sql"][:90] for q in queries])


@pytest.mark.parametrize("hours", [-5, 5])
def test_ages_are_counted_by_the_databases_clock(
    login: Login, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    key = make_key(state="in_progress", lease_until=ago(seconds=-40))
    client, right = login("support"), timezone.now
    monkeypatch.setattr(timezone, "now", lambda: right() + timedelta(hours=hours))
    for address in (KEYS, detail_of(key), OVERVIEW):
        page = client.get(address).content.decode()
        assert "5 h" not in page
    assert ADVICE[Situation.RUNNING].label in client.get(detail_of(key)).content.decode()


def test_a_purged_key_leads_back_with_a_word(login: Login) -> None:
    key = make_key()
    key.delete()
    response = login("support").get(detail_of(key), follow=True)
    assert "has been purged" in response.content.decode()


def test_work_leads_to_the_page_of_its_key(login: Login) -> None:
    key, work = make_waiting()
    response = login("support").get(reverse("admin:idempotency_operation_change", args=(work.pk,)))
    assert response.headers["Location"] == detail_of(key)


def test_nothing_inline_so_that_a_strict_policy_passes(login: Login) -> None:
    key = make_variety()["person"]
    client = login("engineers")
    for address in (
        OVERVIEW,
        detail_of(key),
        reverse("admin:idempotency_key_act", args=(key.pk, "settle")),
    ):
        page = client.get(address).content.decode()
        _, _, ours = page.partition('<div class="idem">')
        assert ours
        assert "style=" not in ours
        assert "<script" not in ours
        assert " onclick" not in ours


def test_the_overview_says_what_is_late(login: Login, settings: Any) -> None:
    make_variety()
    page = login("support").get(OVERVIEW).content.decode()
    assert "Need a person" in page
    assert ">2</b>" in page.replace(" ", "").replace("\n", "")
    # No beat has ever succeeded in this database.
    assert page.count(">late<") == len(heartbeat.watched())


# -- what others wrote -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("body", [b'{"\\ud800": 1}', b'{"status": "\\ud800"}', b'"\\ud83d"'])
def test_half_a_pair_in_a_body_does_not_hide_the_key(login: Login, body: bytes) -> None:
    key, client = make_key(state=State.COMPLETED, body=body), login("operations")
    assert client.get(detail_of(key)).status_code == 200
    assert client.post(f"{detail_of(key).removesuffix('change/')}values/").status_code == 200


def test_what_a_caller_wrote_does_not_turn_the_line_around(login: Login) -> None:
    turned = "881\u202e"
    key = make_key(
        state=State.UNKNOWN, reference=turned, summary=f"Order {turned}", request_id=turned
    )
    make_step(key, ending=Ending.APPLIED, reference=turned)
    client = login("support")
    for address in (detail_of(key), KEYS, OVERVIEW):
        assert "\u202e" not in client.get(address).content.decode(), address


def test_a_card_number_for_which_two_keys_did_the_same_is_masked(login: Login) -> None:
    first, _ = (make_key(state=State.COMPLETED, reference="4242424242424242") for _ in range(2))
    page = login("support").get(detail_of(first)).content.decode()
    assert "Done 2 times for “************4242”" in page
    assert "4242424242424242" not in page


# -- addresses that somebody made up or kept too long ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "column"),
    [
        ("key", "body__contains"),
        ("key", "evidence__note__startswith"),
        ("key", "key__icontains"),
        ("operation", "input__payment"),
        ("operation", "key__body__contains"),
        ("event", "detail__note__startswith"),
    ],
)
def test_no_address_asks_for_what_the_page_hides(login: Login, model: str, column: str) -> None:
    address = reverse(f"admin:idempotency_{model}_changelist")
    assert login("support").get(address, {column: "7"}).status_code == 400


@pytest.mark.parametrize("name", ["export/", "many/ask/"])
def test_the_page_of_a_list_that_became_shorter_does_not_matter(login: Login, name: str) -> None:
    for _ in range(60):
        make_key(state=State.UNKNOWN)
    page: HttpResponseBase = login("operations").get(f"{KEYS}{name}?state=unknown&p=9")
    assert page.status_code == 200
    assert b"Charge of 12.00 UAH" in b"".join(cast("Iterable[bytes]", page))


# -- the chart ---------------------------------------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize("day", [(2026, 3, 29), (2026, 10, 25), (2026, 7, 1)])
def test_each_key_is_one_in_the_chart_on_a_day_of_a_change_of_time(
    settings: Any, day: tuple[int, int, int]
) -> None:
    settings.TIME_ZONE = "Europe/Kyiv"
    now = datetime(*day, 12, 30, tzinfo=UTC)
    for quarters in range(80):
        make_key(state=State.COMPLETED, at=now - timedelta(minutes=15 * quarters))
    chart = last_day(now=now)
    assert sum(hour.total for hour in chart.hours) == 80
    assert max(hour.total for hour in chart.hours) == 4
