"""One request from its arrival to its answer.

Two commits: on arrival, the request is written down and the fault that strikes it is used up; then
effect, events, remembered answer and status are committed together, before a byte is sent.
"""

from __future__ import annotations

import time
from contextlib import suppress

from payments.simulator import config as configuration
from payments.simulator.admission import (
    Received,
    admit,
    fingerprint_of,
    honoured_key,
    params_of,
    received_late,
)
from payments.simulator.api import errors, lookups, settling
from payments.simulator.api.call import Call
from payments.simulator.api.errors import ApiError
from payments.simulator.api.routes import Route
from payments.simulator.api.settling import NotOpen
from payments.simulator.config import Config
from payments.simulator.faults import queue, sandbox
from payments.simulator.faults.delivery import WHOLE
from payments.simulator.faults.kinds import Applied
from payments.simulator.faults.queue import Fault
from payments.simulator.record import books, keys, late, requests
from payments.simulator.record.keys import Fresh, InUse, Keys, Replay, Reused
from payments.simulator.record.store import Store, Tx
from payments.simulator.webhooks.dispatcher import Dispatcher
from payments.simulator.wire.forms import UnreadableForm
from payments.simulator.wire.http import Answer, Json, Request, json_answer

_NOTHING = Answer(200, b"")


class Forgotten(Exception):
    """A reset came while this request was under way: it has no effect and no answer."""


