"""What a replay is, said as an assertion."""

from typing import Any

from idempotency.http.response import REPLAYED

SAME = ("Content-Type", "Location", "Content-Location", "Content-Language", "ETag", "Link")
NEVER = ("Set-Cookie", "WWW-Authenticate")


def assert_replayed(first: Any, second: Any) -> None:
    """Assert that the second answer is the first one again (R16): same status, bytes and headers, and marked.

    Takes responses of Django's and DRF's test clients, of `requests` and of httpx.

    Raises: AssertionError, naming what differs.
    """
    require(
        second.headers.get(REPLAYED) == "true",
        f"the second answer is no replay: {second.status_code} {second.content[:500]!r}",
    )
    require(
        second.status_code == first.status_code,
        f"the replay has status {second.status_code}, the first answer {first.status_code}",
    )
    require(
        second.content == first.content,
        f"the replay's body differs: {second.content[:500]!r}, at first {first.content[:500]!r}",
    )
    for name in SAME:
        one, two = first.headers.get(name), second.headers.get(name)
        require(one == two, f"the replay's {name} is {two!r}, the first answer's {one!r}")
    require(second.headers.get("Cache-Control") == "no-store", "a cache may keep the replay")
    # A middleware may add its own to each exchange; those of the first are not to come again.
    for name in NEVER:
        value = second.headers.get(name)
        require(value is None or value != first.headers.get(name), f"the replay hands out {name}")


def require(holds: bool, otherwise: str) -> None:
    """Raise an AssertionError where it does not hold; unlike `assert`, under every way to run Python."""
    if not holds:
        raise AssertionError(otherwise)
