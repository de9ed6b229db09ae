"""R30: read-only mode, the last rung but honest refusal, for all processes at once."""

import pytest

from idempotency.exceptions import Refused
from idempotency.resilience import ReadOnlySwitch, SharedStore, StoreUnavailable
from idempotency.telemetry import ReadOnlySwitched, subscribe
from project.embedded.store import Store
from tests.support.faketime import FakeTime


def test_r30_writes_are_refused_with_the_reason_until_it_is_switched_off() -> None:
    heard: list[ReadOnlySwitched] = []
    end = subscribe(ReadOnlySwitched, heard.append)
    switch = ReadOnlySwitch()
    switch.refuse_writes()
    switch.on(actor="ops", reason="the primary is being replaced")
    with pytest.raises(Refused, match="primary") as refused:
        switch.refuse_writes()
    assert (refused.value.code, refused.value.retry_after) == ("read-only", 30.0)
    switch.off(actor="ops", reason="done")
    switch.refuse_writes()
    end()
    assert [(event.mode, event.actor) for event in heard] == [("on", "ops"), ("off", "ops")]


def test_r30_other_processes_follow_within_the_refresh(store_server: Store) -> None:
    time = FakeTime()
    here, there = (
        ReadOnlySwitch(
            name="shop",
            store=SharedStore.connect(store_server.url, timeout=2.0),
            refresh=1,
            clock=time.clock,
        )
        for _ in range(2)
    )
    assert there.reason() is None
    here.on(actor="ops", reason="maintenance")
    assert there.reason() is None
    time.pass_(1)
    assert there.reason() == "maintenance"
    here.off(actor="ops", reason="done")
    time.pass_(1)
    assert there.reason() is None


def test_r30_a_lost_store_keeps_the_last_known_mode(own_store: Store) -> None:
    time = FakeTime()
    store = SharedStore.connect(own_store.url, timeout=2.0)
    switch = ReadOnlySwitch(name="shop", store=store, clock=time.clock)
    switch.on(actor="ops", reason="maintenance")
    own_store.kill()
    time.pass_(5)
    assert switch.reason() == "maintenance"
    with pytest.raises(StoreUnavailable):
        switch.off(actor="ops", reason="done")
    assert switch.reason() == "maintenance"
