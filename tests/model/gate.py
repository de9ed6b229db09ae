"""Claimants of the real ledger, stopped inside their outside call until the test says how it ends."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django.db import connection

from idempotency.exceptions import CallFailed, CallRejected, CallUnknown
from idempotency.models import Step
from idempotency.types import Absent, Applied, LookUp, OpenStep, OutsideRequest, OutsideResult

PATIENCE = 30.0


@dataclass
class Stopped:
    """One process inside a call: a send or a look-up."""

    request: OutsideRequest | None
    token: int = 0
    go: threading.Event = field(default_factory=threading.Event)
    word: str = ""
    crashed: bool = False


@dataclass
class Message:
    """A request on the wire that nobody waits for any more."""

    downstream_key: str
    age: float = 0


class Gate:
    """The other side of every outside call: it keeps books, and lets nobody through by itself."""

    def __init__(self, *, keyed: bool) -> None:
        self.keyed = keyed
        self.effects: list[str] = []
        self.declined: set[str] = set()
        self.wire: list[Message] = []
        self.stopped: list[Stopped] = []
        self.step_of: dict[str, tuple[str, int, str]] = {}
        self.at_work = 0
        self.moved = threading.Condition()

    # -- threads -------------------------------------------------------------------------------------------------------

    def start(self, work: Callable[[], Any], done: Callable[[Any], None]) -> None:
        """Run it in a thread of its own, until it has ended or is stopped inside a call."""

        def run() -> None:
            try:
                result = work()
            finally:
                connection.close()
            done(result)
            with self.moved:
                self.at_work -= 1
                self.moved.notify_all()

        with self.moved:
            self.at_work += 1
        threading.Thread(target=run, daemon=True).start()
        self.settle()

    def settle(self) -> None:
        with self.moved:
            quiet = self.moved.wait_for(lambda: self.at_work == len(self.stopped), PATIENCE)
        assert quiet, "a claimant neither ended nor called outside"

    def go_on(self, one: Stopped, word: str) -> None:
        with self.moved:
            one.word = word
            self.stopped.remove(one)
            one.go.set()
        self.settle()

    def _stop(self, one: Stopped) -> str:
        with self.moved:
            self.stopped.append(one)
            self.moved.notify_all()
        assert one.go.wait(PATIENCE * 10)
        return one.word

    # -- the port ------------------------------------------------------------------------------------------------------

    def send(self, request: OutsideRequest) -> OutsideResult:
        key = request.downstream_key
        row = Step.objects.get(downstream_key=key)
        self.step_of[key] = (str(row.key_id), row.generation, row.name)
        token = row.senders.latest("id").token
        match self._stop(Stopped(request, token)):
            case "apply":
                self.apply(key)
            case "apply and lose":
                self.apply(key)
                raise CallUnknown("the answer was lost")
            case "lose":
                self.wire.append(Message(key))
                raise CallUnknown("timed out")
            case "not sent":
                raise CallFailed("refused", sent=False)
            case "refuse":
                raise CallFailed("stated: not executed", sent=True)
            case "decline" if key not in self.effects:
                self.declined.add(key)
        if key in self.declined:
            raise CallRejected("no", code="card_declined")
        return OutsideResult(f"ref-{key[:8]}", {"status": "succeeded"})

    def look_up(self, step: OpenStep) -> LookUp:
        """Read the books now; the answer arrives when the test says so."""
        key = step.downstream_key
        found = key in self.effects
        if threading.current_thread() is not threading.main_thread():
            self._stop(Stopped(None))
        if found:
            return Applied(OutsideResult(f"ref-{key[:8]}", {"status": "succeeded"}))
        return Absent()

    def apply(self, key: str) -> None:
        if not (self.keyed and (key in self.effects or key in self.declined)):
            self.effects.append(key)

    # -- the wire ------------------------------------------------------------------------------------------------------

    def arrives(self, message: Message, *, applied: bool) -> None:
        self.wire.remove(message)
        if applied:
            self.apply(message.downstream_key)
