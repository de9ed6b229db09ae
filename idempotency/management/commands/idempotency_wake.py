"""Find deferred work that is due, from the rows alone, and have it run: the sweep outside Celery."""

import signal
import threading
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db import DatabaseError, InterfaceError, close_old_connections

from idempotency.conf import conf
from idempotency.management.base import DatabaseCommand
from idempotency.operations import heartbeat, runner, wake


class Command(DatabaseCommand):
    """Nudge the workers, or with --run do the work here."""

    help = "Finds deferred work that is due and nudges the workers; with --run does it here, without Celery."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add --run, --loop and --every."""
        parser.add_argument("--run", action="store_true", help="do the work in this process")
        parser.add_argument("--loop", action="store_true", help="go on until SIGTERM or SIGINT")
        parser.add_argument(
            "--every", type=float, help="seconds between two sweeps of --loop; default: WAKE_EVERY"
        )

    def handle(self, *_: Any, **options: Any) -> None:
        """Sweep once, or until stopped; work that has begun is always ended first.

        Raises:
            CommandError: --every is no time to wait.
        """
        every = conf.WAKE_EVERY if options["every"] is None else options["every"]
        if not 0 < every <= threading.TIMEOUT_MAX:
            raise CommandError("--every must be a number of seconds above 0")
        stop = threading.Event()
        if options["loop"]:
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: stop.set())
        while True:
            self._sweep(stop, run=options["run"], loop=options["loop"])
            if not options["loop"] or stop.wait(every):
                return

    def _sweep(self, stop: threading.Event, *, run: bool, loop: bool) -> None:
        # A loop outside request and task would keep a connection that the server has ended.
        close_old_connections()
        try:
            self._work(stop) if run else self._nudge()
        except (DatabaseError, InterfaceError) as error:
            if not loop:
                raise
            self.stderr.write(f"The database cannot be asked, the next sweep will: {error}")

    def _work(self, stop: threading.Event) -> None:
        ran = 0
        while not stop.is_set() and (some := runner.drain(stop=stop.is_set)):
            close_old_connections()
            ran += some
        heartbeat.beat(name="wake", detail={"ran": ran})
        if ran:
            self.stdout.write(f"{ran} run")

    def _nudge(self) -> None:
        nudges = wake.sweep()
        heartbeat.beat(name="wake", detail={"nudges": nudges})
        if nudges and not wake.flush(seconds=2):
            self.stderr.write("The broker took too long: not every nudge is published.")
        elif nudges:
            self.stdout.write(f"{nudges} nudged")
