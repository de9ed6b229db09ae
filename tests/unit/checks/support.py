"""What the tests of the checks share."""

from django.core.checks import CheckMessage


def ids(messages: list[CheckMessage]) -> list[str]:
    """Return the numbers of the messages; each must say what to do."""
    assert all(message.hint for message in messages)
    return [str(message.id).removeprefix("idempotency.") for message in messages]
