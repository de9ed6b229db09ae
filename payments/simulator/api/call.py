"""One call of an endpoint: its input, and what an endpoint may do."""

from __future__ import annotations

from dataclasses import dataclass, field

from payments.simulator.config import Config
from payments.simulator.record import books
from payments.simulator.record.store import Tx
from payments.simulator.webhooks import events
from payments.simulator.wire.http import Json


@dataclass(frozen=True)
class Call:
    """An endpoint's input, inside the transaction that commits its effect and its answer.

    `args` are the path's variable parts; `key` is the idempotency key as sent, honoured or not;
    `deliveries` collects the webhooks to send.
    """

    tx: Tx
    config: Config
    params: Json
    args: tuple[str, ...] = ()
    key: str | None = None
    request_id: str | None = None
    deliveries: list[int] = field(default_factory=list)

    @property
    def now(self) -> float:
        """Return the gateway's time."""
        return self.tx.now

    def save(self, thing: Json) -> None:
        """Write an object, new or changed."""
        books.save(self.tx, thing, idempotency_key=self.key)

    def move_money(self, thing: Json, *, kind: books.EffectKind, amount: int) -> None:
        """Record that an object's money has moved."""
        books.move_money(self.tx, thing, kind=kind, amount=amount, key=self.key)

    def announce(self, event_type: str, thing: Json) -> None:
        """Write an event about an object as it now stands."""
        self.deliveries.extend(
            events.write_event(
                self.tx,
                config=self.config,
                event_type=event_type,
                thing=thing,
                request_id=self.request_id,
                key=self.key,
            )
        )
