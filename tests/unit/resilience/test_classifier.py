"""R24: the whole table, by real exceptions of the libraries where they are installed.

The expectations are written out here and not taken from the table under test.
"""

import asyncio
import json
import socket
import ssl
from collections.abc import Callable
from typing import Any

import billiard.exceptions
import django.db.utils
import httpcore2
import httpx2
import psycopg
import psycopg.errors
import psycopg_pool
import pytest
import redis.exceptions
import requests
import stripe
import urllib3.exceptions
import valkey.exceptions

from idempotency import exceptions as ours
from idempotency.resilience import register_error
from idempotency.resilience.classifier import Classification, classify
from idempotency.resilience.signs import signs_of
from idempotency.resilience.table import TABLE, Evidence, Row, Vote
from idempotency.resilience.tabledoc import render
from idempotency.types import Outcome
from tests.support.faketime import FakeTime

FATAL, TRANSIENT, AMBIGUOUS = Outcome.FATAL, Outcome.TRANSIENT, Outcome.AMBIGUOUS


def seen(
    met: object, *, left: bool | None = None, declares: frozenset[int | str] = frozenset()
) -> Classification:
    return classify(
        met, bytes_may_have_left=left, declares=declares, clock=FakeTime(wall=0.0).clock
    )


def status_error(status: int, **headers: str) -> httpx2.HTTPStatusError:
    request = httpx2.Request("POST", "http://gateway.test/")
    response = httpx2.Response(status, headers=headers, request=request)
    return httpx2.HTTPStatusError("no", request=request, response=response)


def requests_error(status: int) -> requests.HTTPError:
    response = requests.Response()
    response.status_code = status
    return requests.HTTPError(response=response)


def from_cause(error: BaseException, cause: BaseException) -> BaseException:
    error.__cause__ = cause
    return error


def while_handling(error: BaseException, context: BaseException) -> BaseException:
    error.__context__ = context
    return error


def postgres(state: str) -> psycopg.Error:
    return psycopg.errors.lookup(state)("no")


def through_django(error: psycopg.Error) -> BaseException:
    return from_cause(django.db.utils.OperationalError("no"), error)


def foreign(module: str, name: str, base: type[BaseException] = Exception, **members: Any) -> Any:
    """Build an error of a library that is not installed, recognised by name."""
    return type(name, (base,), {"__module__": module, **members})


def stripe_error(kind: Any, *args: Any, **members: Any) -> BaseException:
    """Build one of Stripe's errors, some of whose constructors have no types."""
    error: BaseException = kind(*args, **members)
    return error


def grpc_error(code: str) -> BaseException:
    status = type("StatusCode", (), {"name": code})()
    root = foreign("grpc", "RpcError")
    kind = foreign("grpc._channel", "_InactiveRpcError", root, code=lambda self: status)
    error: BaseException = kind("no")
    return error


def kafka_error(name: str) -> BaseException:
    error = type("KafkaError", (), {"name": lambda self: name})()
    failed: BaseException = foreign("confluent_kafka.cimpl", "KafkaException")(error)
    return failed


MAX_RETRY = urllib3.exceptions.MaxRetryError
POOL: Any = None
UNSENT = urllib3.exceptions.NewConnectionError(POOL, "refused")
UNSENT_TOO = urllib3.exceptions.NewConnectionError(POOL, "no route")
SSL = ssl.SSLError("no")

