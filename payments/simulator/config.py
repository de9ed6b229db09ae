"""The gateway's configuration: what it was started with, and what was changed since.

A change is kept in the record until a reset. Everything is read live: shortening `key_ttl` makes
the gateway forget at once, and `lookup_lag` 0 shows at once what was hidden.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

from payments.simulator.control_input import (
    BadControl,
    a_flag,
    a_number,
    a_text,
    a_whole_number,
    an_address,
)
from payments.simulator.record.store import Tx
from payments.simulator.wire.http import Json

WebhookMode = Literal["off", "once", "twice", "reordered", "before-answer"]


@dataclass(frozen=True)
class Config:
    """How the gateway behaves. Durations are seconds.

    `idempotency` false: keys are ignored. `key_ttl`: how long an answer is remembered.
    `lookup_lag`: how long a new object stays hidden from lists and searches. `latency`: before an
    endpoint's effect, its key being in use. `settle_after`: what is processing or pending succeeds
    by itself after so long; None: only when told to. `webhook_attempts`: sends of one event, the
    first included, `webhook_backoff` doubling between them.
    """

    idempotency: bool = True
    key_ttl: float = 86400.0
    lookup_lag: float = 0.0
    latency: float = 0.0
    settle_after: float | None = None
    webhooks: WebhookMode | None = None
    webhook_url: str | None = None
    webhook_secret: str = "whsec_simulator"  # noqa: S105 - a stand-in gateway has no secret
    webhook_timeout: float = 10.0
    webhook_attempts: int = 5
    webhook_backoff: float = 0.5

    @property
    def webhook_mode(self) -> WebhookMode:
        """Return the mode in force: once as soon as there is an address, unless told otherwise."""
        return self.webhooks or ("once" if self.webhook_url else "off")

    def as_json(self) -> Json:
        """Return the configuration in force."""
        return {**asdict(self), "webhooks": self.webhook_mode}


def read(tx: Tx, *, started_with: Config) -> Config:
    """Return the configuration in force."""
    rows = tx.rows("SELECT name, value FROM config")
    return replace(started_with, **{row["name"]: json.loads(row["value"]) for row in rows})


def change(tx: Tx, asked: Json) -> None:
    """Change the fields that are given, all or none.

    Raises:
        BadControl: a field is unknown, or its value cannot be used.
    """
    for name in asked:
        if name not in _READERS:
            raise BadControl(name, f"unknown; known are {', '.join(_READERS)}")
    values = {name: _READERS[name](value, name) for name, value in asked.items()}
    for name, value in values.items():
        tx.write(
            "INSERT OR REPLACE INTO config (name, value) VALUES (?, ?)", name, json.dumps(value)
        )


def _optional_number(value: object, field: str) -> float | None:
    return None if value is None else a_number(value, field)


def _a_mode(value: object, field: str) -> str:
    modes = get_args(WebhookMode)
    if value not in modes:
        raise BadControl(field, f"must be one of {', '.join(modes)}")
    return str(value)


def _optional_address(value: object, field: str) -> str | None:
    return None if value is None else an_address(value, field)


def _attempts(value: object, field: str) -> int:
    return a_whole_number(value, field, minimum=1)


_READERS: dict[str, Callable[[object, str], Any]] = {
    "idempotency": a_flag,
    "key_ttl": a_number,
    "lookup_lag": a_number,
    "latency": a_number,
    "settle_after": _optional_number,
    "webhooks": _a_mode,
    "webhook_url": _optional_address,
    "webhook_secret": a_text,
    "webhook_timeout": a_number,
    "webhook_attempts": _attempts,
    "webhook_backoff": a_number,
}
