"""The real ledger on PostgreSQL under any sequence of claimants, faults, look-ups and decisions (R12, R22, R36–R39).

Claimants are threads that stop inside their outside call; the machine says how each call ends, and what happens before.
A failing sequence is printed as a program.
"""

import functools
import uuid
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from hypothesis import HealthCheck, assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from idempotency import reconciliation
from idempotency.ledger import claim
from idempotency.ledger.purge import purge_batch
from idempotency.models import Event, Key, Sender, Step
from idempotency.testing import pass_time
from idempotency.types import State
from tests.integration.core.conftest import Caller
from tests.integration.core.test_reconciliation import LEASE, SETTLING, dead_process
from tests.model.gate import Gate, Stopped
from tests.support import host

SETTLED = (State.COMPLETED, State.RELEASED)
KEY_TTL = 2_592_000
AT_ONCE = 3
dead = functools.cache(dead_process)


class Ledger(RuleBasedStateMachine):
    """One key, as its callers, its operators and the other side may treat it."""

    @initialize(keyed=st.booleans(), steps=st.sampled_from([1, 1, 2]))
    def begin(self, keyed: bool, steps: int) -> None:
        self.gate = Gate(keyed=keyed)
        host.other_side.send = self.gate.send  # type: ignore[method-assign]
        host.other_side.look_up = self.gate.look_up  # type: ignore[method-assign]
        self.caller = Caller(User.objects.create_user(uuid.uuid4().hex))
        self.path = "/charge/" if keyed else "/charge-unkeyed/"
        self.body: dict[str, Any] = {"name": "a", "kind": "second-call" if steps == 2 else None}
        self.answers: list[Any] = []
        self.reports: list[reconciliation.Report] = []
        self.highest = (0, 0)

    def key(self) -> Key | None:
        return Key.objects.first()

    def choose(self, data: Any, *, sends: bool) -> Stopped:
        here = [one for one in self.gate.stopped if not one.crashed]
        here = [one for one in here if (one.request is not None) is sends]
        assume(here)
        number: int = data.draw(st.integers(0, len(here) - 1), "which")
        return here[number]

    # -- claimants -----------------------------------------------------------------------------------------------------

    @precondition(lambda self: len(self.gate.stopped) < AT_ONCE)
    @rule()
    def request(self) -> None:
        self.gate.start(
            lambda: self.caller.post(self.path, self.body, key="one"), self.answers.append
        )

    @rule(
        data=st.data(),
        word=st.sampled_from(["apply", "apply and lose", "lose", "not sent", "refuse", "decline"]),
    )
    def a_call_ends(self, data: Any, word: str) -> None:
        self.gate.go_on(self.choose(data, sends=True), word)

    @rule(data=st.data(), on_the_wire=st.booleans(), provable=st.booleans())
    def a_process_dies(self, data: Any, on_the_wire: bool, provable: bool) -> None:
        one = self.choose(data, sends=True)
        assert one.request is not None
        one.crashed = True
        if on_the_wire:
            self.gate.apply(one.request.downstream_key)
        if provable:
            self.prove_dead(one)

    def prove_dead(self, one: Stopped) -> None:
        assert one.request is not None
        Sender.objects.filter(
            step__downstream_key=one.request.downstream_key, token=one.token
        ).update(**dead())

    # -- time and the wire ---------------------------------------------------------------------------------------------

    @rule(data=st.data(), seconds=st.sampled_from([6, 6, SETTLING + 2, LEASE + 1, 400]))
    def time_passes(self, data: Any, seconds: float) -> None:
        for message in list(self.gate.wire):
            message.age += seconds
            if message.age >= SETTLING:
                self.gate.arrives(message, applied=data.draw(st.booleans(), "it arrives"))
        pass_time(seconds)

    @precondition(lambda self: self.gate.wire)
    @rule(applied=st.booleans())
    def a_message_arrives(self, applied: bool) -> None:
        self.gate.arrives(self.gate.wire[0], applied=applied)

    @precondition(lambda self: not self.gate.stopped and not self.gate.wire)
    @rule(purged=st.booleans())
    def the_key_expires(self, purged: bool) -> None:
        key = self.key()
        assume(key is not None and key.state in SETTLED and not key.watched)
        pass_time(KEY_TTL + 1)
        if purged:
            assert purge_batch(limit=10).keys == 1

    # -- those who settle what is unknown ------------------------------------------------------------------------------

    @precondition(lambda self: len(self.gate.stopped) < AT_ONCE)
    @rule()
    def the_reconciler_comes(self) -> None:
        self.gate.start(reconciliation.run, self.reports.extend)

    @rule(data=st.data())
    def a_look_up_ends(self, data: Any) -> None:
        self.gate.go_on(self.choose(data, sends=False), "")

    @rule(happened=st.booleans())
    def staff_decide(self, happened: bool) -> None:
        key = self.key()
        assume(key is not None and key.state == State.UNKNOWN)
        assert key is not None
        seen = [k for k in self.gate.effects if self.gate.step_of[k][0] == str(key.id)]
        assume(not happened or seen)
        # What they read at the other side is its id; its record says the rest.
        evidence: dict[str, object] = {"reference": f"ref-{seen[-1][:8]}"} if happened else {}
        if happened and Step.objects.filter(downstream_key=seen[-1], applied_at=None).exists():
            self.gate.start(
                lambda: self._settle(key, happened=True, evidence=evidence), lambda _: None
            )
        elif not happened:
            self._settle(key, happened=False, evidence=evidence)

    def _settle(self, key: Key, *, happened: bool, evidence: dict[str, object]) -> None:
        try:
            reconciliation.settle_by_hand(
                key_id=key.id, happened=happened, actor="ops", reason="seen", evidence=evidence
            )
        except reconciliation.Refused:
            return

    # -- what must hold after every step -------------------------------------------------------------------------------

    @invariant()
    def an_effect_happens_once(self) -> None:
        by_step = [self.gate.step_of[key] for key in self.gate.effects]
        assert len(by_step) == len(set(by_step)), "double effect"

    @invariant()
    def success_was_told_of_an_effect(self) -> None:
        for answer in self.answers:
            if answer.status_code == 201:
                reference = answer.json()["reference"]
                assert [k for k in self.gate.effects if f"ref-{k[:8]}" == reference]

    @invariant()
    def one_answer_is_told(self) -> None:
        told: dict[str, set[bytes]] = {}
        for answer in self.answers:
            assert answer.status_code != 500, answer.content
            if answer.status_code == 201:
                told.setdefault(answer.json()["reference"], set()).add(answer.content)
        assert all(len(bodies) == 1 for bodies in told.values())

    @invariant()
    def tokens_only_grow(self) -> None:
        key = self.key()
        now = (key.generation, key.token) if key is not None else (0, 0)
        assert key is None or now >= self.highest
        self.highest = now

    # -- and at last ---------------------------------------------------------------------------------------------------

    def teardown(self) -> None:
        try:
            if hasattr(self, "gate"):
                self.end_all()
                self.nobody_is_forgotten()
        finally:
            with connection.cursor() as cursor:
                cursor.execute(
                    "TRUNCATE idempotency_key, idempotency_step, idempotency_sender, "
                    "idempotency_operation, idempotency_event, auth_group, auth_user CASCADE"
                )

    def end_all(self) -> None:
        for one in [one for one in self.gate.stopped if not one.crashed]:
            if one in self.gate.stopped:
                self.gate.go_on(one, "lose")
        for one in self.gate.stopped:
            self.prove_dead(one)
        for message in list(self.gate.wire):
            self.gate.arrives(message, applied=True)
        for _ in range(6):
            pass_time(LEASE + 400)
            reconciliation.run()
            for live in [one for one in self.gate.stopped if not one.crashed]:
                self.gate.go_on(live, "lose")

    def nobody_is_forgotten(self) -> None:
        """Settled or shown as needing a person; and a "no" that was wrong was raised."""
        key = self.key()
        if key is not None:
            assert key.state in SETTLED or key.needs_person_since is not None, key.state
            denied = key.state == State.RELEASED or (key.status is not None and key.status >= 400)
            its_own = {
                k
                for k in self.gate.effects
                if self.gate.step_of[k][:2] == (str(key.id), key.generation)
            }
            if key.state in SETTLED and denied and its_own:
                assert Event.objects.filter(kind="late-news", alarming=True).exists()
        for one in list(self.gate.stopped):
            self.gate.go_on(one, "not sent")


