"""The table of failures: what may be met, what it means, and what the circuit breaker makes of it.

This is data. `classifier` reads it, `tabledoc` prints it for the documentation. To find out what a
failure means, look here; to change it, change the row.
"""

import enum
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from idempotency.types import Outcome

Declared = AbstractSet[int | str]
"""HTTP statuses and gRPC status names by which a dependency is known to mean "not executed"."""


class Evidence(enum.StrEnum):
    """What a failure itself says about the request."""

    NOT_SENT = "not sent"
    """It failed before a request could leave."""
    NOT_EXECUTED = "not executed"
    """The other side answered, or is known to have undone it."""
    NOTHING = "nothing"
    """It may have been executed, unless the transport knows that no byte left."""
    MAYBE_EXECUTED = "may be executed"
    """It says so itself, whatever the transport knows."""


class Vote(enum.StrEnum):
    """What a circuit breaker counts it as."""

    SUCCESS = "success"
    """The dependency works: it answered, if only to refuse."""
    FAILURE = "failure"
    NONE = "no vote"
    """It says nothing about the dependency."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table.

    A sign is `http:503`, `http:4xx`, `sqlstate:40001`, `sqlstate:23` (a class), `grpc:ABORTED`,
    `errno:ENETUNREACH`, `stripe:<code or class>`, `kafka:<code>`, or `<top package>.<class>`, which
    covers subclasses. `signs.signs_of` says in which order the signs of an error are looked up.
    """

    outcome: Outcome
    says: Evidence
    vote: Vote
    reason: str
    """A stable word for logs and metrics."""
    signs: tuple[str, ...]
    if_declared: bool = False
    """Holds only where the dependency is declared to mean it; otherwise ambiguous."""
    look_inside: bool = False
    """A wrapper: its cause decides where the table knows it, and this row where it does not."""
    cancels: bool = False
    """The caller is being stopped: end, and try nothing more."""


def _row(
    outcome: Outcome,
    says: Evidence,
    vote: Vote,
    reason: str,
    signs: str,
    *,
    if_declared: bool = False,
    look_inside: bool = False,
    cancels: bool = False,
) -> Row:
    names = tuple(signs.split())
    return Row(outcome, says, vote, reason, names, if_declared, look_inside, cancels)


FATAL, TRANSIENT, AMBIGUOUS = Outcome.FATAL, Outcome.TRANSIENT, Outcome.AMBIGUOUS
NOT_SENT, NOT_EXECUTED, NOTHING = Evidence.NOT_SENT, Evidence.NOT_EXECUTED, Evidence.NOTHING
MAYBE_EXECUTED = Evidence.MAYBE_EXECUTED
SUCCESS, FAILURE, NO_VOTE = Vote.SUCCESS, Vote.FAILURE, Vote.NONE

UNRECOGNISED = _row(FATAL, NOTHING, FAILURE, "unrecognised", "builtins.Exception", look_inside=True)

