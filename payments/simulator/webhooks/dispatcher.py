"""Delivering events: in the background, or in the thread of the request that caused them."""

from __future__ import annotations

import http.client
import logging
import threading
from collections.abc import Iterable
from urllib.parse import urlsplit

from payments.simulator import config as configuration
from payments.simulator.config import Config
from payments.simulator.record.store import Clock, RecordClosed, Row, Store
from payments.simulator.webhooks import events
from payments.simulator.webhooks.signing import signature

_LANES_AT_ONCE = 8
_LONGEST_WAIT = 1.0

logger = logging.getLogger(__name__)


class Dispatcher:
    """Sends what is due. Deliveries of one lane go one after another, lanes side by side."""

    def __init__(self, *, store: Store, started_with: Config, clock: Clock) -> None:
        """Stand on the record; nothing is sent before `start`."""
        self._store = store
        self._started_with = started_with
        self._clock = clock
        self._busy: set[str] = set()
        self._lock = threading.Lock()
        self._nudge = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="webhook-dispatcher", daemon=True)

    def start(self) -> None:
        """Begin with whatever an earlier process left undelivered."""
        self._thread.start()

    def stop(self) -> None:
        """Send nothing more; a delivery under way stays due and is sent after a restart."""
        self._stopping.set()
        self._nudge.set()
        self._thread.join()

    def nudge(self) -> None:
        """Say that something may have become due."""
        self._nudge.set()

    def deliver(self, deliveries: Iterable[int]) -> None:
        """Send these now, in this order, in the caller's thread."""
        for delivery in deliveries:
            if not self._stopping.is_set():
                self._deliver_one(delivery)

    def send(self, payload: bytes, *, config: Config, age: float = 0.0) -> int | None:
        """Send one event once; return the receiver's status, or None: no answer.

        Args:
            payload: the raw body.
            config: gives address, secret and timeout.
            age: seconds that the signature is old.
        """
        if config.webhook_url is None:
            return None
        stamp = signature(payload, secret=config.webhook_secret, timestamp=int(self._clock() - age))
        return _post(config.webhook_url, payload, stamp, timeout=config.webhook_timeout)

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._nudge.clear()
            with self._store.transaction() as tx:
                due = events.due_deliveries(tx)
                next_due = events.next_due(tx)
                now = tx.now
            self._begin_lanes(due)
            wait = _LONGEST_WAIT if next_due is None else max(0.02, next_due - now)
            self._nudge.wait(min(wait, _LONGEST_WAIT))

    def _begin_lanes(self, due: Iterable[Row]) -> None:
        lanes: dict[str, list[int]] = {}
        for row in due:
            lane = lanes.setdefault(row["lane"], [])
            lane.insert(0 if row["newest_first"] else len(lane), row["seq"])
        for name, deliveries in lanes.items():
            with self._lock:
                if name in self._busy or len(self._busy) >= _LANES_AT_ONCE:
                    continue
                self._busy.add(name)
            # A daemon: a receiver that keeps silent must not delay the end of the process.
            threading.Thread(target=self._run_lane, args=(name, deliveries), daemon=True).start()

    def _run_lane(self, name: str, deliveries: list[int]) -> None:
        try:
            self.deliver(deliveries)
        except RecordClosed:
            logger.info("stopped in the middle of a delivery: it stays due")
        finally:
            with self._lock:
                self._busy.discard(name)
            self._nudge.set()

    def _deliver_one(self, delivery: int) -> None:
        with self._store.transaction() as tx:
            payload = events.payload(tx, delivery)
            config = configuration.read(tx, started_with=self._started_with)
        if payload is None or config.webhook_url is None:
            return
        status = self.send(payload, config=config)
        with self._store.transaction() as tx:
            events.record_attempt(tx, config=config, delivery=delivery, status=status)


def _post(url: str, payload: bytes, stamp: str, *, timeout: float) -> int | None:
    parts = urlsplit(url)
    connect = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = connect(parts.hostname or "", parts.port, timeout=timeout)
    headers = {
        "Content-Type": "application/json; charset=utf-8",
        "Stripe-Signature": stamp,
        "User-Agent": "payments-simulator",
    }
    target = parts.path or "/"
    try:
        connection.request(
            "POST", f"{target}?{parts.query}" if parts.query else target, payload, headers
        )
        return connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        logger.info("webhook not delivered to %s: %s", url, error)
        return None
    finally:
        connection.close()