# What is met, with no fact from a transport and nothing declared -> outcome, may it have applied.
NO_FACT: list[tuple[str, BaseException, Outcome, bool]] = [
    # the caller is stopped: never repeated, and whatever was open is unknown (H5)
    ("CancelledError", asyncio.CancelledError(), FATAL, True),
    ("GeneratorExit", GeneratorExit(), FATAL, True),
    ("SystemExit", SystemExit(), FATAL, True),
    ("KeyboardInterrupt", KeyboardInterrupt(), FATAL, True),
    ("soft time limit", billiard.exceptions.SoftTimeLimitExceeded(), FATAL, True),
    ("hard time limit", billiard.exceptions.TimeLimitExceeded(), FATAL, True),
    ("gevent", foreign("gevent.timeout", "Timeout", BaseException)(), FATAL, True),
    (
        "soft time limit inside stripe",
        from_cause(
            stripe_error(stripe.APIConnectionError, "no"),
            billiard.exceptions.SoftTimeLimitExceeded(),
        ),
        FATAL,
        True,
    ),
    # our own
    ("decline", ours.CallRejected("declined"), FATAL, False),
    ("inner failed", ours.CallFailed("open", code="circuit-open"), FATAL, False),
    ("inner unknown", ours.CallUnknown("?"), FATAL, True),
    ("partial effect", ours.PartialEffect("half"), FATAL, True),
    ("overload", ours.Refused("full", code="overloaded", retry_after=1), FATAL, False),
    ("temporary", ours.TemporaryFailure("later"), TRANSIENT, False),
    ("optimistic conflict", ours.OptimisticConflict("changed"), TRANSIENT, False),
    # before a request can leave
    ("dns", socket.gaierror(socket.EAI_NONAME, "no"), TRANSIENT, False),
    ("refused", ConnectionRefusedError(111, "no"), TRANSIENT, False),
    ("certificate", ssl.SSLCertVerificationError("no"), FATAL, False),
    ("httpx2 connect timeout", httpx2.ConnectTimeout("no"), TRANSIENT, False),
    ("httpx2 connect", httpx2.ConnectError("no"), TRANSIENT, False),
    (
        "httpx2 certificate",
        from_cause(
            httpx2.ConnectError("no"),
            while_handling(httpcore2.ConnectError("no"), ssl.SSLCertVerificationError("no")),
        ),
        FATAL,
        False,
    ),
    *[
        (f"httpx2 connect: {why!r}", from_cause(httpx2.ConnectError("no"), why), TRANSIENT, False)
        for why in (OSError(113, "no"), OSError(101, "no"), ConnectionResetError(104, "no"), SSL)
    ],
    ("httpx2 pool", httpx2.PoolTimeout("no"), TRANSIENT, False),
    ("httpx2 scheme", httpx2.UnsupportedProtocol("no"), FATAL, False),
    ("requests connect timeout", requests.ConnectTimeout(), TRANSIENT, False),
    (
        "requests refused",
        while_handling(
            requests.ConnectionError(), from_cause(MAX_RETRY(POOL, "/", UNSENT), UNSENT)
        ),
        TRANSIENT,
        False,
    ),
    (
        "requests unreachable",
        while_handling(
            requests.ConnectionError(),
            from_cause(MAX_RETRY(POOL, "/"), from_cause(UNSENT_TOO, OSError(113, "no"))),
        ),
        TRANSIENT,
        False,
    ),
    (
        "requests certificate",
        while_handling(
            requests.exceptions.SSLError(),
            from_cause(
                MAX_RETRY(POOL, "/"),
                from_cause(urllib3.exceptions.SSLError("no"), ssl.SSLCertVerificationError("no")),
            ),
        ),
        FATAL,
        False,
    ),
    ("requests address", requests.exceptions.InvalidURL("no"), FATAL, False),
    # after a request may have left
    ("timeout", TimeoutError("no"), AMBIGUOUS, True),
    ("httpx2 read timeout", httpx2.ReadTimeout("no"), AMBIGUOUS, True),
    ("httpx2 write timeout", httpx2.WriteTimeout("no"), AMBIGUOUS, True),
    ("httpx2 read", httpx2.ReadError("no"), AMBIGUOUS, True),
    ("httpx2 protocol", httpx2.RemoteProtocolError("no"), AMBIGUOUS, True),
    ("httpcore2 read", httpcore2.ReadError("no"), AMBIGUOUS, True),
    ("reset", ConnectionResetError(104, "no"), AMBIGUOUS, True),
    ("broken pipe", BrokenPipeError(32, "no"), AMBIGUOUS, True),
    ("eof", EOFError(), AMBIGUOUS, True),
    ("tls eof", ssl.SSLEOFError("no"), AMBIGUOUS, True),
    ("requests read timeout", requests.ReadTimeout(), AMBIGUOUS, True),
    (
        "requests reset",
        while_handling(
            requests.ConnectionError(),
            while_handling(urllib3.exceptions.ProtocolError("no"), ConnectionResetError(104, "no")),
        ),
        AMBIGUOUS,
        True,
    ),
    # what a request has left on, and whose host is gone: the kernel tells the same as of one that was never reached
    *[(f"raw {why!r}", why, AMBIGUOUS, True) for why in (OSError(113, "no"), OSError(101, "no"))],
    *[
        (
            f"requests {why!r}",
            while_handling(
                requests.ConnectionError(),
                from_cause(urllib3.exceptions.ProtocolError("no"), why),
            ),
            AMBIGUOUS,
            True,
        )
        for why in (OSError(113, "no"), OSError(101, "no"), ConnectionRefusedError(111, "no"))
    ],
    ("requests chunked", requests.exceptions.ChunkedEncodingError(), AMBIGUOUS, True),
    ("requests two lengths", requests.exceptions.InvalidHeader("no"), AMBIGUOUS, True),
    ("unparsable body", json.JSONDecodeError("no", "<html>", 0), AMBIGUOUS, True),
    ("requests unparsable", requests.exceptions.JSONDecodeError("no", "<", 0), AMBIGUOUS, True),
    # HTTP answers
    *[(f"{s}", status_error(s), FATAL, False) for s in (400, 401, 402, 403, 404, 405, 409, 422)],
    *[(f"{s} undeclared", status_error(s), AMBIGUOUS, True) for s in (408, 425, 429, 503)],
    *[(f"{s}", status_error(s), AMBIGUOUS, True) for s in (500, 501, 502, 504, 520)],
    ("requests 500", requests_error(500), AMBIGUOUS, True),
    ("requests 404", requests_error(404), FATAL, False),
    # stripe
    (
        "stripe decline",
        stripe_error(stripe.CardError, "no", None, "card_declined", http_status=402),
        FATAL,
        False,
    ),
    ("stripe 500", stripe_error(stripe.APIError, "no", http_status=500), AMBIGUOUS, True),
    ("stripe 200 html", stripe_error(stripe.APIError, "no", http_status=200), AMBIGUOUS, True),
    ("stripe 429", stripe_error(stripe.RateLimitError, "no", http_status=429), AMBIGUOUS, True),
    (
        "stripe key in use",
        stripe_error(
            stripe.InvalidRequestError, "no", None, "idempotency_key_in_use", http_status=409
        ),
        AMBIGUOUS,
        True,
    ),
    (
        "stripe key reused",
        stripe_error(stripe.IdempotencyError, "no", http_status=400),
        FATAL,
        True,
    ),
    (
        "stripe credentials",
        stripe_error(stripe.AuthenticationError, "no", http_status=401),
        FATAL,
        False,
    ),
    ("stripe network", stripe_error(stripe.APIConnectionError, "no"), AMBIGUOUS, True),
    (
        "stripe refused",
        from_cause(
            stripe_error(stripe.APIConnectionError, "no"),
            from_cause(httpx2.ConnectError("no"), ConnectionRefusedError(111, "no")),
        ),
        TRANSIENT,
        False,
    ),
    # gRPC
    *[
        (f"grpc {code}", grpc_error(code), FATAL, False)
        for code in ("INVALID_ARGUMENT", "NOT_FOUND", "PERMISSION_DENIED", "UNAUTHENTICATED")
    ],
    *[
        (f"grpc {code}", grpc_error(code), AMBIGUOUS, True)
        for code in ("UNKNOWN", "INTERNAL", "DEADLINE_EXCEEDED", "UNAVAILABLE", "ABORTED")
    ],
    # PostgreSQL, bare and through Django's wrappers
    *[(state, postgres(state), TRANSIENT, False) for state in ("40001", "40P01", "55P03", "25006")],
    *[(f"django {s}", through_django(postgres(s)), TRANSIENT, False) for s in ("40001", "55P03")],
    ("23505", postgres("23505"), FATAL, False),
    (
        "django 23505",
        from_cause(django.db.utils.IntegrityError("no"), postgres("23505")),
        FATAL,
        False,
    ),
    ("40003", postgres("40003"), AMBIGUOUS, True),
    ("08006", postgres("08006"), AMBIGUOUS, True),
    ("08007", postgres("08007"), AMBIGUOUS, True),
    ("57P01", postgres("57P01"), AMBIGUOUS, True),
    ("53300", postgres("53300"), TRANSIENT, False),
    ("COMMIT lost", psycopg.OperationalError("server closed the connection"), AMBIGUOUS, True),
    ("django COMMIT lost", through_django(psycopg.OperationalError("lost")), AMBIGUOUS, True),
    ("pool", psycopg_pool.PoolTimeout(), TRANSIENT, False),
    # Redis, Valkey, Kafka
    *[
        (kind.__name__, kind("no"), TRANSIENT, False)
        for kind in (
            redis.exceptions.ReadOnlyError,
            redis.exceptions.BusyLoadingError,
            redis.exceptions.ClusterDownError,
            redis.exceptions.TryAgainError,
            valkey.exceptions.ReadOnlyError,
        )
    ],
    ("MOVED", redis.exceptions.MovedError("1 127.0.0.1:1"), TRANSIENT, False),
    ("ASK", redis.exceptions.AskError("1 127.0.0.1:1"), TRANSIENT, False),
    ("redis timeout", redis.exceptions.TimeoutError("no"), AMBIGUOUS, True),
    ("redis lost", redis.exceptions.ConnectionError("no"), AMBIGUOUS, True),
    (
        "redis refused",
        while_handling(redis.exceptions.ConnectionError("no"), ConnectionRefusedError(111, "no")),
        TRANSIENT,
        False,
    ),
    ("kafka", kafka_error("NOT_LEADER_FOR_PARTITION"), TRANSIENT, False),
    (
        "kafka-python",
        foreign("kafka.errors", "NotLeaderForPartitionError")("no"),
        TRANSIENT,
        False,
    ),
    # anything not recognised: fatal for retry, unknown for the effect
    ("bug", KeyError("id"), FATAL, True),
    ("file", FileNotFoundError(2, "no"), FATAL, True),
    ("stranger", foreign("somebody.sdk", "SdkError")("no"), FATAL, True),
    ("django without cause", django.db.utils.ProgrammingError("no"), FATAL, True),
    ("status 304 raised", status_error(304), FATAL, True),
]


