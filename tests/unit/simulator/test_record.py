from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from payments.simulator.record import books, keys
from payments.simulator.record.keys import Fresh, InUse, Keys, Replay, Reused
from payments.simulator.record.requests import amount_of
from payments.simulator.record.store import DirectoryInUse, RecordClosed, Store
from payments.simulator.wire.http import Answer


class SetClock:
    """A clock that stands still until it is set."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def record(tmp_path: Path, clock: SetClock) -> Iterator[Store]:
    store = Store(tmp_path, clock=clock)
    yield store
    store.close()


def _claim(
    known: Keys, *, epoch: int = 0, fingerprint: str = "f", late: int | None = None
) -> object:
    return known.claim(key="k", epoch=epoch, fingerprint=fingerprint, ttl=60.0, late=late)


def _remember(record: Store) -> None:
    with record.transaction() as tx:
        keys.remember(tx, key="k", fingerprint="f", request_id="r", answer=Answer(402, b"no"))


def test_a_key_is_in_use_until_it_is_released(record: Store) -> None:
    known = Keys(record)
    assert _claim(known) == Fresh()
    assert _claim(known) == InUse()
    known.release("k", epoch=0)
    assert _claim(known) == Fresh()


def test_an_answer_is_remembered_for_its_time(record: Store, clock: SetClock) -> None:
    known = Keys(record)
    _remember(record)
    clock.now += 59.9
    replay = _claim(known)
    assert isinstance(replay, Replay)
    assert (replay.answer.status, replay.answer.body) == (402, b"no")
    assert _claim(known, fingerprint="other") == Reused()
    clock.now += 0.1
    assert _claim(known) == Fresh()


def test_a_late_request_holds_its_key_against_all_others(record: Store) -> None:
    known = Keys(record)
    with record.transaction() as tx:
        seq = tx.write("INSERT INTO late (due, key, request) VALUES (0, 'k', '')")
    assert _claim(known) == InUse()
    assert _claim(known, late=seq) == Fresh()


def test_a_reset_frees_keys_and_old_releases_do_not_touch_new_claims(record: Store) -> None:
    known = Keys(record)
    _claim(known, epoch=0)
    record.forget_everything()
    assert record.epoch == 1
    assert _claim(known, epoch=1) == Fresh()
    known.release("k", epoch=0)
    assert _claim(known, epoch=1) == InUse()


def test_the_fingerprint_ignores_order_only() -> None:
    first = keys.fingerprint(path="/a", params={"x": "1", "y": {"z": "2"}})
    assert first == keys.fingerprint(path="/a", params={"y": {"z": "2"}, "x": "1"})
    assert first != keys.fingerprint(path="/b", params={"x": "1", "y": {"z": "2"}})
    assert first != keys.fingerprint(path="/a", params={"x": "1", "y": {"z": "3"}})


def test_an_object_moves_its_money_once(record: Store) -> None:
    thing = {"id": "pi_1", "object": "payment_intent", "currency": "eur"}
    with record.transaction() as tx:
        books.move_money(tx, thing, kind="charge", amount=1, key=None)
    with pytest.raises(sqlite3.IntegrityError), record.transaction() as tx:
        books.move_money(tx, thing, kind="charge", amount=1, key=None)
    with record.transaction() as tx:
        assert len(books.all_effects(tx)) == 1


def test_a_directory_is_open_once_and_closed_for_good(tmp_path: Path, clock: SetClock) -> None:
    store = Store(tmp_path, clock=clock)
    with pytest.raises(DirectoryInUse):
        Store(tmp_path, clock=clock)
    store.close()
    with pytest.raises(RecordClosed), store.transaction():
        pass


@pytest.mark.parametrize(
    ("amount", "read"),
    [("10", 10), ("-1", None), ("1.5", None), ("", None), ("９", None), ("9" * 30, None)],
)
def test_an_amount_is_written_down_only_if_it_is_one(amount: str, read: int | None) -> None:
    assert amount_of({"amount": amount}) == read
