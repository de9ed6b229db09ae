"""The browsable API's forms have a key each, made when they are rendered (E13)."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from pytest_django.live_server_helper import LiveServer

from idempotency.models import Key
from tests.support.browser import CHROMIUM, DRIVER, Browser

FIELD = re.compile(
    r'<input[^>]*name="Idempotency-Key"[^>]*value="([^"]+)"|value="([^"]+)"[^>]*name="Idempotency-Key"'
)


@pytest.fixture(autouse=True)
def _host(settings: Any) -> None:
    settings.ROOT_URLCONF = "tests.support.browsablehost"
    settings.IDEMPOTENCY = {}


def keys_on(page: str) -> list[str]:
    return [found[1] or found[2] for found in FIELD.finditer(page)]


def page(**headers: str) -> str:
    answer = Client(headers={"Accept": "text/html", **headers}).get("/groups/", secure=True)
    return answer.content.decode()


@pytest.mark.django_db
def test_each_form_of_an_idempotent_handler_has_a_key_of_its_own() -> None:
    first, second = keys_on(page()), keys_on(page())
    # The form, and the one for raw data; none of PUT, which is not decorated.
    assert len(first) == 2
    assert len({*first, *second}) == 4
    assert "idempotency/api.js" in page()


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("told", "kept"),
    [
        ({"code": "in-progress", "safe_new_key": False}, True),
        ({"code": "invalid"}, True),
        ({"code": "payment-declined", "safe_new_key": True}, False),
        ({"made": 1}, False),
    ],
)
def test_a_form_keeps_its_key_while_its_operation_is_not_over(told: Any, kept: bool) -> None:
    from rest_framework.test import APIRequestFactory

    from tests.support.browsablehost import Groups

    class Answers(Groups):
        def get(self, request: Any) -> Any:
            from rest_framework.response import Response

            return Response(told)

    request = APIRequestFactory().get(
        "/groups/", headers={"Accept": "text/html", "Idempotency-Key": "k1"}
    )
    shown = Answers.as_view()(request).render().content.decode()
    assert (set(keys_on(shown)) == {"k1"}) is kept


# -- in a browser ------------------------------------------------------------------------------------------------------


@pytest.fixture
def browser(live_server: LiveServer, tmp_path: Path) -> Iterator[Browser]:
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("no Chromium with its driver is installed")
    window = Browser(profile=tmp_path / "profile")
    window.begin(address=live_server.url)
    yield window
    window.close()


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_form_is_sent_with_its_key_and_twice_it_is_one_operation(browser: Browser) -> None:
    browser.go("/groups/")
    form = "#post-object-form form"
    key = browser.one(f'{form} [name="Idempotency-Key"]').get_attribute("value")
    browser.driver.execute_script("document.querySelector('a[name=html-tab]').click()")
    watch = """
        const sent = [], real = fetch;
        window.fetch = (to, what) => { sent.push(...what.body.keys()); return real(to, what); };
    """
    send = f"""
        const form = document.querySelector("{form}");
        form.querySelector('[name=name]').value = "a";
        form.requestSubmit();
    """
    # Two clicks at once, as a person who is impatient makes them.
    fields = browser.driver.execute_script(
        f"{watch} {send} {send.replace('const form', 'const again').replace('form.', 'again.')} return sent;"
    )
    browser.wait_for("HTTP 201")
    # Neither the key nor the token against forgery, which each page has anew: a repeat is the same request.
    assert fields == ["name", "name"]
    assert Group.objects.count() == 1
    assert Key.objects.get().key == key
    assert browser.one(f'{form} [name="Idempotency-Key"]').get_attribute("value") != key


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_raw_data_is_sent_with_its_key_and_a_refusal_leaves_the_form(browser: Browser) -> None:
    browser.go("/groups/")
    form = "#post-generic-content-form form"
    key = browser.one(f'{form} [name="Idempotency-Key"]').get_attribute("value")

    def send(body: str) -> None:
        browser.driver.execute_script(
            f"""document.querySelector('{form} [data-override=content]').value = arguments[0];
            document.querySelector('{form}').requestSubmit();""",
            body,
        )

    browser.driver.execute_script("document.querySelector('a[name=raw-tab]').click()")
    send("{}")
    browser.wait_for('"code":"invalid"')
    assert browser.one(f'{form} [name="Idempotency-Key"]').get_attribute("value") == key
    send('{"name": "b"}')
    browser.wait_for("HTTP 201")
    assert Key.objects.get().key == key