@pytest.mark.parametrize(
    ("met", "outcome", "maybe_applied"), [row[1:] for row in NO_FACT], ids=[r[0] for r in NO_FACT]
)
def test_r24_outcome_where_no_transport_tells_a_fact(
    met: BaseException, outcome: Outcome, maybe_applied: bool
) -> None:
    found = seen(met)
    assert (found.outcome, found.maybe_applied) == (outcome, maybe_applied), found


@pytest.mark.parametrize("met", [row[1] for row in NO_FACT], ids=[r[0] for r in NO_FACT])
def test_r24_not_sent_is_decided_by_fact(met: BaseException) -> None:
    told = seen(met)
    unsent = seen(met, left=False)
    assert unsent.outcome is not AMBIGUOUS
    says_so_itself = isinstance(
        met, ours.CallUnknown | ours.PartialEffect | stripe.IdempotencyError
    )
    assert unsent.maybe_applied is says_so_itself
    assert not unsent.sent
    sent = seen(met, left=True)
    # A name alone cannot prove that nothing left.
    if told.outcome is TRANSIENT and not told.sent:
        assert sent.outcome is AMBIGUOUS
    if not told.sent:
        assert sent.maybe_applied
        assert sent.sent


@pytest.mark.parametrize("status", [408, 425, 429, 503])
def test_r24_busy_statuses_mean_not_executed_only_where_declared(status: int) -> None:
    assert seen(status_error(status)).outcome is AMBIGUOUS
    declared = seen(status_error(status), left=True, declares=frozenset({status}))
    assert (declared.outcome, declared.maybe_applied) == (TRANSIENT, False)
    other = frozenset({408, 425, 429, 503}) - {status}
    assert seen(status_error(status), declares=other).outcome is AMBIGUOUS


