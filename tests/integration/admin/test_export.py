"""The file is streamed, holds no bodies, and is harmless in a spreadsheet."""

import csv
import io

import pytest
from django.urls import reverse

from idempotency.models import Event
from idempotency.types import State
from tests.integration.admin.conftest import Login
from tests.support.factories import make_key, make_step

EXPORT = reverse("admin:idempotency_key_export")


def rows_of(login: Login, query: str = "state=all") -> list[dict[str, str]]:
    response = login("operations").get(f"{EXPORT}?{query}")
    assert response.streaming
    text = b"".join(response).decode("utf-8-sig")
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t=", "\r="])
def test_what_looks_like_a_formula_is_text(login: Login, start: str) -> None:
    make_key(state=State.COMPLETED, reference=f"{start}HYPERLINK(1)")
    (row,) = rows_of(login)
    assert row["reference"].startswith("'")


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("881;=HYPERLINK(1)", "881;'=HYPERLINK(1)"),
        ("881; +1", "881;' +1"),
        ("881\n=1", "881\n'=1"),
        ("881\t@A1", "881\t'@A1"),
        ("\uff1d1", "'\uff1d1"),
        (" =1", "' =1"),
        ("881-b=c", "881-b=c"),
    ],
)
def test_a_formula_in_the_middle_of_a_value_is_text_where_a_cell_could_begin(
    login: Login, value: str, written: str
) -> None:
    make_key(state=State.COMPLETED, reference=value)
    (row,) = rows_of(login)
    assert row["reference"] == written


def test_no_value_of_a_body_and_no_card_number_leaves(login: Login) -> None:
    key = make_key(state=State.COMPLETED, key="4242424242424242")
    make_step(key)
    (row,) = rows_of(login)
    assert "Olena" not in str(row)
    assert row["key"] == "************4242"


def test_the_list_s_filter_is_the_file_s(login: Login) -> None:
    make_key(state=State.COMPLETED, reference="done")
    make_key(state=State.UNKNOWN, reference="open")
    assert [row["reference"] for row in rows_of(login, "state=unknown")] == ["open"]


def test_the_export_is_recorded(login: Login) -> None:
    rows_of(login, "state=all&q=881")
    event = Event.objects.get()
    assert (event.kind, event.actor) == ("staff-export", "operations")
    assert event.detail["list"] == "state=all&q=881"


def test_a_longer_list_says_that_it_was_cut(login: Login, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("idempotency.admin.export.MOST", 2)
    for _ in range(3):
        make_key(state=State.COMPLETED)
    rows = rows_of(login)
    assert len(rows) == 3
    assert rows[-1]["operation_ref"].startswith("Only the first 2 rows")
