"""The gateway as a running thing: its sockets, its background work, its end."""

from __future__ import annotations

import logging
import socketserver
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from payments.simulator.config import Config
from payments.simulator.connection import converse
from payments.simulator.control import Control
from payments.simulator.exchange import Exchange
from payments.simulator.record.store import Clock, Store
from payments.simulator.webhooks.dispatcher import Dispatcher

_AFTERWARDS_EVERY = 0.05

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Settings:
    """How to start a gateway. Port 0 takes any free one; `config` holds until changed or reset."""

    data_dir: Path
    host: str = "127.0.0.1"
    port: int = 12111
    config: Config = field(default_factory=Config)


class Simulator:
    """A gateway in this process: `start`, then requests at `url`, then `stop`."""

    def __init__(self, settings: Settings, *, clock: Clock = time.time) -> None:
        """Open the record and the listening socket.

        Raises:
            DirectoryInUse: another gateway keeps its record there.
            OSError: the address cannot be listened on.
        """
        self._store = Store(settings.data_dir, clock=clock)
        self._dispatcher = Dispatcher(store=self._store, started_with=settings.config, clock=clock)
        self._exchange = Exchange(
            store=self._store, dispatcher=self._dispatcher, started_with=settings.config
        )
        control = Control(
            store=self._store,
            exchange=self._exchange,
            dispatcher=self._dispatcher,
            started_with=settings.config,
        )
        try:
            self._server = _Server(settings, exchange=self._exchange, control=control)
        except OSError:
            self._store.close()
            raise
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True),
            threading.Thread(target=self._work_afterwards, daemon=True),
        ]

    @property
    def url(self) -> str:
        """Return the address to send requests to."""
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}"

    def start(self) -> None:
        """Serve, and go on with what an earlier process left to do."""
        self._dispatcher.start()
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop at once: requests under way are cut off; what is committed stays."""
        self._stopping.set()
        self._server.shutdown()
        self._server.server_close()
        for thread in self._threads:
            thread.join()
        self._dispatcher.stop()
        self._store.close()

    def _work_afterwards(self) -> None:
        while not self._stopping.wait(_AFTERWARDS_EVERY):
            self._exchange.carry_out_late()
            self._exchange.settle_old()


class _Server(socketserver.ThreadingTCPServer):
    """A thread for each connection."""

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    request_queue_size = 1024

    def __init__(self, settings: Settings, *, exchange: Exchange, control: Control) -> None:
        self.exchange = exchange
        self.control = control
        super().__init__((settings.host, settings.port), _Connection)


class _Connection(socketserver.BaseRequestHandler):
    server: _Server

    def handle(self) -> None:
        converse(self.request, exchange=self.server.exchange, control=self.server.control)