def test_r24_a_declaration_cannot_turn_a_500_into_not_executed() -> None:
    assert seen(status_error(500), declares=frozenset({500})).outcome is AMBIGUOUS


@pytest.mark.parametrize("code", ["UNAVAILABLE", "RESOURCE_EXHAUSTED", "ABORTED"])
def test_r24_grpc_codes_mean_not_executed_only_where_declared(code: str) -> None:
    assert seen(grpc_error(code)).outcome is AMBIGUOUS
    assert seen(grpc_error(code), declares=frozenset({code})).outcome is TRANSIENT


@pytest.mark.parametrize(
    ("met", "vote"),
    [
        *[(status_error(s), Vote.SUCCESS) for s in (400, 401, 402, 403, 404, 408, 409, 422)],
        *[(status_error(s), Vote.FAILURE) for s in (429, 500, 502, 503, 504)],
        (asyncio.CancelledError(), Vote.NONE),
        (billiard.exceptions.SoftTimeLimitExceeded(), Vote.NONE),
        (ours.CallRejected("declined"), Vote.SUCCESS),
        (ours.CallFailed("full", code="overloaded"), Vote.NONE),
        (httpx2.PoolTimeout("no"), Vote.NONE),
        (httpx2.ReadTimeout("no"), Vote.FAILURE),
        (ConnectionRefusedError(111, "no"), Vote.FAILURE),
        (postgres("40001"), Vote.SUCCESS),
        (KeyError("id"), Vote.FAILURE),
    ],
    ids=repr,
)
def test_r27_what_a_failure_counts_as_for_the_breaker(met: BaseException, vote: Vote) -> None:
    assert seen(met).vote is vote


