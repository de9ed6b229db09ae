"""Ten tasks as they come over the telephone, each done from the screen alone by somebody who has never seen it."""

import json
import uuid
from collections.abc import Callable

import pytest
from django.contrib.auth.models import Group
from django.utils import timezone
from selenium.webdriver.common.keys import Keys

from idempotency.models import Event, Heartbeat, Key
from idempotency.types import Ending, State
from payments.models import Merchant, Payment
from tests.support.browser import CHROMIUM, DRIVER, PHONE, Browser
from tests.support.factories import (
    ago,
    make_event,
    make_key,
    make_long_unknown,
    make_message,
    make_rarities,
    make_step,
    make_waiting,
)

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.sampled(4),
    pytest.mark.timeout(180),
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        CHROMIUM is None or DRIVER is None, reason="no Chromium with its driver is installed"
    ),
]

OVERVIEW = "/admin/idempotency/heartbeat/"
Open = Callable[..., Browser]


def find(browser: Browser, text: str) -> None:
    """Go to the overview, and search there."""
    open_overview(browser)
    browser.one("#idem-q").send_keys(text + Keys.ENTER)
    browser.one("#result_list, #changelist")


def open_overview(browser: Browser) -> None:
    """Follow the link that can be seen on the admin's first page."""
    browser.go("/admin/")
    links = browser.all(f"a[href='{OVERVIEW}']")
    browser.submit(next(one for one in links if one.is_displayed()))


def press(browser: Browser, button: str, *, reason: str, **fields: str) -> None:
    """Press a button of a key's page, fill in its form, and send that."""
    browser.follow(button)
    for name, value in fields.items():
        browser.one(f"[name={name}]").send_keys(value)
    browser.one("textarea[name=reason]").send_keys(reason)
    browser.submit(browser.one(".idem-form [type=submit]"))


def test_the_caller_says_that_order_881_was_charged_twice(open_as: Open) -> None:
    for number, amount in ((1, "12.00"), (2, "15.00")):
        summary = f"Charge of {amount} UAH for order 881"
        key = make_key(state=State.COMPLETED, reference="881", summary=summary)
        make_step(key, ending=Ending.APPLIED, reference=f"pi_{number}")
    browser = open_as("support", width=PHONE)
    find(browser, "order 881")
    assert "Done 2 times for “881”, under different keys" in browser.text
    assert "refund" in browser.text
    browser.follow("Charge of 12.00 UAH for order 881")
    assert "Done 2 times" in browser.text
    assert "15.00 UAH" in browser.text
    browser.follow("Charge of 15.00 UAH for order 881")
    assert "pi_2" in browser.text


def test_this_key_has_been_unknown_for_an_hour(open_as: Open) -> None:
    key = make_long_unknown()
    browser = open_as("ops")
    open_overview(browser)
    browser.follow("Charge of 12.00 UAH for order 990")
    assert "What to tell the caller" in browser.text
    press(browser, "Ask the gateway now", reason="The caller waits, ticket 17.")
    assert "It did not happen. Nothing was charged." in browser.text
    key.refresh_from_db()
    assert (key.state, key.settled_by) == (State.RELEASED, "ops")


def test_a_customer_reports_409s(open_as: Open) -> None:
    key = make_key(state=State.UNKNOWN, request_id="req-from-their-log")
    make_step(key)
    make_event(
        key,
        kind="refused-repeat",
        actor="request",
        detail={"differing": [], "state": "unknown"},
    )
    browser = open_as("support")
    find(browser, "req-from-their-log")
    browser.follow("Charge of 12.00 UAH")
    assert "told that the outcome is not known yet" in browser.text
    assert "What the caller’s program is told: outcome-unknown" in browser.text
    assert "Never send it again under another key" in browser.text


def test_the_worker_is_down(open_as: Open) -> None:
    make_waiting(due_at=ago(minutes=9), at=ago(minutes=10))
    Heartbeat.objects.create(name="beat", last_ok_at=timezone.now())
    Heartbeat.objects.create(name="broker", last_ok_at=timezone.now())
    Heartbeat.objects.create(name="wake", last_ok_at=ago(minutes=10))
    browser = open_as("support")
    browser.go(OVERVIEW)
    assert "late" in row(browser, "wake")
    assert "alive" in row(browser, "beat")
    browser.follow("Deferred work due")
    browser.follow("Refund of 5.00 UAH")
    assert "no worker has taken it" in browser.text
    assert "Nothing is lost" in browser.text


