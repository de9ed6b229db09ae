"""Serve the endpoint without a socket: be told by standard input how many requests of which kind, measure, report.

One JSON object a line: `{"do": "send", "case": "fresh", "count": 25, "clients": 8}`.
"""

import gc
import io
import itertools
import json
import os
import random
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

KEYS = 50
"""As many keys are repeated in turn, so that simultaneous repeats are not all of one row."""


class Host:
    """The project, loaded, and what it can be told to do."""

    def __init__(self) -> None:
        os.environ["DJANGO_SETTINGS_MODULE"] = "benchmarks.host.settings"
        from django.core.wsgi import get_wsgi_application

        self._application = get_wsgi_application()
        from django.conf import settings

        header = settings.VARIANT.header
        self._header = f"HTTP_{header.upper().replace('-', '_')}"
        self._pools: dict[int, ThreadPoolExecutor] = {}
        self._seen = [str(uuid.uuid4()) for _ in range(KEYS)]

    def prepare(self) -> dict[str, Any]:
        """Make the tables and the caller."""
        from django.conf import settings
        from django.contrib.auth.models import User
        from django.core.management import call_command
        from django.db import connection
        from rest_framework.authtoken.models import Token

        from benchmarks.host import floor, work

        call_command("migrate", verbosity=0)
        with connection.cursor() as cursor:
            cursor.execute(work.TABLE)
            cursor.execute(floor.TABLE)
        user, _ = User.objects.get_or_create(username="benchmark")
        Token.objects.get_or_create(user=user, key="benchmark")
        settings.VARIANT.prepared()
        return {}

    def send(
        self, *, case: str, count: int, clients: int = 1, keys: list[str] | None = None
    ) -> dict[str, Any]:
        """Serve `count` requests, `clients` at once; return seconds, CPU seconds of this process and latencies.

        `keys` are repeated instead of those that `seed` sent.
        """
        if case == "fresh":
            keys = [str(uuid.uuid4()) for _ in range(count)]
        else:
            keys = list(itertools.islice(itertools.cycle(keys or self._seen), count))
        amounts = [random.randrange(2, 10**6) if case == "conflict" else 1 for _ in keys]
        cpu, began = time.process_time(), time.perf_counter()
        if clients == 1:
            answers = list(map(self._post, keys, amounts))
        else:
            answers = list(self._pool(clients).map(self._post, keys, amounts))
        took, spent = time.perf_counter() - began, time.process_time() - cpu
        return {
            "seconds": took,
            "cpu": spent,
            "latencies": [seconds for _, seconds in answers],
            "answers": Counter(status for status, _ in answers),
        }

    def seed(self) -> dict[str, Any]:
        """Send each key that is going to be repeated, and keep what is loaded from Python's collector.

        Looking through all of it takes a tenth of a second, and hits whichever case comes then.
        """
        for key in self._seen:
            self._post(key, 1)
        gc.collect()
        gc.freeze()
        return {}

    def purge(self, *, seconds: float, key_ttl: float, result_ttl: float) -> dict[str, Any]:
        """Forget what is older than that, until nothing is or the seconds are over; return how much that was."""
        from dataclasses import asdict

        from django.test import override_settings

        from idempotency.ledger.purge import purge

        began = time.perf_counter()
        with override_settings(IDEMPOTENCY={"KEY_TTL": key_ttl, "RESULT_TTL": result_ttl}):
            purged = asdict(purge(seconds=seconds))
        return purged | {"seconds": time.perf_counter() - began}

    def _pool(self, clients: int) -> ThreadPoolExecutor:
        # Kept: its threads keep their connections, as those of a web server do.
        return self._pools.setdefault(clients, ThreadPoolExecutor(clients))

    def _post(self, key: str, amount: int) -> tuple[str, float]:
        """Send one request through the whole of Django; return its status and how long it took."""
        began = time.perf_counter()
        body = json.dumps(
            {"amount": amount, "order_id": "o-1", "currency": "EUR", "note": "x" * 40}
        ).encode()
        environ = {
            "REQUEST_METHOD": "POST",
            "PATH_INFO": "/orders/",
            "SCRIPT_NAME": "",
            "QUERY_STRING": "",
            "SERVER_NAME": "testserver",
            "SERVER_PORT": "80",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "CONTENT_TYPE": "application/json",
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_AUTHORIZATION": "Token benchmark",
            self._header: key,
            "wsgi.input": io.BytesIO(body),
            "wsgi.errors": sys.stderr,
            "wsgi.url_scheme": "http",
            "wsgi.version": (1, 0),
            "wsgi.multithread": True,
            "wsgi.multiprocess": True,
            "wsgi.run_once": False,
        }
        told: list[str] = []
        response = self._application(environ, lambda status, headers, *_: told.append(status))
        b"".join(response)
        response.close()
        return told[0][:3], time.perf_counter() - began


def obey(make: Callable[[], object]) -> None:
    """Do what standard input asks of the object, and report on standard output, until nothing more is asked."""
    reports, sys.stdout = sys.stdout, sys.stderr
    host = make()
    for line in sys.stdin:
        order = json.loads(line)
        report = getattr(host, order.pop("do"))(**order)
        print(json.dumps(report), file=reports, flush=True)


if __name__ == "__main__":
    obey(Host)
