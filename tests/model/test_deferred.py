"""Deferred work in the real ledger under any sequence of promises, runs, faults, look-ups, cancelling and staff.

As `test_stateful`, with workers for claimants (R31–R34, R36).
"""

import contextlib
import uuid
from typing import Any

import pytest
from django.contrib.auth.models import User
from hypothesis import assume
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from idempotency import reconciliation
from idempotency.conf import conf
from idempotency.exceptions import TemporaryFailure
from idempotency.ledger import due
from idempotency.ledger.phases import phase
from idempotency.models import Event, Operation, Step
from idempotency.operations import byhand, runner
from idempotency.resilience import RetryPolicy
from idempotency.testing import pass_time
from idempotency.types import State
from tests.integration.core.test_reconciliation import LEASE
from tests.integration.operations.conftest import Caller, nudges
from tests.model.gate import Gate
from tests.model.test_stateful import AT_ONCE, SETTLED, Ledger, explore
from tests.support import host
from tests.support.deferring import jobs

__all__ = ["nudges"]

LONG = LEASE + 400
"""Seconds: longer than any lease, pause or settling time."""


class Deferred(Ledger):
    """One key that stands for deferred work."""

    @initialize(keyed=st.booleans(), steps=st.sampled_from([1, 1, 2]))
    def begin(self, keyed: bool, steps: int) -> None:
        self.gate = Gate(keyed=keyed or steps == 2)
        host.other_side.send = self.gate.send  # type: ignore[method-assign]
        host.other_side.look_up = self.gate.look_up  # type: ignore[method-assign]
        jobs.reset()
        self.caller: Any = Caller(User.objects.create_user(uuid.uuid4().hex))
        self.path = "/two-steps/" if steps == 2 else "/transfers/"
        self.name = "test.two-steps" if steps == 2 else "test.transfer"
        self.steps = steps
        self.body = {"operation": self.name, "input": {"unkeyed": not keyed}}
        self.answers = []
        self.reports = []
        self.highest = (0, 0)

    def work(self) -> Operation | None:
        return Operation.objects.first()

    # -- claimants -----------------------------------------------------------------------------------------------------

    @precondition(lambda self: len(self.gate.stopped) < AT_ONCE)
    @rule()
    def request(self) -> None:
        self.answers.append(self.caller.post(self.path, self.body, key="one"))

    @precondition(lambda self: len(self.gate.stopped) < AT_ONCE)
    @rule(does=st.sampled_from([None, None, None, TemporaryFailure, RuntimeError, SystemExit]))
    def a_worker_comes(self, does: type[BaseException] | None) -> None:
        jobs.script[:] = [] if does is None else [does("as it was told")]
        self.gate.start(_run, lambda _: None)

    @rule()
    def a_worker_dies_before_it_calls(self) -> None:
        with phase(using=conf.DATABASE) as phases:
            due.take(connection=phases.connection, leases={self.name: 60})

    # -- people --------------------------------------------------------------------------------------------------------

    @rule()
    def the_caller_cancels(self) -> None:
        work = self.work()
        assume(work is not None)
        assert work is not None
        self.caller.post(f"/api/operations/{work.id}/cancel/")

    @rule()
    def staff_begin_it_again(self) -> None:
        work = self.work()
        assume(work is not None)
        assert work is not None
        with contextlib.suppress(byhand.NotNow):
            byhand.retry(operation_id=work.id, actor="ops", reason="again")

    # -- what must hold after every step -------------------------------------------------------------------------------

    @invariant()
    def every_repeat_hears_the_same_202(self) -> None:
        heard: dict[str, set[bytes]] = {}
        for answer in self.answers:
            assert answer.status_code == 202, answer.content
            heard.setdefault(answer.json()["id"], set()).add(answer.content)
        assert all(len(bodies) == 1 for bodies in heard.values())

    @invariant()
    def no_run_is_begun_beyond_the_limit(self) -> None:
        work = self.work()
        assert work is None or work.cycle_attempts <= work.max_attempts

    @invariant()
    def success_is_every_step_applied(self) -> None:
        work = self.work()
        if work is not None and work.result is not None:
            assert len(self.own_effects()) == self.steps

    def own_effects(self) -> set[str]:
        key = self.key()
        mine = (str(key.id), key.generation) if key is not None else None
        return {k for k in self.gate.effects if self.gate.step_of[k][:2] == mine}

    # -- and at last ---------------------------------------------------------------------------------------------------

    def end_all(self) -> None:
        super().end_all()
        for _ in range(12):
            pass_time(LONG)
            jobs.script.clear()
            self.gate.start(_run, lambda _: None)
            self.gate.start(reconciliation.run, lambda _: None)
            while live := [one for one in self.gate.stopped if not one.crashed]:
                self.gate.go_on(live[0], "apply")

    def nobody_is_forgotten(self) -> None:
        """Done, given up, or shown as needing a person; and a "no" that was wrong was raised."""
        key, work = self.key(), self.work()
        if key is not None and work is not None:
            assert key.state in SETTLED or key.needs_person_since is not None, key.state
            assert (key.state == State.COMPLETED) == (
                work.result is not None or work.error is not None
            )
            if work.error is not None and self.own_effects():
                assert Event.objects.filter(kind="late-news", alarming=True).exists()
            if work.result is not None:
                assert Step.objects.filter(applied_at__isnull=False).count() == self.steps
        for one in list(self.gate.stopped):
            self.gate.go_on(one, "not sent")


def _run() -> None:
    with contextlib.suppress(SystemExit):
        runner.run()


PAUSE = 5.5
"""Seconds between two runs: by a drawn pause, or one that may pass by itself, a sequence could not be played again."""


@pytest.fixture
def _other_side(transactional_db: None, nudges: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(RetryPolicy, "pause", lambda *_, **__: PAUSE)
    send, look_up = host.other_side.send, host.other_side.look_up
    yield
    host.other_side.send, host.other_side.look_up = send, look_up  # type: ignore[method-assign]


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("_other_side")
def test_any_sequence_keeps_the_promises_of_deferred_work() -> None:
    explore(Deferred, examples=6, steps=25)


@pytest.mark.chaos
@pytest.mark.timeout(3600)
@pytest.mark.usefixtures("_other_side")
def test_long_sequences_keep_the_promises_of_deferred_work() -> None:
    explore(Deferred, examples=400, steps=50)