def test_a_payout_is_half_done(open_as: Open) -> None:
    key = make_rarities()["stuck-halfway"]
    browser = open_as("ops")
    browser.go(OVERVIEW)
    browser.follow("Payout of 90.00 UAH to acct_7")
    assert "done only in part" in browser.text
    assert "“recipient” at stripe: The other side accepted it" in browser.text
    press(browser, "Retry the operation", reason="The gateway is back.")
    assert "A new cycle of runs begins now" in browser.text
    key.refresh_from_db()
    assert key.due_at is not None


def test_it_is_settled_with_evidence_from_the_gateway_s_dashboard(open_as: Open) -> None:
    Group.objects.create(name="990-pending")
    key = make_long_unknown()
    browser = open_as("ops")
    find(browser, "990")
    browser.follow("Charge of 12.00 UAH for order 990")
    browser.follow("Settle by hand")
    browser.one("input[name=happened][value=yes]").click()
    browser.one("[name=reference]").send_keys("pi_seen_there")
    browser.one("[name=seen_where]").send_keys("dashboard, search for order 990, 14:20")
    browser.one("textarea[name=reason]").send_keys("Succeeded there at 11:03.")
    browser.submit(browser.one(".idem-form [type=submit]"))
    key.refresh_from_db()
    assert (key.state, key.settled_by) == (State.COMPLETED, "ops"), browser.text
    assert "dashboard, search for order 990, 14:20" in browser.text
    assert "by ops" in browser.text


def test_who_revealed_this_payload(open_as: Open) -> None:
    make_key(state=State.COMPLETED, reference="881")
    curious = open_as("ops")
    find(curious, "881")
    curious.follow("Charge of 12.00 UAH for order 881")
    curious.submit(curious.one(".idem-reveal button"))
    browser = open_as("support")
    find(browser, "881")
    browser.follow("Charge of 12.00 UAH for order 881")
    (line,) = [one.text for one in browser.all(".idem-timeline li") if "looked at" in one.text]
    assert "ops" in line


def test_cancel_this_operation(open_as: Open) -> None:
    key, work = make_waiting(due_at=ago(hours=-1))
    browser = open_as("ops")
    find(browser, str(work.pk))
    browser.follow("Refund of 5.00 UAH")
    press(browser, "Cancel the operation", reason="The caller changed her mind.")
    assert "cancelled at" in browser.text
    assert "by ops; nothing happened" in browser.text
    assert "The caller changed her mind." in browser.text
    key.refresh_from_db()
    assert key.state == State.COMPLETED


def test_beat_is_late(open_as: Open) -> None:
    for name in ("beat", "broker", "reconcile", "wake", "purge"):
        Heartbeat.objects.create(name=name, last_ok_at=ago(minutes=30))
    browser = open_as("support")
    open_overview(browser)
    assert "late" in row(browser, "beat")
    assert "30 min ago" in row(browser, "beat")


def test_a_webhook_was_lost(open_as: Open) -> None:
    merchant = Merchant.objects.create(name="Merchant A", slug="a")
    payment = Payment.objects.create(
        key_id=uuid.uuid4(),
        merchant=merchant,
        order_id="881",
        amount=1200,
        currency="UAH",
        source="pm_card_visa",
        status="processing",
        gateway_reference="pi_1",
    )
    thing = {"object": "payment_intent", "id": "pi_1", "status": "succeeded", "amount": 1200}
    event = {"id": "evt_1", "data": {"object": {**thing, "currency": "uah"}}}
    make_message(json.dumps(event).encode(), reference="pi_1", key="evt_1")
    browser = open_as("ops")
    find(browser, "pi_1")
    browser.follow("Event of the gateway")
    press(browser, "Run the message again", reason="The payment still says processing.")
    assert "The message was run again" in browser.text
    payment.refresh_from_db()
    assert payment.status == "succeeded"
    assert Event.objects.filter(kind="run-again", actor="ops").count() == 1
    assert not Key.objects.filter(needs_person_since__isnull=False).exists()


def row(browser: Browser, task: str) -> str:
    """Return what the overview says of a recurring task."""
    (found,) = [
        one.text for one in browser.all(".idem-table tbody tr") if one.text.startswith(task)
    ]
    return found
