"""What its operations do. A mark is a row of `auth.Group`, one more for each time that a handler got so far."""

import os
import signal
import time
import uuid
from typing import Any

from django.contrib.auth.models import Group

from idempotency.exceptions import TemporaryFailure
from idempotency.ledger import Claim
from idempotency.operations import operation


@operation("poison.mark")
def mark(*, claim: Claim, input: Any) -> Any:  # noqa: A002
    """Leave a mark."""
    Group.objects.create(name=f"{claim.id}/{uuid.uuid4().hex}")
    return {"marked": True}


@operation("poison.kill")
def kill(*, claim: Claim, input: Any) -> Any:  # noqa: A002
    """Kill the process that runs it, after a mark that is not committed."""
    Group.objects.create(name=f"{claim.id}/{uuid.uuid4().hex}")
    os.kill(os.getpid(), signal.SIGKILL)


@operation("poison.sleep")
def sleep(*, claim: Claim, input: Any) -> Any:  # noqa: A002
    """Sleep before the mark."""
    time.sleep(input["seconds"])
    return mark(claim=claim, input=input)


@operation("poison.fail")
def fail(*, claim: Claim, input: Any) -> Any:  # noqa: A002
    """Never succeed."""
    raise TemporaryFailure("not today")