def test_r24_an_answer_that_reports_an_error_is_no_success() -> None:
    request = httpx2.Request("POST", "http://gateway.test/")
    for answer in (
        httpx2.Response(200, request=request),
        httpx2.Response(302, request=request),
        {"status": 500},
        None,
    ):
        assert seen(answer).outcome is Outcome.SUCCESS
    assert seen(httpx2.Response(500, request=request)).outcome is AMBIGUOUS
    assert seen(httpx2.Response(404, request=request)).outcome is FATAL
    assert seen(httpx2.Response(600, request=request)).reason == "unrecognised"


def test_r24_only_a_stated_cause_speaks_for_a_stranger() -> None:
    stranger = foreign("somebody.sdk", "SdkError")
    refused = ConnectionRefusedError(111, "no")
    assert seen(from_cause(stranger("no"), refused)).outcome is TRANSIENT
    assert seen(while_handling(stranger("no"), refused)).outcome is FATAL


def test_r24_a_circle_of_causes_ends() -> None:
    first, second = KeyError("a"), KeyError("b")
    first.__cause__, second.__cause__ = second, first
    assert seen(first).outcome is FATAL


def test_r24_hosts_register_types_and_their_subclasses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("idempotency.resilience.registry._REGISTERED", {})
    root = foreign("host.sdk", "HostError")
    leaf = foreign("host.sdk", "HostBusy", root)
    assert seen(leaf("no")).outcome is FATAL
    register_error(
        root, reason="host-busy", outcome=TRANSIENT, says=Evidence.NOT_EXECUTED, vote=Vote.NONE
    )
    found = seen(leaf("no"), left=True)
    assert (found.outcome, found.maybe_applied, found.reason, found.vote) == (
        TRANSIENT,
        False,
        "host-busy",
        Vote.NONE,
    )


