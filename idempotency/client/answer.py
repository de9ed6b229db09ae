"""What comes back, the same from every HTTP library: an answer, and an operation that is done later."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

from idempotency.exceptions import CallUnknown
from idempotency.resilience.retryafter import parse_retry_after

WITHOUT_BODY = (204, 205)
KEPT_HEADERS = ("content-type", "location", "retry-after", "idempotent-replayed", "link", "etag")


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer of the server. Header names are lower case."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    remembered: bool = False
    """Whether it comes from our own store, and not from the server just now."""

    @property
    def ok(self) -> bool:
        """Whether it was done, or will be (202)."""
        return 200 <= self.status < 300

    @property
    def replayed(self) -> bool:
        """Whether the server answered with what it had stored."""
        return self.headers.get("idempotent-replayed", "").lower() == "true"

    @property
    def problem(self) -> Mapping[str, Any]:
        """The members of the problem that it tells; empty where it is none. Source: RFC 9457."""
        if self.status < 400:
            return {}
        try:
            told = json.loads(self.body)
        except (ValueError, RecursionError):
            return {}
        return told if isinstance(told, dict) else {}

    @property
    def code(self) -> str:
        """The problem's code, or ""."""
        code = self.problem.get("code", "")
        return code if isinstance(code, str) else ""

    def json(self) -> Any:
        """Return the body as data. Raises: ValueError."""
        return json.loads(self.body)

    def require_whole(self) -> None:
        """Refuse what is no answer of the operation: JSON that breaks off, or a page of something in between.

        Where an answer's end is told by that of the connection, no HTTP library notices one that is cut.

        Raises: ValueError.
        """
        kind = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        # JSON was asked for: a page of HTML is broken, too.
        is_json = kind in ("application/json", "text/html") or kind.endswith("+json")
        if is_json and self.status not in WITHOUT_BODY:
            json.loads(self.body)

    def wait(self, *, now: float) -> float | None:
        """Return the valid word of Retry-After in seconds, or None. `now` is wall-clock time."""
        return parse_retry_after(
            self.headers.get("retry-after"), now=now, date=self.headers.get("date")
        )


@dataclass(frozen=True, slots=True)
class Operation:
    """Deferred work, as its status monitor told it."""

    id: str
    operation: str
    state: str
    done: bool
    attempts: int
    result: Any = None
    error: Mapping[str, Any] | None = None
    """`{code, detail}` where it ended without a result."""
    retry_at: datetime | None = None

    @classmethod
    def of(cls, answer: Answer) -> Self:
        """Read it.

        Raises:
            CallUnknown: the answer is none of a status monitor.
        """
        try:
            told = answer.json()
            return cls(
                id=told["id"],
                operation=told["operation"],
                state=told["state"],
                done=told["done"],
                attempts=told["attempts"],
                result=told.get("result"),
                error=told.get("error"),
                retry_at=datetime.fromisoformat(told["retry_at"]) if told.get("retry_at") else None,
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CallUnknown("The status monitor's answer cannot be read.") from error


Progress = Callable[[Operation], object]
"""Called with each look at an operation, the last one included."""
