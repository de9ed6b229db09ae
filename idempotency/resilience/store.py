"""Redis or Valkey as a store shared by processes: scripts only, short timeouts, quick to give up.

A store that does not answer costs one caller its timeout now and then; all others are told at once.
"""

from collections.abc import Callable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, Self

from idempotency.clock import SYSTEM, Clock
from idempotency.resilience.signs import describe
from idempotency.telemetry import StoreFound, StoreLost, emit

if TYPE_CHECKING:
    from redis import Redis

Script = Callable[[Sequence[str], Sequence[str | float]], list[Any]]


class StoreUnavailable(Exception):
    """The shared store was not asked, or did not answer."""


class SharedStore:
    """Runs Lua scripts on a Redis or Valkey client.

    Args:
        client: a client with timeouts of well under a second and without retries, as `connect`
            makes it.
        name: its name in events.
        rest: seconds for which a store that failed is not asked again.
    """

    def __init__(
        self, client: "Redis", *, name: str = "store", rest: float = 2.0, clock: Clock = SYSTEM
    ) -> None:
        self.name = name
        self._client, self._rest, self._clock = client, rest, clock
        self._lock = Lock()
        self._again_at: float | None = None

    @classmethod
    def connect(cls, url: str, *, timeout: float = 0.1, name: str = "store") -> Self:
        """Return a store at that address; it is first asked when it is first used.

        `timeout` in seconds is for connecting and for each answer.

        Raises:
            ImportError: the redis client is not installed.
        """
        try:
            from redis import Redis
            from redis.backoff import NoBackoff
            from redis.retry import Retry
        except ImportError as error:
            raise ImportError(
                "a shared store needs the redis client: install the extra `redis`"
            ) from error
        client = Redis.from_url(
            url,
            socket_timeout=timeout,
            socket_connect_timeout=timeout,
            retry=Retry(NoBackoff(), 0),
        )
        return cls(client, name=name)

    def script(self, source: str) -> Script:
        """Return a callable that runs the Lua script with keys and arguments.

        The callable raises StoreUnavailable where the store does not answer.
        """
        registered = self._client.register_script(source)

        def run(keys: Sequence[str], args: Sequence[str | float]) -> list[Any]:
            if not self._worth_asking():
                raise StoreUnavailable(self.name)
            try:
                answer: list[Any] = registered(keys=list(keys), args=list(args))
            except Exception as error:
                self._lost(error)
                raise StoreUnavailable(self.name) from error
            self._found()
            return answer

        return run

    def _worth_asking(self) -> bool:
        if self._again_at is None:
            return True
        with self._lock:
            now = self._clock.now()
            if now < (self._again_at or 0.0):
                return False
            # This caller tries; the others go on without the store meanwhile.
            self._again_at = now + self._rest
            return True

    def _lost(self, error: Exception) -> None:
        with self._lock:
            news = self._again_at is None
            self._again_at = self._clock.now() + self._rest
        if news:
            emit(StoreLost(store=self.name, error=describe(error)))

    def _found(self) -> None:
        if self._again_at is None:
            return
        with self._lock:
            news, self._again_at = self._again_at is not None, None
        if news:
            emit(StoreFound(store=self.name))