def test_r24_a_registration_that_contradicts_itself_is_refused() -> None:
    with pytest.raises(ValueError, match="certainly not executed"):
        register_error(KeyError, reason="x", outcome=TRANSIENT)


def _word(make: Callable[[], object]) -> float | None:
    return seen(make()).retry_after


def test_r25_the_word_is_found_in_every_librarys_answer() -> None:
    assert _word(lambda: status_error(503, **{"Retry-After": "7"})) == 7.0
    failed = requests_error(503)
    assert failed.response is not None
    failed.response.headers["RETRY-AFTER"] = "8"
    assert _word(lambda: failed) == 8.0
    throttled = stripe_error(
        stripe.RateLimitError, "no", http_status=429, headers={"retry-after": "9"}
    )
    assert _word(lambda: throttled) == 9.0
    assert _word(lambda: ours.TemporaryFailure("later", retry_after=4)) == 4.0
    assert _word(lambda: status_error(503)) is None


def test_r25_two_lines_are_no_word() -> None:
    request = httpx2.Request("POST", "http://gateway.test/")
    lines = [("Retry-After", "1"), ("Retry-After", "60")]
    assert _word(lambda: httpx2.Response(503, headers=lines, request=request)) is None


# -- the table itself ---------------------------------------------------------------------------------


def _rows() -> list[Row]:
    return [row for rows in TABLE.values() for row in rows]


def test_r24_no_sign_stands_in_two_rows() -> None:
    signs = [sign for row in _rows() for sign in row.signs]
    assert len(signs) == len(set(signs))


def test_r24_transient_always_means_certainly_not_executed() -> None:
    for row in _rows():
        if row.outcome is TRANSIENT:
            assert row.says in (Evidence.NOT_SENT, Evidence.NOT_EXECUTED), row
        if row.outcome is AMBIGUOUS:
            assert row.says is Evidence.NOTHING, row


def test_r24_every_class_named_in_the_table_exists_where_its_library_is_installed() -> None:
    known = {
        sign
        for library in (
            httpx2,
            httpcore2,
            requests.exceptions,
            urllib3.exceptions,
            stripe,
            psycopg,
            psycopg.errors,
            psycopg_pool,
            redis.exceptions,
            billiard.exceptions,
            ours,
        )
        for kind in vars(library).values()
        if isinstance(kind, type) and issubclass(kind, BaseException)
        for sign in signs_of(kind.__new__(kind))
    }
    packages = {sign.partition(".")[0] for sign in known if ":" not in sign} - {"builtins"}
    for row in _rows():
        for sign in row.signs:
            if ":" not in sign and sign.partition(".")[0] in packages:
                assert sign in known, sign


def test_r24_the_rendered_table_is_the_data() -> None:
    lines = [line for line in render().splitlines() if line.startswith("| `")]
    assert len(lines) == len(_rows())
    for line, row in zip(lines, _rows(), strict=True):
        met, outcome, _, vote, reason = (cell.strip() for cell in line.strip("|").split("|"))
        assert tuple(met.replace("`", "").split()) == row.signs
        assert outcome.startswith(row.outcome)
        assert ("declared" in outcome) is row.if_declared
        assert vote == row.vote
        assert reason == f"`{row.reason}`"
    assert [line[4:] for line in render().splitlines() if line.startswith("### ")] == list(TABLE)
