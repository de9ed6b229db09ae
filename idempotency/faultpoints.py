"""Points at which a test can make a real process die, freeze or fail; in DEBUG only.

`IDEMPOTENCY_FAULT_POINT=<point>:<action>` in the environment arms a process. It acts once, on the first request
that carries the header `X-Fault-Point: <point>`.

    after_phase1    claim and intent are committed, nothing is sent
    after_call      the other side has answered, nothing of it is stored
    before_commit   everything is written, nothing of the last phase is committed
    after_commit    the answer is stored, no byte of it is sent

    kill   SIGKILL to this process      stop   SIGSTOP to this process      raise   FaultInjected, like a cancellation
"""

import os
import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from django.conf import settings

HEADER = "X-Fault-Point"
VARIABLE = "IDEMPOTENCY_FAULT_POINT"
POINTS = ("after_phase1", "after_call", "before_commit", "after_commit")
ACTIONS = ("kill", "stop", "raise")

_asked: ContextVar[str] = ContextVar("idempotency_fault_point", default="")
_lock = threading.Lock()
_spent = False


class FaultInjected(BaseException):
    """What the action `raise` raises: like a cancellation, it is nobody's to handle."""


@contextmanager
def asked_for(point: str | None) -> Generator[None, None, None]:
    """Let the work of one request reach the point that its header names."""
    token = _asked.set(point or "")
    try:
        yield
    finally:
        _asked.reset(token)


def reach(point: str) -> None:
    """Act if this process is armed for the point and this request asked for it; otherwise cost nothing.

    Raises:
        FaultInjected: the action is `raise`.
    """
    if _asked.get() != point or not settings.DEBUG:
        return
    armed, _, action = os.environ.get(VARIABLE, "").partition(":")
    if armed == point and _first_time():
        _act(action)


def rearm() -> None:
    """Let this process act once more."""
    global _spent  # noqa: PLW0603 - one per process, as the environment is
    with _lock:
        _spent = False


def _first_time() -> bool:
    global _spent
    with _lock:
        first, _spent = not _spent, True
    return first


def _act(action: str) -> None:
    if action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif action == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif action == "raise":
        raise FaultInjected
