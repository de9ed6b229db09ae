"""What protection costs in statements, commits and round trips: what the pages about performance say.

The benchmark's own process is counted, on the wire; nothing is timed.
"""

from collections.abc import Iterator
from urllib.parse import quote
from uuid import uuid4

import psycopg
import pytest
from django.conf import LazySettings
from django.db import connection

from benchmarks.host.variants import VARIANTS
from benchmarks.protection import COUNTED, counted
from benchmarks.rig import servers
from benchmarks.rig.wire import Counts

pytestmark = pytest.mark.django_db

# Those of authentication and of the view itself included: `bare` is what is to be taken off.
BARE = {"fresh": Counts(round_trips=4, statements=2, commits=1)}
FLOOR = {
    "fresh": Counts(round_trips=6, statements=4, commits=1),
    "replay": Counts(round_trips=5, statements=3, commits=1),
    "conflict": Counts(round_trips=5, statements=3, commits=1),
}
OURS = {
    "fresh": Counts(round_trips=6, statements=4, commits=1),
    "replay": Counts(round_trips=4, statements=2, commits=1),
    "conflict": Counts(round_trips=5, statements=3, commits=1),
}
OURS_WITH_A_CALL = {
    "fresh": Counts(round_trips=11, statements=7, commits=2),
    "replay": Counts(round_trips=4, statements=2, commits=1),
    "conflict": Counts(round_trips=5, statements=3, commits=1),
}


@pytest.fixture
def new_database() -> Iterator[str]:
    """Yield the address of an empty database on the suite's server."""
    at, name = connection.settings_dict, f"costs_{uuid4().hex}"
    login = f"{quote(at['USER'])}:{quote(at['PASSWORD'])}"
    server = f"postgresql://{login}@{at['HOST']}:{at['PORT']}/postgres"
    yield servers.new_database(server, name)
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.mark.parametrize(
    ("variant", "expected"),
    [
        ("bare", BARE),
        ("floor", FLOOR),
        ("idempotent", OURS),
        ("idempotent + call", OURS_WITH_A_CALL),
    ],
)
def test_each_request_asks_the_database_as_often_as_stated(
    variant: str, expected: dict[str, Counts], new_database: str, settings: LazySettings
) -> None:
    found = counted(VARIANTS[variant], new_database, settings.REDIS_URL)
    assert found == {
        case: Counts(one.round_trips * COUNTED, one.statements * COUNTED, one.commits * COUNTED)
        for case, one in expected.items()
    }
