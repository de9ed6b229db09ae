"""The control routes, for tests: `/_sim/…`. They are neither logged nor struck by faults."""

from __future__ import annotations

from collections.abc import Callable

from payments.simulator import config as configuration
from payments.simulator.api.settling import NotOpen
from payments.simulator.config import Config
from payments.simulator.control_input import BadControl, a_number, a_text, an_object, only
from payments.simulator.exchange import Exchange
from payments.simulator.faults import queue
from payments.simulator.record import books, requests
from payments.simulator.record.store import Store
from payments.simulator.webhooks import events
from payments.simulator.webhooks.dispatcher import Dispatcher
from payments.simulator.wire.http import Answer, Json, Request, json_answer

PREFIX = "/_sim/"


class Control:
    """What tests may ask of the gateway behind its back."""

    def __init__(
        self, *, store: Store, exchange: Exchange, dispatcher: Dispatcher, started_with: Config
    ) -> None:
        """Stand on the gateway's parts."""
        self._store = store
        self._exchange = exchange
        self._dispatcher = dispatcher
        self._started_with = started_with
        self._routes: dict[tuple[str, str], Callable[[Json], object]] = {
            ("POST", "/_sim/reset"): self._reset,
            ("GET", "/_sim/config"): self._config,
            ("PUT", "/_sim/config"): self._change_config,
            ("GET", "/_sim/faults"): self._faults,
            ("POST", "/_sim/faults"): self._add_fault,
            ("DELETE", "/_sim/faults"): self._forget_faults,
            ("GET", "/_sim/effects"): self._effects,
            ("GET", "/_sim/requests"): self._requests,
            ("GET", "/_sim/webhooks"): self._events,
            ("POST", "/_sim/webhooks"): self._act_on_webhooks,
        }

    def answer(self, request: Request) -> Answer:
        """Do what is asked, or say which field cannot be used."""
        route = self._routes.get((request.method, request.path))
        if route is None:
            served = ", ".join(f"{method} {path}" for method, path in self._routes)
            return _refusal(404, "path", f"not served; served are {served}")
        try:
            return json_answer(200, route(an_object(request.body)))
        except BadControl as error:
            return _refusal(400, error.field, str(error))

    def _reset(self, asked: Json) -> Json:
        only(asked)
        self._store.forget_everything()
        return {}

    def _config(self, _: Json) -> Json:
        return self._read_config().as_json()

    def _change_config(self, asked: Json) -> Json:
        with self._store.transaction() as tx:
            configuration.change(tx, asked)
        self._dispatcher.nudge()
        return self._read_config().as_json()

    def _faults(self, _: Json) -> list[Json]:
        with self._store.transaction() as tx:
            return queue.listed(tx)

    def _add_fault(self, asked: Json) -> Json:
        with self._store.transaction() as tx:
            return queue.add(tx, asked)

    def _forget_faults(self, asked: Json) -> Json:
        only(asked)
        with self._store.transaction() as tx:
            return {"forgotten": queue.forget(tx)}

    def _effects(self, _: Json) -> list[Json]:
        with self._store.transaction() as tx:
            return books.all_effects(tx)

    def _requests(self, _: Json) -> list[Json]:
        with self._store.transaction() as tx:
            return requests.all_requests(tx)

    def _events(self, _: Json) -> list[Json]:
        with self._store.transaction() as tx:
            return events.all_events(tx)

    def _act_on_webhooks(self, asked: Json) -> Json:
        """Do one of `{resend, age?}`, `{send: "pending"}` and `{settle, as}`."""
        if "resend" in asked:
            only(asked, "resend", "age")
            return self._resend(asked)
        if "settle" in asked:
            only(asked, "settle", "as")
            return self._settle(asked)
        only(asked, "send", "resend", "settle")
        if asked.get("send") != "pending":
            raise BadControl("send", 'must be "pending"; or give resend, or settle')
        with self._store.transaction() as tx:
            due = events.make_due(tx)
        self._dispatcher.nudge()
        return {"due": due}

    def _resend(self, asked: Json) -> Json:
        event_id = a_text(asked["resend"], "resend")
        age = a_number(asked.get("age", 0), "age")
        with self._store.transaction() as tx:
            payload = events.body_of(tx, event_id)
        config = self._read_config()
        if payload is None:
            raise BadControl("resend", f"there is no event {event_id}")
        if config.webhook_url is None:
            raise BadControl("resend", "there is no webhook_url to send it to")
        return {"status": self._dispatcher.send(payload, config=config, age=age)}

    def _settle(self, asked: Json) -> Json:
        outcome = asked.get("as")
        if outcome not in ("succeeded", "failed"):
            raise BadControl("as", "must be succeeded or failed")
        try:
            return self._exchange.settle(
                a_text(asked["settle"], "settle"), succeeded=outcome == "succeeded"
            )
        except NotOpen as error:
            raise BadControl("settle", str(error)) from error

    def _read_config(self) -> Config:
        with self._store.transaction() as tx:
            return configuration.read(tx, started_with=self._started_with)


def _refusal(status: int, field: str, message: str) -> Answer:
    return json_answer(status, {"error": {"field": field, "message": message}})
