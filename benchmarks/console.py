"""Measure the console's pages on a ledger with many rows, each beside an empty page of Django's admin.

    python -m project.embedded -m benchmarks.console [--rows 1000000] [--rounds 15]

The pages take turns with the empty one, so that a noisy machine harms them alike: the ratio is that of two neighbours,
its median with the spread between the quartiles of the rounds. Times are of the whole of Django, middleware and
templates included, without a socket; CPU is this process's own. On a busy machine read the ratio and the fastest.
Rows are filled only where there are fewer than asked for: run it with `DATABASE_URL` of a server of your own to fill
once and measure often.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import django

from benchmarks.rig import figures

TARGETS = {1_000_000: 150.0, 10_000_000: 300.0}
"""Milliseconds that a page may take, by the number of rows."""


@dataclass
class Page:
    """One page, and how long it took."""

    name: str
    address: str
    seconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)


def main() -> None:
    """Print one line per page, and which are over the target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    django.setup()
    _prepare(options.rows)
    get = _visitor()
    empty, pages = Page("empty page of Django's admin", "/admin/auth/group/"), _pages()
    for page in (empty, *pages):
        get(page.address)
    for _ in range(options.rounds):
        for page in pages:
            _time(get, empty)
            _time(get, page)
    _report(empty, pages, options)


def _prepare(rows: int) -> None:
    from django.conf import settings
    from django.contrib.auth.models import Group, User
    from django.core.management import call_command
    from django.db import connection

    from tests.support.filled import fill

    settings.DEBUG = False  # nobody serves with the query log on
    settings.ALLOWED_HOSTS = ["testserver"]
    call_command("migrate", verbosity=0)
    Group.objects.all().delete()
    User.objects.get_or_create(
        username="benchmark", defaults={"is_staff": True, "is_superuser": True}
    )
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM (SELECT FROM idempotency_key LIMIT %s) AS k", [rows])
        (there,) = cursor.fetchone()
        if there < rows:
            began = time.perf_counter()
            fill(rows=rows)
            connection.ensure_connection()
            with connection.cursor() as other:
                # What autovacuum does in the first minutes of such a table's life.
                other.execute("SET statement_timeout = 0")
                other.execute(
                    "VACUUM (ANALYZE) idempotency_key, idempotency_step, idempotency_event"
                )
            print(f"filled {rows:,} keys in {time.perf_counter() - began:.0f} s")


def _visitor() -> Callable[[str], None]:
    from django.contrib.auth.models import User
    from django.test import Client

    client = Client()
    client.force_login(User.objects.get(username="benchmark"))

    def get(address: str) -> None:
        status = client.get(address).status_code
        if status != 200:
            raise SystemExit(f"{address} answered {status}")

    return get


def _pages() -> list[Page]:
    from idempotency.models import Event, Key

    key, alarm = Key.objects.get(key="key-777"), Event.objects.filter(alarming=True).first()
    keys, work, events = (f"/admin/idempotency/{model}/" for model in ("key", "operation", "event"))
    return [
        Page("overview", "/admin/idempotency/heartbeat/"),
        Page("keys, open", keys),
        Page("keys, need a person", f"{keys}?state=person"),
        Page("keys, completed", f"{keys}?state=completed"),
        Page("keys, any state, last day", f"{keys}?state=all&seen=day"),
        Page("keys, page 150", f"{keys}?state=completed&p=150"),
        Page("search: order", f"{keys}?q=order-777"),
        Page("search: gateway reference", f"{keys}?q=pi-key-777"),
        Page("search: request id", f"{keys}?q=req-777"),
        Page("search: nothing found", f"{keys}?q=order+no-such-order"),
        Page("deferred work, open", work),
        Page("deferred work, ended with an error", f"{work}?state=failed"),
        Page("events", events),
        Page("events, alarms", f"{events}?alarming=open"),
        Page("one key", f"{keys}{key.pk}/change/"),
        Page("settling a key", f"{keys}{key.pk}/act/settle/"),
        Page("asking about many", f"{keys}many/ask/?state=open"),
        *([Page("one event", f"{events}{alarm.pk}/change/")] if alarm else []),
    ]


def _time(get: Callable[[str], None], page: Page) -> None:
    cpu, began = time.process_time(), time.perf_counter()
    get(page.address)
    page.seconds.append(time.perf_counter() - began)
    page.cpu.append(time.process_time() - cpu)


def _report(empty: Page, pages: list[Page], options: argparse.Namespace) -> None:
    print(f"\n{options.rows:,} keys, {options.rounds} rounds\n")
    print("| page | fastest ms | median ms | × the empty page | CPU ms |")
    print("|---|---|---|---|---|")
    print(f"| {empty.name} | {_ms(empty.seconds)} | 1 | {_median(empty.cpu):.0f} |")
    for number, page in enumerate(pages):
        beside = empty.seconds[number :: len(pages)]
        ratio = figures.ratio(page.seconds, beside)
        print(f"| {page.name} | {_ms(page.seconds)} | {ratio} | {_median(page.cpu):.0f} |")
    target = TARGETS.get(options.rows)
    if target is not None:
        slow = [page.name for page in pages if _median(page.seconds) > target]
        print(f"\nOver {target:.0f} ms: {', '.join(slow) or 'none'}.")


def _median(seconds: list[float]) -> float:
    return statistics.median(seconds) * 1e3


def _ms(seconds: list[float]) -> str:
    return f"{min(seconds) * 1e3:.0f} | {_median(seconds):.0f}"


if __name__ == "__main__":
    main()