# fmt: off
TABLE: dict[str, tuple[Row, ...]] = {
    "The caller is stopped": (
        # Any other error that is no Exception, e.g. gevent's Timeout, means to stop as well.
        _row(FATAL, NOTHING, NO_VOTE, "cancelled",
             "asyncio.CancelledError concurrent.CancelledError billiard.SoftTimeLimitExceeded "
             "billiard.TimeLimitExceeded builtins.GeneratorExit builtins.KeyboardInterrupt "
             "builtins.SystemExit builtins.BaseException", cancels=True),
    ),
    "Our own": (
        _row(FATAL, NOT_EXECUTED, SUCCESS, "rejected", "idempotency.CallRejected"),
        # The inner guard has retried and voted already: one layer retries.
        _row(FATAL, NOT_EXECUTED, NO_VOTE, "inner-call-failed", "idempotency.CallFailed"),
        _row(FATAL, MAYBE_EXECUTED, NO_VOTE, "inner-call-unknown", "idempotency.CallUnknown"),
        _row(FATAL, MAYBE_EXECUTED, NO_VOTE, "partial-effect", "idempotency.PartialEffect"),
        _row(FATAL, NOT_SENT, NO_VOTE, "refused-here", "idempotency.Refused idempotency.Misuse"),
        _row(TRANSIENT, NOT_EXECUTED, FAILURE, "temporary", "idempotency.TemporaryFailure"),
        # Tried again by re-reading and recomputing the whole unit of work: `retry_transaction`.
        _row(TRANSIENT, NOT_EXECUTED, NO_VOTE, "conflict", "idempotency.OptimisticConflict"),
    ),
    "Before a request can leave": (
        _row(TRANSIENT, NOT_SENT, FAILURE, "dns", "socket.gaierror urllib3.NameResolutionError"),
        _row(TRANSIENT, NOT_SENT, FAILURE, "refused", "builtins.ConnectionRefusedError"),
        _row(FATAL, NOT_SENT, FAILURE, "certificate", "ssl.SSLCertVerificationError"),
        _row(TRANSIENT, NOT_SENT, FAILURE, "connect-timeout",
             "httpx2.ConnectTimeout requests.ConnectTimeout urllib3.ConnectTimeoutError"),
        _row(TRANSIENT, NOT_SENT, FAILURE, "connect",
             "httpx2.ConnectError urllib3.NewConnectionError", look_inside=True),
        _row(TRANSIENT, NOT_SENT, NO_VOTE, "own-pool-exhausted",
             "httpx2.PoolTimeout urllib3.EmptyPoolError psycopg_pool.PoolTimeout "
             "psycopg_pool.PoolClosed psycopg_pool.TooManyRequests redis.MaxConnectionsError"),
        _row(FATAL, NOT_SENT, NO_VOTE, "malformed-request",
             "httpx2.LocalProtocolError httpx2.UnsupportedProtocol httpx2.InvalidURL "
             "requests.InvalidURL requests.MissingSchema requests.InvalidSchema"),
    ),
    "After a request may have left": (
        _row(AMBIGUOUS, NOTHING, FAILURE, "timeout",
             "httpx2.TimeoutException requests.Timeout urllib3.ReadTimeoutError "
             "builtins.TimeoutError"),
        # Also how a connection ends whose request has arrived, once its host is gone: that it was only being made is
        # for the connector's own error to say.
        _row(AMBIGUOUS, NOTHING, FAILURE, "unreachable",
             "errno:EHOSTUNREACH errno:ENETUNREACH errno:EHOSTDOWN errno:ENETDOWN"),
        _row(AMBIGUOUS, NOTHING, FAILURE, "connection-lost",
             "httpx2.NetworkError urllib3.ProtocolError builtins.ConnectionError "
             "builtins.EOFError ssl.SSLError"),
        _row(AMBIGUOUS, NOTHING, FAILURE, "connection-lost",
             "requests.ConnectionError requests.SSLError urllib3.MaxRetryError "
             "urllib3.SSLError", look_inside=True),
        # `requests` has one error for a header of ours and for the length of an answer.
        _row(AMBIGUOUS, NOTHING, FAILURE, "broken-answer",
             "httpx2.RemoteProtocolError httpx2.DecodingError http.HTTPException "
             "requests.ChunkedEncodingError requests.ContentDecodingError requests.InvalidHeader "
             "urllib3.IncompleteRead urllib3.InvalidHeader "
             "json.JSONDecodeError builtins.UnicodeDecodeError"),
        _row(AMBIGUOUS, NOTHING, FAILURE, "proxy",
             "httpx2.ProxyError requests.ProxyError urllib3.ProxyError", look_inside=True),
    ),
    "HTTP answers": (
        _row(AMBIGUOUS, NOTHING, FAILURE, "unusable-success", "http:2xx"),
        _row(TRANSIENT, NOT_EXECUTED, FAILURE, "busy", "http:429", if_declared=True),
        _row(TRANSIENT, NOT_EXECUTED, FAILURE, "unavailable", "http:503", if_declared=True),
        _row(TRANSIENT, NOT_EXECUTED, SUCCESS, "early", "http:408 http:425", if_declared=True),
        _row(FATAL, NOT_EXECUTED, SUCCESS, "refused-by-status", "http:4xx"),
        _row(AMBIGUOUS, NOTHING, FAILURE, "server-error", "http:5xx"),
    ),
    "Stripe": (
        # Another send of the same key is under way: wait, and ask again under that key.
        _row(AMBIGUOUS, NOTHING, SUCCESS, "key-in-use", "stripe:idempotency_key_in_use"),
        # Something else was executed under this key: neither to be repeated nor to be denied.
        _row(FATAL, MAYBE_EXECUTED, SUCCESS, "key-reused", "stripe:IdempotencyError"),
        _row(AMBIGUOUS, NOTHING, FAILURE, "connection-lost", "stripe.APIConnectionError",
             look_inside=True),
    ),
    "gRPC status": (
        _row(TRANSIENT, NOT_EXECUTED, FAILURE, "unavailable", "grpc:UNAVAILABLE", if_declared=True),
        _row(TRANSIENT, NOT_EXECUTED, FAILURE, "busy", "grpc:RESOURCE_EXHAUSTED", if_declared=True),
        _row(TRANSIENT, NOT_EXECUTED, SUCCESS, "aborted", "grpc:ABORTED", if_declared=True),
        _row(AMBIGUOUS, NOTHING, FAILURE, "server-error",
             "grpc:UNKNOWN grpc:INTERNAL grpc:DEADLINE_EXCEEDED grpc:DATA_LOSS grpc:CANCELLED"),
        _row(FATAL, NOT_EXECUTED, SUCCESS, "refused-by-status",
             "grpc:INVALID_ARGUMENT grpc:NOT_FOUND grpc:ALREADY_EXISTS grpc:PERMISSION_DENIED "
             "grpc:UNAUTHENTICATED grpc:FAILED_PRECONDITION grpc:OUT_OF_RANGE grpc:UNIMPLEMENTED"),
    ),
    # A broken COMMIT needs no row of its own: whatever takes the connection away is ambiguous, and
    # whatever the server still answers says that it rolled back.
    "PostgreSQL SQLSTATE": (
        _row(TRANSIENT, NOT_EXECUTED, SUCCESS, "serialization", "sqlstate:40001 sqlstate:40P01"),
        _row(TRANSIENT, NOT_EXECUTED, SUCCESS, "lock-not-available", "sqlstate:55P03"),
        # Reconnect first: the repeat must reach the new leader.
        _row(TRANSIENT, NOT_EXECUTED, FAILURE, "read-only-server", "sqlstate:25006"),
        # Deduplication at work: read and return the existing row.
        _row(FATAL, NOT_EXECUTED, SUCCESS, "already-exists", "sqlstate:23505"),
        _row(FATAL, NOT_EXECUTED, SUCCESS, "refused-by-database",
             "sqlstate:22 sqlstate:23 sqlstate:42"),
        _row(FATAL, NOT_EXECUTED, FAILURE, "statement-cancelled", "sqlstate:57014"),
        _row(TRANSIENT, NOT_SENT, FAILURE, "no-connection",
             "sqlstate:08001 sqlstate:08004 sqlstate:53300 sqlstate:57P03 psycopg:connecting "
             "psycopg.ConnectionTimeout"),
        _row(AMBIGUOUS, NOTHING, FAILURE, "completion-unknown", "sqlstate:40003 sqlstate:08007"),
        _row(AMBIGUOUS, NOTHING, FAILURE, "connection-lost",
             "sqlstate:08 sqlstate:57P01 sqlstate:57P02 psycopg.OperationalError "
             "psycopg.InterfaceError"),
        _row(AMBIGUOUS, NOTHING, FAILURE, "connection-lost",
             "django.OperationalError django.InterfaceError", look_inside=True),
    ),
    "Redis and Valkey": (
        _row(TRANSIENT, NOT_EXECUTED, SUCCESS, "moved",
             "redis.MovedError redis.AskError redis.TryAgainError"),
        _row(TRANSIENT, NOT_EXECUTED, FAILURE, "not-serving",
             "redis.ReadOnlyError redis.BusyLoadingError redis.ClusterDownError "
             "redis.MasterDownError"),
        _row(FATAL, NOT_EXECUTED, SUCCESS, "refused-by-store",
             "redis.ResponseError redis.DataError redis.AuthenticationError"),
        _row(AMBIGUOUS, NOTHING, FAILURE, "timeout", "redis.TimeoutError"),
        _row(AMBIGUOUS, NOTHING, FAILURE, "connection-lost", "redis.ConnectionError",
             look_inside=True),
    ),
    "Kafka": (
        _row(TRANSIENT, NOT_EXECUTED, FAILURE, "not-leader",
             "kafka:NOT_LEADER_FOR_PARTITION kafka:LEADER_NOT_AVAILABLE "
             "kafka.NotLeaderForPartitionError kafka.NotLeaderOrFollowerError "
             "kafka.LeaderNotAvailableError"),
        _row(AMBIGUOUS, NOTHING, FAILURE, "timeout",
             "kafka:REQUEST_TIMED_OUT kafka:_MSG_TIMED_OUT kafka.RequestTimedOutError "
             "kafka.KafkaTimeoutError"),
    ),
    "Anything else": (UNRECOGNISED,),
}
# fmt: on
