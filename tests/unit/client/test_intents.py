"""Every store of intents keeps one key per intent, whoever asks and however often: one suite over all of them."""

import sqlite3
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from idempotency.client import (
    Answer,
    IntentChanged,
    Intents,
    IntentsUnavailable,
    MemoryIntents,
    NotRenewable,
    Request,
    SqliteIntents,
)
from idempotency.exceptions import Misuse

ORDER = Request("POST", "/api/payments/", b'{"a":1,"b":2}', "application/json")
OTHER = Request("POST", "/api/payments/", b'{"a":1,"b":3}', "application/json")
DONE = Answer(201, {"content-type": "application/json", "location": "/1/"}, b'{"id": "1"}')
REFUSED = Answer(402, {}, b'{"code": "payment-declined", "safe_new_key": true}')


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Intents:
    return MemoryIntents() if request.param == "memory" else SqliteIntents(tmp_path / "intents.db")


def test_the_first_call_makes_the_key_and_every_other_finds_it(store: Intents) -> None:
    first = store.begin(name="charge 881", request=ORDER)
    again = store.begin(name="charge 881", request=ORDER)
    assert (first.fresh, again.fresh) == (True, False)
    assert first.key == again.key
    assert store.begin(name="charge 882", request=ORDER).key != first.key


def test_twenty_threads_find_one_key(store: Intents) -> None:
    with ThreadPoolExecutor(20) as pool:
        found = list(pool.map(lambda _: store.begin(name="n", request=ORDER), range(20)))
    assert len({intent.key for intent in found}) == 1
    assert sum(intent.fresh for intent in found) == 1


def test_the_same_request_in_another_spelling_is_the_same(store: Intents) -> None:
    store.begin(name="n", request=ORDER)
    spelt = Request("POST", "/api/payments/", b'{ "b": 2, "a": 1 }', "application/json")
    found = store.begin(name="n", request=spelt)
    assert found.request == ORDER, "the bytes of the first send are sent again"


@pytest.mark.parametrize(
    "other",
    [
        OTHER,
        Request("POST", "/api/payouts/", ORDER.body, "application/json"),
        Request("PATCH", ORDER.path, ORDER.body, "application/json"),
        Request("POST", ORDER.path, b"\xff", "application/octet-stream"),
    ],
)
def test_another_request_under_the_name_is_refused(store: Intents, other: Request) -> None:
    store.begin(name="n", request=ORDER)
    with pytest.raises(IntentChanged):
        store.begin(name="n", request=other)


def test_where_nothing_happened_the_request_may_be_corrected_under_the_same_key(
    store: Intents,
) -> None:
    first = store.begin(name="n", request=ORDER)
    store.loosen(name="n", key=first.key)
    assert store.unanswered() == []
    corrected = store.begin(name="n", request=OTHER)
    assert (corrected.key, corrected.request, corrected.fresh) == (first.key, OTHER, True)
    with pytest.raises(IntentChanged):
        store.begin(name="n", request=ORDER)


def test_a_final_answer_is_remembered(store: Intents) -> None:
    key = store.begin(name="n", request=ORDER).key
    assert [intent.name for intent in store.unanswered()] == ["n"]
    store.settle(name="n", key="another", answer=REFUSED)
    store.settle(name="n", key=key, answer=DONE)
    found = store.begin(name="n", request=ORDER).answer
    assert found is not None
    assert (found.status, found.headers, found.body) == (201, DONE.headers, DONE.body)
    assert found.remembered
    assert store.unanswered() == []


@pytest.mark.parametrize(
    ("answer", "renewed"),
    [
        (None, False),
        (DONE, False),
        (Answer(410, {}, b'{"code": "result-expired", "safe_new_key": false}'), False),
        (Answer(409, {}, b"what"), False),
        (REFUSED, True),
    ],
)
def test_e13_a_new_key_is_made_only_where_the_answer_says_that_it_is_safe(
    store: Intents, answer: Answer | None, renewed: bool
) -> None:
    key = store.begin(name="n", request=ORDER).key
    if answer is not None:
        store.settle(name="n", key=key, answer=answer)
    if not renewed:
        with pytest.raises(NotRenewable):
            store.renew(name="n")
        assert store.begin(name="n", request=ORDER).key == key
    else:
        store.renew(name="n")
        assert store.begin(name="n", request=OTHER).key != key


def test_what_was_never_begun_has_no_key_to_renew(store: Intents) -> None:
    with pytest.raises(NotRenewable):
        store.renew(name="n")


def test_nothing_is_loosened_that_another_call_has_got(store: Intents) -> None:
    """That one's send may have arrived, although this one's was refused."""
    first = store.begin(name="n", request=ORDER)
    assert not store.begin(name="n", request=ORDER).fresh
    assert not store.loosen(name="n", key=first.key)
    assert [intent.name for intent in store.unanswered()] == ["n"]
    assert not store.begin(name="n", request=ORDER).fresh
    with pytest.raises(IntentChanged):
        store.begin(name="n", request=OTHER)