class Exchange:
    """The gateway's counter: takes requests, gives answers."""

    def __init__(self, *, store: Store, dispatcher: Dispatcher, started_with: Config) -> None:
        """Stand on the record and the webhooks' dispatcher."""
        self._store = store
        self._dispatcher = dispatcher
        self._started_with = started_with
        self._keys = Keys(store)

    def receive_unread(self, request: Request) -> Received | None:
        """Write down a request whose body is not read yet, if a fault strikes it so early."""
        with self._store.transaction() as tx:
            fault = queue.take_unread(tx, request)
            return self._write_down(tx, request, {}, fault) if fault else None

    def receive(self, request: Request) -> Received:
        """Write down a request, and use up the fault that strikes it."""
        unreadable = None
        params: Json = {}
        try:
            params = params_of(request)
        except UnreadableForm as error:
            unreadable = error
        with self._store.transaction() as tx:
            fault = queue.take(
                tx,
                request,
                amount=requests.amount_of(params),
                reference=_reference_of(params),
            )
            fault = fault or sandbox.fault_of(tx, request, params) or WHOLE
            return self._write_down(tx, request, params, fault, unreadable)

    def answer(self, received: Received) -> Answer:
        """Apply the request as its fault allows; return what is to be said.

        Raises:
            Forgotten: the record was reset meanwhile.
        """
        kind = received.fault.kind
        if kind.applied is Applied.NEVER and not kind.kept:
            return self._close(received, _NOTHING)
        try:
            if kind.applied is Applied.LATER:
                return self._postpone(received)
            return self._answer_by_key(received)
        except ApiError as refusal:
            return self._close(received, refusal.answer)

    def unsent(self, received: Received) -> None:
        """Record that not even the status line was sent."""
        with self._store.transaction() as tx:
            requests.note_status(tx, seq=received.seq, status=None)

    def carry_out_late(self) -> None:
        """Apply what is due of the requests whose answers were lost."""
        with self._store.transaction() as tx:
            due = [received_late(row, self._store.epoch) for row in late.due(tx)]
        for received in due:
            with suppress(ApiError, Forgotten):
                self._answer_by_key(received)
            # Its effect dropped it; without one it is over as well.
            with self._store.transaction() as tx:
                late.drop(tx, received.late)

    def settle_old(self) -> None:
        """Let what has been open for the configured time succeed."""
        with self._store.transaction() as tx:
            config = configuration.read(tx, started_with=self._started_with)
            if config.settle_after is None:
                return
            old = books.unfinished(tx, created_before=tx.now - config.settle_after)
        for object_id in old:
            # Decided by somebody else in the meantime: as good.
            with suppress(NotOpen):
                self.settle(object_id, succeeded=True)

    def settle(self, object_id: str, *, succeeded: bool) -> Json:
        """Decide an open payment intent, refund or payout; return it.

        Raises:
            NotOpen: it is unknown, or decided already.
        """
        with self._store.transaction() as tx:
            config = configuration.read(tx, started_with=self._started_with)
            call = Call(tx, config, {}, key=books.key_of(tx, object_id))
            settled = settling.settle(call, object_id, succeeded=succeeded)
        self._send_webhooks(call)
        return settled

    def _write_down(
        self,
        tx: Tx,
        request: Request,
        params: Json,
        fault: Fault,
        unreadable: UnreadableForm | None = None,
    ) -> Received:
        seq = requests.write_down(
            tx,
            method=request.method,
            path=request.path,
            idempotency_key=request.idempotency_key,
            reference=_reference_of(params),
            amount=requests.amount_of(params),
        )
        return Received(
            request, params, seq, self._store.epoch, books.new_id("req"), fault, unreadable
        )

    def _answer_by_key(self, received: Received) -> Answer:
        route, ids = admit(received)
        with self._store.transaction() as tx:
            config = configuration.read(tx, started_with=self._started_with)
        key = honoured_key(received.request, config)
        if key is None:
            return self._execute(received, route, ids, config, key)
        match self._claim(received, key, config):
            case Replay(answer):
                return self._close(received, answer)
            case Reused():
                raise errors.key_reused()
            case InUse():
                raise errors.key_in_use()
            case Fresh():
                try:
                    return self._execute(received, route, ids, config, key)
                finally:
                    self._keys.release(key, epoch=received.epoch)

    def _claim(self, received: Received, key: str, config: Config) -> keys.Claimed:
        return self._keys.claim(
            key=key,
            epoch=received.epoch,
            fingerprint=fingerprint_of(received),
            ttl=config.key_ttl,
            late=received.late,
        )

    def _execute(
        self,
        received: Received,
        route: Route,
        ids: tuple[str, ...],
        config: Config,
        key: str | None,
    ) -> Answer:
        if config.latency and received.late is None:
            time.sleep(config.latency)
        kind = received.fault.kind
        with self._store.transaction() as tx:
            self._require_epoch(received)
            call = Call(
                tx, config, received.params, ids, received.request.idempotency_key,
                received.request_id,
            )  # fmt: skip
            truth, remembered = _NOTHING, True
            if kind.applied is not Applied.NEVER:
                truth, remembered = _run(route, call)
            kept = kind.instead if kind.kept and kind.instead else truth
            if key is not None and remembered:
                keys.remember(
                    tx,
                    key=key,
                    fingerprint=fingerprint_of(received),
                    request_id=received.request_id,
                    answer=kept,
                )
            late.drop(tx, received.late)
            said = _finish(tx, received, truth)
        self._send_webhooks(call)
        return said

    def _postpone(self, received: Received) -> Answer:
        admit(received)
        with self._store.transaction() as tx:
            config = configuration.read(tx, started_with=self._started_with)
        key = honoured_key(received.request, config)
        if key is not None and not isinstance(self._claim(received, key, config), Fresh):
            return self._close(received, _NOTHING)
        try:
            with self._store.transaction() as tx:
                self._require_epoch(received)
                late.postpone(
                    tx, request=received.request, key=key, due=tx.now + received.fault.seconds
                )
                return _finish(tx, received, _NOTHING)
        finally:
            if key is not None:
                self._keys.release(key, epoch=received.epoch)

    def _require_epoch(self, received: Received) -> None:
        if received.epoch != self._store.epoch:
            raise Forgotten

    def _close(self, received: Received, truth: Answer) -> Answer:
        with self._store.transaction() as tx:
            return _finish(tx, received, truth)

    def _send_webhooks(self, call: Call) -> None:
        if call.deliveries and call.config.webhook_mode == "before-answer":
            self._dispatcher.deliver(call.deliveries)
        elif call.deliveries:
            self._dispatcher.nudge()


def _reference_of(params: Json) -> str | None:
    """Return the reference that a request gives its object, or looks for."""
    return requests.reference_of(params) or lookups.reference_sought(params)


def _run(route: Route, call: Call) -> tuple[Answer, bool]:
    """Run an endpoint; return its answer, and whether it had begun."""
    try:
        return json_answer(200, lookups.expand(call, route.endpoint(call))), True
    except ApiError as refusal:
        return refusal.answer, refusal.remembered


def _finish(tx: Tx, received: Received, truth: Answer) -> Answer:
    """Return what is said in the end, its status written down."""
    fault = received.fault
    said = (fault.kind.instead or truth).adding(*fault.headers)
    if fault.kind.by_gateway:
        said = said.adding(("Request-Id", received.request_id))
        if received.request.idempotency_key:
            said = said.adding(("Idempotency-Key", received.request.idempotency_key))
    if received.late is None:
        status = said.status if fault.kind.tells_status else None
        requests.note_status(tx, seq=received.seq, status=status)
    return said
