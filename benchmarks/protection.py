"""Measure what protection costs: the same endpoint bare, by hand, and under `@idempotent`.

    python -m project.embedded -m benchmarks.protection [--rounds 40] [--batch 25] [--clients 1]

`floor` is written by hand: the fewest statements that could keep the promise (insert-or-lose, the effect, the answer),
in one transaction on the same connection, without reading the key's syntax, scope or fingerprint.
The variants take turns within each round, so that a noisy machine harms them alike; ratios are of medians, with the
spread between the quartiles of the rounds. CPU is this process's own; WAL and commits are the server's.
"""

import argparse
import json
import statistics
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import django
from django.conf import settings


@dataclass
class Variant:
    """One way to serve the request, and what was measured of it."""

    name: str
    send: Callable[[], int]
    expected: int
    latencies: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    wal: float = 0
    requests: int = 0
    statements: int = 0


def main() -> None:
    """Print one line per variant."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--batch", type=int, default=25, help="requests per variant and round")
    parser.add_argument("--clients", type=int, default=1, help="requests at once")
    options = parser.parse_args()
    django.setup()
    settings.DEBUG = False  # nobody serves with the query log on
    settings.ROOT_URLCONF = "benchmarks.endpoints"
    settings.ALLOWED_HOSTS = ["testserver"]
    settings.IDEMPOTENCY = {**settings.IDEMPOTENCY, "TENANT": None}
    _prepare()
    variants = _variants()
    for variant in variants:
        _count_statements(variant)
        _batch(variant, options.batch, options.clients, keep=False)
    for _ in range(options.rounds):
        for variant in variants:
            _batch(variant, options.batch, options.clients, keep=True)
    _report(variants, options)


def _prepare() -> None:
    from django.contrib.auth.models import User
    from django.core.management import call_command
    from django.db import connection
    from rest_framework.authtoken.models import Token

    call_command("migrate", verbosity=0)
    user, _ = User.objects.get_or_create(username="benchmark")
    Token.objects.get_or_create(user=user, key="benchmark")
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE IF NOT EXISTS benchmark_floor (scope text, operation text, key text, digest bytea, "
            "state text, status int, body bytea, UNIQUE (key, scope, operation))"
        )
        cursor.execute(
            "CREATE TABLE IF NOT EXISTS benchmark_effect (id bigserial PRIMARY KEY, name text)"
        )


def _variants() -> list[Variant]:
    replayed, other = uuid.uuid4().hex, uuid.uuid4().hex
    _post("/idempotent/", replayed)
    _post("/idempotent/", other)
    return [
        Variant("bare", lambda: _post("/bare/", None), 201),
        Variant("floor", lambda: _post("/floor/", uuid.uuid4().hex), 201),
        Variant("idempotent, fresh", lambda: _post("/idempotent/", uuid.uuid4().hex), 201),
        Variant("idempotent, replay", lambda: _post("/idempotent/", replayed), 201),
        Variant("idempotent, other payload", lambda: _post("/idempotent/", other, amount=2), 422),
        Variant("bare + call", lambda: _post("/bare-call/", None), 201),
        Variant("floor + call", lambda: _post("/floor-call/", uuid.uuid4().hex), 201),
        Variant("idempotent + call, fresh", lambda: _post("/call/", uuid.uuid4().hex), 201),
    ]


_handler = threading.local()


def _post(path: str, key: str | None, *, amount: int = 1) -> int:
    """Send one request through the whole of Django, middleware included, without a socket."""
    from django.test.client import ClientHandler
    from rest_framework.test import APIRequestFactory

    if not hasattr(_handler, "it"):
        _handler.it = ClientHandler(enforce_csrf_checks=False)
        _handler.it.load_middleware()
    headers = {"HTTP_AUTHORIZATION": "Token benchmark"}
    if key is not None:
        headers["HTTP_IDEMPOTENCY_KEY"] = key
    body = json.dumps({"amount": amount, "order_id": "o-1", "currency": "EUR", "note": "x" * 40})
    request = APIRequestFactory().post(path, body, content_type="application/json", **headers)
    return int(_handler.it.get_response(request).status_code)


def _count_statements(variant: Variant) -> None:
    from django.db import connection

    def count(execute: Any, sql: str, *rest: Any) -> Any:
        variant.statements += not sql.startswith(("SAVEPOINT", "RELEASE"))
        return execute(sql, *rest)

    with connection.execute_wrapper(count):
        variant.send()


def _batch(variant: Variant, count: int, clients: int, *, keep: bool) -> None:
    before, cpu, began = _wal(), time.process_time(), time.perf_counter()
    if clients == 1:
        latencies = [_timed(variant) for _ in range(count)]
    else:
        with ThreadPoolExecutor(clients) as pool:
            latencies = list(pool.map(lambda _: _timed(variant), range(count)))
    took, spent = time.perf_counter() - began, time.process_time() - cpu
    if keep:
        variant.latencies += latencies
        variant.seconds.append(took / count)
        variant.cpu.append(spent / count)
        variant.wal += _wal() - before
        variant.requests += count


def _timed(variant: Variant) -> float:
    began = time.perf_counter()
    status = variant.send()
    if status != variant.expected:
        raise SystemExit(f"{variant.name} answered {status}, not {variant.expected}")
    return time.perf_counter() - began


def _wal() -> int:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn")
        return int(cursor.fetchone()[0])


def _report(variants: list[Variant], options: argparse.Namespace) -> None:
    print(f"\n{options.rounds} rounds of {options.batch}, {options.clients} client(s) at once\n")
    print(
        "| variant | req/s | p50 ms | p99 ms | time ratio | CPU ms | CPU ratio | statements | WAL bytes |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    bases = {False: variants[0], True: variants[5]}
    for variant in variants:
        base = bases["call" in variant.name]
        quantiles = statistics.quantiles(variant.latencies, n=100)
        print(
            f"| {variant.name} | {1 / statistics.median(variant.seconds):.0f} | {quantiles[49] * 1e3:.2f} "
            f"| {quantiles[98] * 1e3:.2f} | {_ratio(variant.seconds, base.seconds)} "
            f"| {statistics.median(variant.cpu) * 1e3:.2f} | {_ratio(variant.cpu, base.cpu)} "
            f"| {variant.statements} | {variant.wal / variant.requests:.0f} |"
        )


def _ratio(ours: list[float], base: list[float]) -> str:
    """Return the median of the rounds' ratios and the spread between their quartiles."""
    ratios = [mine / theirs for mine, theirs in zip(ours, base, strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    return f"{middle:.2f} ({low:.2f}–{high:.2f})"


if __name__ == "__main__":
    main()