def explore(machine: type[RuleBasedStateMachine], *, examples: int, steps: int) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.fixture
def _host(transactional_db: None, request: pytest.FixtureRequest) -> Any:
    django = request.getfixturevalue("settings")
    django.ROOT_URLCONF = "tests.support.host"
    django.IDEMPOTENCY = {**django.IDEMPOTENCY, "TENANT": None}
    send, look_up = host.other_side.send, host.other_side.look_up
    yield
    host.other_side.send, host.other_side.look_up = send, look_up  # type: ignore[method-assign]


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("_host")
def test_any_sequence_keeps_the_promises() -> None:
    explore(Ledger, examples=10, steps=25)


class First:
    def draw(self, *_: object) -> int:
        return 0


@pytest.mark.usefixtures("_host")
@pytest.mark.parametrize("rotates", [False, True])
def test_the_machine_sees_a_double_effect(rotates: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sender sleeps over its lease, is released over, and wakes: only one downstream key makes that one effect."""
    if rotates:
        monkeypatch.setattr(claim, "next_rotation", lambda earlier, _: 0 if earlier is None else 1)
    machine = Ledger()
    try:
        machine.begin(keyed=True, steps=1)
        machine.request()
        machine.time_passes(First(), LEASE + 1)
        machine.the_reconciler_comes()
        machine.gate.go_on(machine.gate.stopped[1], "")
        assert Key.objects.get().state == State.RELEASED
        machine.request()
        machine.gate.go_on(machine.gate.stopped[1], "apply")
        machine.gate.go_on(machine.gate.stopped[0], "apply")
        if rotates:
            with pytest.raises(AssertionError, match="double effect"):
                machine.an_effect_happens_once()
        else:
            machine.an_effect_happens_once()
            assert len(machine.gate.effects) == 1
    finally:
        machine.teardown()


@pytest.mark.chaos
@pytest.mark.timeout(3600)
@pytest.mark.usefixtures("_host")
def test_long_sequences_keep_the_promises() -> None:
    explore(Ledger, examples=400, steps=50)