def test_nothing_is_loosened_that_is_being_resumed(store: Intents) -> None:
    first = store.begin(name="n", request=ORDER)
    store.unanswered()
    assert not store.loosen(name="n", key=first.key)
    assert [intent.name for intent in store.unanswered()] == ["n"]


def test_what_is_loosened_belongs_to_the_next_call_alone(store: Intents) -> None:
    key = store.begin(name="n", request=ORDER).key
    for request in (OTHER, ORDER):
        assert store.loosen(name="n", key=key)
        assert store.begin(name="n", request=request).fresh
    assert not store.loosen(name="another", key=key)


def test_the_first_final_answer_stays(store: Intents) -> None:
    """Two calls got it: the later one, days after, is told that the result has expired."""
    key = store.begin(name="n", request=ORDER).key
    store.settle(name="n", key=key, answer=DONE)
    store.settle(name="n", key=key, answer=REFUSED)
    assert not store.loosen(name="n", key=key)
    found = store.begin(name="n", request=ORDER).answer
    assert found is not None
    assert found.status == 201
    with pytest.raises(NotRenewable):
        store.renew(name="n")


def test_a_number_is_no_text(store: Intents) -> None:
    store.begin(name="n", request=Request("POST", "/", b'{"a": 1.5}', "application/json"))
    with pytest.raises(IntentChanged):
        store.begin(name="n", request=Request("POST", "/", b'{"a": "1.5"}', "application/json"))


@pytest.mark.parametrize("name", ["", "  "])
def test_an_intent_has_a_name(store: Intents, name: str) -> None:
    with pytest.raises(Misuse):
        store.begin(name=name, request=ORDER)


# -- the file ----------------------------------------------------------------------------------------------------------


def test_a_file_outlives_its_process(tmp_path: Path) -> None:
    path = tmp_path / "intents.db"
    program = (
        "import os, sys\n"
        "from idempotency.client import Request, SqliteIntents\n"
        "store = SqliteIntents(sys.argv[1])\n"
        "request = Request('POST', '/api/payments/', b'{\"a\":1,\"b\":2}', 'application/json')\n"
        "print(store.begin(name='n', request=request).key, flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=False
    )
    assert ended.returncode == -9
    found = SqliteIntents(path).begin(name="n", request=ORDER)
    assert (found.key, found.fresh) == (ended.stdout.strip(), False)


def test_a_file_is_for_its_owner_only(tmp_path: Path) -> None:
    SqliteIntents(tmp_path / "intents.db")
    assert stat.S_IMODE((tmp_path / "intents.db").stat().st_mode) == 0o600


def test_only_what_was_answered_long_ago_is_purged(tmp_path: Path) -> None:
    store = SqliteIntents(tmp_path / "intents.db")
    key = store.begin(name="answered", request=ORDER).key
    store.begin(name="open", request=ORDER)
    store.settle(name="answered", key=key, answer=DONE)
    assert store.purge(older_than=60) == 0
    assert store.purge(older_than=-1) == 1
    assert [intent.name for intent in store.unanswered()] == ["open"]


def test_a_commit_survives_a_loss_of_power(tmp_path: Path) -> None:
    """The journal's end is on disk, too: found again, it would undo the commit, and the key that was sent."""
    with SqliteIntents(tmp_path / "intents.db")._writing() as db:
        assert db.execute("PRAGMA synchronous").fetchone()[0] == 3, "EXTRA"


def test_a_file_that_is_damaged_is_told_by_name(tmp_path: Path) -> None:
    path = tmp_path / "intents.db"
    store = SqliteIntents(path)
    path.write_bytes(b"no database" * 1000)
    with pytest.raises(IntentsUnavailable):
        store.begin(name="n", request=ORDER)
    with pytest.raises(IntentsUnavailable):
        SqliteIntents(path)


def test_a_file_that_is_gone_is_not_made_again(tmp_path: Path) -> None:
    """It would have new keys for old names."""
    path = tmp_path / "odd ?#% name.db"
    store = SqliteIntents(path)
    path.unlink()
    with pytest.raises(IntentsUnavailable):
        store.begin(name="n", request=ORDER)
    assert not path.exists()


def test_a_process_may_go_to_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = SqliteIntents("intents.db")
    key = store.begin(name="n", request=ORDER).key
    monkeypatch.chdir("/")
    assert store.begin(name="n", request=ORDER).key == key


def test_a_lock_that_lasts_is_told_by_name(tmp_path: Path) -> None:
    path = tmp_path / "intents.db"
    store = SqliteIntents(path, patience=0.01)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(IntentsUnavailable, match="locked"):
            store.begin(name="n", request=ORDER)


def test_it_needs_no_django() -> None:
    """A client is installed where no server is."""
    program = (
        "import sys, idempotency.client\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('django', 'rest_framework', 'requests')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env={}
    )
    assert done.stdout.strip() == "[]"
