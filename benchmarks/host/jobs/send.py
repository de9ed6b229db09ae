"""Send jobs: told by standard input how many, as `benchmarks.host.serve` is."""

import os
import time
from importlib import import_module
from typing import Any

from benchmarks.host.serve import obey


class Sender:
    """A process that orders and sends."""

    def __init__(self) -> None:
        os.environ["DJANGO_SETTINGS_MODULE"] = "benchmarks.host.settings"
        import django

        django.setup()
        from django.conf import settings

        if settings.VARIANT.packages == ():
            import_module("benchmarks.host.jobs.celeryapp")
        self._send = settings.VARIANT.found()
        self._flush = _flush if "idempotency" in settings.INSTALLED_APPS else lambda: True
        self._sent = 0

    def prepare(self) -> dict[str, Any]:
        """Make the tables."""
        from django.core.management import call_command
        from django.db import connection

        from benchmarks.host.jobs.work import TABLES

        call_command("migrate", verbosity=0)
        with connection.cursor() as cursor:
            cursor.execute(TABLES)
        return {}

    def send(self, *, count: int, pause: float = 0) -> dict[str, Any]:
        """Order and send, each in a transaction of its own; return seconds, and CPU seconds of this process."""
        from django.db import transaction

        from benchmarks.host.jobs.work import order

        cpu, began = time.process_time(), time.perf_counter()
        for _ in range(count):
            self._sent += 1
            with transaction.atomic():
                order(self._sent)
                self._send(self._sent)
            time.sleep(pause)
        self._flush()
        return {"cpu": time.process_time() - cpu, "seconds": time.perf_counter() - began}


def _flush() -> bool:
    """Publish what is still to be published: it is part of sending, also where a thread of its own does it."""
    from idempotency.operations import wake

    return wake.flush(seconds=60)


if __name__ == "__main__":
    obey(Sender)
