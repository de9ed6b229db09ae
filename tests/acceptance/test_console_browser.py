"""The console in a real browser: how it behaves and looks, in both themes, light and dark, also on a phone.

Pictures of every page go to `var/console/`: to be looked at, not compared.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys

from idempotency.models import Event
from idempotency.types import State
from tests.support.browser import CHROMIUM, DESKTOP, DRIVER, PHONE, Browser
from tests.support.factories import (
    make_event,
    make_key,
    make_long_unknown,
    make_rarities,
    make_variety,
)

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.timeout(180),
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        CHROMIUM is None or DRIVER is None, reason="no Chromium with its driver is installed"
    ),
]

PICTURES = Path(__file__).resolve().parents[2] / "var" / "console"
OVERVIEW = "/admin/idempotency/heartbeat/"
KEYS = "/admin/idempotency/key/"

Open = Callable[..., Browser]


def test_a_double_click_acts_once(open_as: Open) -> None:
    key = make_long_unknown()
    browser = open_as("ops")
    browser.go(f"{KEYS}{key.pk}/act/ask/")
    browser.one("textarea[name=reason]").send_keys("Twice, by accident.")
    browser.driver.execute_script(
        "const form = document.querySelector('.idem-form'), button = form.querySelector('[type=submit]');"
        "button.click(); button.click();"
    )
    browser.wait_for("It did not happen.")
    assert Event.objects.filter(kind="staff-ask").count() == 1


def test_support_reads_and_is_offered_nothing_else(open_as: Open) -> None:
    key = make_long_unknown()
    browser = open_as("support")
    browser.go(f"{KEYS}{key.pk}/change/")
    assert "needs a person" in browser.text
    assert not browser.all("a.idem-button")
    browser.go(f"{KEYS}{key.pk}/act/settle/")
    assert "403" in browser.driver.title or "Forbidden" in browser.text


def test_values_are_revealed_to_who_may_see_them(open_as: Open) -> None:
    key = make_key(state=State.COMPLETED)
    browser = open_as("ops")
    browser.go(f"{KEYS}{key.pk}/change/")
    assert "Olena Koval" not in browser.text
    browser.submit(browser.one(".idem-reveal button"))
    assert "Olena Koval" in browser.text
    assert Event.objects.get().kind == "staff-reveal"


def test_a_form_can_be_filled_in_by_keyboard_alone(open_as: Open) -> None:
    key = make_long_unknown()
    browser = open_as("ops")
    browser.go(f"{KEYS}{key.pk}/act/settle/")
    browser.one("input[name=happened]").send_keys(Keys.SPACE)
    active = browser.driver.switch_to
    active.active_element.send_keys(Keys.ARROW_DOWN, Keys.TAB)
    active.active_element.send_keys(Keys.TAB)
    active.active_element.send_keys("the dashboard, by order", Keys.TAB)
    active.active_element.send_keys("Not found there at all.", Keys.TAB)
    active.active_element.send_keys(Keys.ENTER)
    browser.wait_for("It did not happen.")
    key.refresh_from_db()
    assert key.state == State.RELEASED


def test_what_others_chose_may_be_one_long_word(open_as: Open) -> None:
    word = "<b>" + "y" * 150
    key = make_key(state=State.UNKNOWN, reference=word, summary=word, key=word)
    make_event(key, kind="late-news", alarming=True, reason=word, detail={"about": word})
    browser = open_as("support")
    for path in (OVERVIEW, KEYS, f"{KEYS}{key.pk}/change/", "/admin/idempotency/event/"):
        browser.go(path)
        assert word[:100] in browser.text, path
        assert browser.overflow() <= 0, path
        for table in browser.all(".results"):
            wide = browser.driver.execute_script(
                "return arguments[0].scrollWidth - arguments[0].clientWidth", table
            )
            assert wide <= 0, path


def test_the_overview_refreshes_itself_and_pauses_when_hidden(open_as: Open) -> None:
    browser = open_as("support")
    browser.go(OVERVIEW)
    browser.driver.execute_script(
        "Object.defineProperty(document, 'hidden', {get: () => window.away, configurable: true});"
        "window.away = true; document.dispatchEvent(new Event('visibilitychange'));"
    )
    make_key(state=State.UNKNOWN, summary="Charge for order 4711")
    before = browser.text
    browser.driver.execute_script("document.dispatchEvent(new Event('visibilitychange'))")
    assert browser.text == before
    browser.driver.execute_script(
        "window.away = false; document.dispatchEvent(new Event('visibilitychange'))"
    )
    browser.wait_for("Charge for order 4711")


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("width", "dark"), [(DESKTOP, False), (DESKTOP, True), (PHONE, False), (PHONE, True)]
)
def test_every_page_fits_reads_well_and_is_labelled(
    open_as: Open, theme: str, width: int, dark: bool
) -> None:
    keys = make_variety() | make_rarities()
    alarm = Event.objects.filter(alarming=True).latest("pk")
    browser = open_as("engineer", width=width, dark=dark)
    PICTURES.mkdir(parents=True, exist_ok=True)
    browser.complaints()
    for name, path in {
        "overview": OVERVIEW,
        "keys": KEYS,
        "operations": "/admin/idempotency/operation/?state=all",
        "events": "/admin/idempotency/event/",
        "unknown": f"{KEYS}{keys['person'].pk}/change/",
        "completed": f"{KEYS}{keys['completed'].pk}/change/",
        "gave-up": f"{KEYS}{keys['gave-up'].pk}/change/",
        "done-twice": f"{KEYS}{keys['done-twice'].pk}/change/",
        "stuck-halfway": f"{KEYS}{keys['stuck-halfway'].pk}/change/",
        "alarm": f"/admin/idempotency/event/{alarm.pk}/change/",
        "handle": f"/admin/idempotency/event/{alarm.pk}/handle/",
        "settle": f"{KEYS}{keys['person'].pk}/act/settle/",
        "many": f"{KEYS}many/ask/?state=open",
    }.items():
        browser.go(path)
        look = f"{theme}-{'phone' if width == PHONE else 'desktop'}-{'dark' if dark else 'light'}"
        browser.shoot(PICTURES / f"{name}-{look}.png")
        assert browser.overflow() <= 0, name
        assert browser.driver.execute_script(_UNREADABLE) == [], (name, look)
        assert browser.driver.execute_script(_UNLABELLED) == [], name
        assert browser.complaints() == [], name


# WCAG 2.2, 1.4.3: text of the console against what is behind it, at least 4.5 to 1.
_UNREADABLE = """
const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
const rgba = (colour) => {
  canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
  const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data; return [r, g, b, a / 255];
};
const over = (top, under) => top.slice(0, 3).map((c, i) => c * top[3] + under[i] * (1 - top[3]));
const behind = (element) => {
  const layers = [];
  for (let at = element; at; at = at.parentElement) layers.push(rgba(getComputedStyle(at).backgroundColor));
  return layers.reverse().reduce((under, layer) => over(layer, under), [255, 255, 255]);
};
const light = (rgb) => {
  const [r, g, b] = rgb.map((c) => c / 255).map((c) => c <= .03928 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4);
  return .2126 * r + .7152 * g + .0722 * b;
};
const texts = [...document.querySelectorAll(".idem *, .idem-about, .idem-standing, .idem-badge")];
return texts.filter((e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) && e.offsetParent)
  .map((e) => {
    const back = behind(e), front = over(rgba(getComputedStyle(e).color), back);
    const [a, b] = [light(front), light(back)].sort((x, y) => y - x);
    return [(a + .05) / (b + .05), e.className + ": " + e.textContent.trim().slice(0, 30)];
  }).filter(([ratio]) => ratio < 4.5);
"""

# Everything that can be operated has a name, every section a heading that is there, every table its headers.
_UNLABELLED = """
const bad = [];
for (const e of document.querySelectorAll(".idem input:not([type=hidden]), .idem select, .idem textarea"))
  if (!(e.labels && e.labels.length) && !e.getAttribute("aria-label")) bad.push(e.outerHTML);
for (const e of document.querySelectorAll(".idem a, .idem button")) if (!e.textContent.trim()) bad.push(e.outerHTML);
for (const e of document.querySelectorAll(".idem [aria-labelledby], .idem [aria-describedby]"))
  for (const name of ["aria-labelledby", "aria-describedby"])
    for (const id of (e.getAttribute(name) || "").split(" ").filter(Boolean))
      if (!document.getElementById(id)) bad.push(name + " " + id);
for (const e of document.querySelectorAll(".idem th")) if (!e.scope) bad.push(e.outerHTML);
for (const e of document.querySelectorAll(".idem svg")) if (!e.getAttribute("aria-label")) bad.push("svg");
return bad;
"""
