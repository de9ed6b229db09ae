"""R24, R26, H2: every fault at every stage of an exchange, through real sockets and three clients.

A cell says what the guard concludes from one attempt. `httpx2` is the room's own client, which
tells whether a byte left and keeps the attempt's deadline; `requests` and `stripe` tell nothing,
so that what they report is classified by name, and more is unknown.
"""

import contextlib
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import stripe

from idempotency.exceptions import CallError, CallFailed, CallUnknown
from idempotency.resilience import Attempt, Guard, RetryPolicy, http_client, journalled
from idempotency.types import CallReport, Outcome
from tests.support import faultserver as faults
from tests.support.faultserver import Fault, FaultServer, serving

pytestmark = pytest.mark.sampled(3)

TIMEOUT = 0.25
"""Seconds of an attempt that only its deadline ends."""
PATIENT = 5.0
"""Of any other: it must not end one on a machine that is busy."""
SLACK = 0.75
"""For a machine that is busy: the faults that end by themselves take longer than both together."""

CERTIFICATE = str(Path(faults.__file__).with_name("loopback.pem"))
T, A, F = Outcome.TRANSIENT, Outcome.AMBIGUOUS, Outcome.FATAL

Send = Callable[[Attempt], Any]


# -- the clients --------------------------------------------------------------------------------------


@contextlib.contextmanager
def by_httpx2(url: str, timeout: float = PATIENT) -> Iterator[Send]:
    with http_client(base_url=url) as client:
        yield lambda attempt: client.post("/charge", json={}).raise_for_status().json()


@contextlib.contextmanager
def by_requests(url: str, timeout: float = PATIENT) -> Iterator[Send]:
    with requests.Session() as session:

        def send(attempt: Attempt) -> Any:
            response = session.post(f"{url}/charge", json={}, timeout=attempt.timeout)
            response.raise_for_status()
            return response.json()

        yield send


@contextlib.contextmanager
def by_stripe(url: str, timeout: float = PATIENT) -> Iterator[Send]:
    transport = stripe.RequestsClient(timeout=timeout, verify_ssl_certs=True)
    client = stripe.StripeClient(
        "sk_test_x", base_addresses={"api": url}, http_client=transport, max_network_retries=0
    )
    yield lambda attempt: client.v1.charges.create({"amount": 1, "currency": "eur"})
    transport.close()  # type: ignore[no-untyped-call]


CLIENTS = {"httpx2": by_httpx2, "requests": by_requests, "stripe": by_stripe}


def outcome_of(
    send: Send, *, declares: frozenset[int] = frozenset(), timeout: float = PATIENT
) -> tuple[Outcome, CallReport | None, CallError | None]:
    """Make a call of one attempt; return what the guard concluded."""
    policy = RetryPolicy(attempts=1, attempt_timeout=timeout)
    guard = Guard(name="peer", keyed=False, policy=policy, declares=declares)
    with journalled(lambda: None):
        try:
            guard.call(send)
        except CallError as error:
            ending = error
        else:
            return Outcome.SUCCESS, None, None
    report = ending.report
    assert report is not None
    assert isinstance(ending, CallUnknown) is (report.outcome is A)
    return report.outcome, report, ending


# -- after a connection stands ------------------------------------------------------------------------

#: stage, fault -> outcome, for every client
ANSWERED: dict[str, tuple[Fault, Outcome]] = {
    "sending: reset": (faults.reset_at_once, A),
    "sending: stalled": (faults.stall_at_once, A),
    "waiting: closed": (faults.eof_before_answer, A),
    "waiting: reset": (faults.reset_before_answer, A),
    "waiting: stalled": (faults.stall_before_answer, A),
    "head: reset": (faults.reset_in_head, A),
    "head: stalled": (faults.stall_in_head, A),
    "head: garbage": (faults.garbage_head, A),
    "body: reset": (faults.reset_in_body, A),
    "body: stalled": (faults.stall_in_body, A),
    "body: shorter than its length": (faults.short_body, A),
    "body: longer than its length": (faults.long_body, A),
    "body: truncated chunks": (faults.truncated_chunks, A),
    "body: html with 200": (faults.html, A),
    "answer: 400": (faults.status("400 Bad Request"), F),
    "answer: 401": (faults.status("401 Unauthorized"), F),
    "answer: 402": (faults.status("402 Payment Required"), F),
    "answer: 404": (faults.status("404 Not Found"), F),
    "answer: 408": (faults.status("408 Request Timeout"), A),
    "answer: 409": (faults.status("409 Conflict"), F),
    "answer: 422": (faults.status("422 Unprocessable Content"), F),
    "answer: 425": (faults.status("425 Too Early"), A),
    "answer: 429": (faults.status("429 Too Many Requests"), A),
    "answer: 500": (faults.status("500 Internal Server Error"), A),
    "answer: 502": (faults.status("502 Bad Gateway"), A),
    "answer: 503": (faults.status("503 Service Unavailable"), A),
    "answer: 504": (faults.status("504 Gateway Timeout"), A),
    "answer: 500 html": (faults.status("500 Oops", body=b"<html>"), A),
    "answer: fine": (faults.success, Outcome.SUCCESS),
}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("cell", ANSWERED)
def test_r24_faults_after_a_connection_stands(cell: str, client: str) -> None:
    fault, expected = ANSWERED[cell]
    timeout = TIMEOUT if "stalled" in cell else PATIENT
    with serving(fault) as server, CLIENTS[client](server.url, timeout) as send:
        begun = time.monotonic()
        outcome, report, _ = outcome_of(send, timeout=timeout)
        seconds = time.monotonic() - begun
        sent = len(server.requests)
    assert outcome is expected, report
    assert report is None or report.sent
    assert seconds < timeout + SLACK
    # H2: no client repeated a POST by itself.
    assert sent == (0 if cell == "sending: stalled" else 1)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("status", [408, 425, 429, 503])
def test_r24_a_declared_busy_answer_is_transient(status: int, client: str) -> None:
    fault = faults.status(f"{status} Busy", headers="Retry-After: 7\r\n")
    with serving(fault) as server, CLIENTS[client](server.url) as send:
        outcome, _, error = outcome_of(send, declares=frozenset({status}))
    assert outcome is T
    assert isinstance(error, CallFailed)
    assert (error.sent, error.retry_after) == (True, 7.0)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(
    ("lines", "word"),
    [
        ("Retry-After: 7\r\n", 7.0),
        ("retry-after:7\r\n", 7.0),
        ("Retry-After: 0\r\n", 0.0),
        ("Retry-After: Thu, 01 Jan 1970 00:00:00 GMT\r\n", 0.0),
        ("Retry-After: 99999999999999999999\r\n", 86_400.0),
        ("Retry-After: -7\r\n", None),
        ("Retry-After: 7.5\r\n", None),
        ("Retry-After: 7e1\r\n", None),
        ("Retry-After: 7_0\r\n", None),
        ("Retry-After: \uff17\r\n", None),
        ("Retry-After: \r\n", None),
        ("Retry-After: soon\r\n", None),
        ("Retry-After: 7\r\nRetry-After: 60\r\n", None),
        ("", None),
    ],
    ids=repr,
)
def test_r25_the_word_on_the_wire(lines: str, word: float | None, client: str) -> None:
    fault = faults.status("429 Too Many Requests", headers=lines)
    with serving(fault) as server, CLIENTS[client](server.url) as send:
        _, report, _ = outcome_of(send, declares=frozenset({429}))
    assert report is not None
    assert report.retry_after == word


# -- before a connection stands -----------------------------------------------------------------------


@contextlib.contextmanager
def nowhere() -> Iterator[str]:
    yield faults.refused_url()


@contextlib.contextmanager
def no_name() -> Iterator[str]:
    yield "http://gateway.invalid"


@contextlib.contextmanager
def https(fault: Fault) -> Iterator[str]:
    with serving(fault) as server:
        yield server.url.replace("http:", "https:").replace("127.0.0.1", "localhost")


#: the place -> outcome by the room's client, by one that tells no fact
UNREACHED: dict[str, tuple[Callable[[], Any], Outcome, Outcome]] = {
    "no such name": (no_name, T, T),
    "refused": (nowhere, T, T),
    "no answer to connect": (faults.blackhole, T, T),
    # Without the fact this looks like a lost answer.
    "tls: stalled": (lambda: https(faults.stall_at_once), T, A),
    "tls: reset": (lambda: https(faults.reset_at_once), T, A),
    "tls: unknown certificate": (lambda: https(faults.tls(CERTIFICATE)), F, F),
}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("cell", UNREACHED)
def test_r24_faults_before_a_connection_stands(cell: str, client: str) -> None:
    place, by_fact, by_name = UNREACHED[cell]
    timeout = TIMEOUT if cell in ("no answer to connect", "tls: stalled") else PATIENT
    with place() as url, CLIENTS[client](url, timeout) as send:
        begun = time.monotonic()
        outcome, report, _ = outcome_of(send, timeout=timeout)
        seconds = time.monotonic() - begun
    assert outcome is (by_fact if client == "httpx2" else by_name), report
    assert report is not None
    assert report.sent is (outcome is A)
    # stripe keeps the timeout for connecting and for reading.
    assert seconds < 2 * timeout + SLACK


# -- the attempt's deadline, by the room's client ------------------------------------------------------


@pytest.mark.parametrize("fault", [faults.drip, faults.stall_in_body, faults.stall_before_answer])
def test_r26_an_attempt_ends_at_its_deadline_whatever_the_peer_does(fault: Fault) -> None:
    with serving(fault) as server, by_httpx2(server.url) as send:
        begun = time.monotonic()
        outcome, _, _ = outcome_of(send, timeout=TIMEOUT)
        seconds = time.monotonic() - begun
    assert outcome is A
    assert TIMEOUT * 0.9 < seconds < TIMEOUT + SLACK


def test_r26_a_peer_that_does_not_read_ends_at_the_deadline() -> None:
    with serving(faults.stall_at_once) as server, http_client(base_url=server.url) as client:
        begun = time.monotonic()
        outcome, report, _ = outcome_of(
            lambda a: client.post("/", content=b"x" * 50_000_000), timeout=TIMEOUT
        )
        seconds = time.monotonic() - begun
    assert outcome is A
    assert report is not None
    assert "WriteTimeout" in report.last_error
    assert TIMEOUT * 0.9 < seconds < TIMEOUT + SLACK


def test_r26_a_name_that_is_not_found_in_time_ends_at_the_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    release = threading.Event()

    def slow(*args: Any, **kwargs: Any) -> Any:
        release.wait(10)
        raise socket.gaierror(socket.EAI_AGAIN, "no")

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    with by_httpx2("http://gateway.test") as send:
        begun = time.monotonic()
        outcome, report, _ = outcome_of(send, timeout=TIMEOUT)
        seconds = time.monotonic() - begun
    release.set()
    assert outcome is T
    assert report is not None
    assert not report.sent
    assert seconds < TIMEOUT + SLACK


@pytest.mark.parametrize("host", ["a..b", f"{'a' * 64}.test"])
def test_r26_what_is_no_name_is_told_at_once(host: str) -> None:
    """Python encodes the name before it asks; the answer of a look-up that failed so was waited for in vain."""
    with by_httpx2(f"http://{host}") as send:
        begun = time.monotonic()
        outcome, report, _ = outcome_of(send)
        seconds = time.monotonic() - begun
    assert outcome is T
    assert report is not None
    assert (report.sent, "no name" in report.last_error) == (False, True)
    assert seconds < PATIENT / 2


def test_r26_a_full_pool_of_connections_is_waited_for_no_longer_than_the_attempt() -> None:
    with (
        serving(faults.stall_before_answer) as server,
        http_client(base_url=server.url, connections=1) as client,
    ):

        def other() -> None:
            with contextlib.suppress(Exception):
                client.post("/other")

        holder = threading.Thread(target=other)
        holder.start()
        while not server.requests:
            time.sleep(0.005)  # the other thread's request is on its way
        begun = time.monotonic()
        outcome, report, _ = outcome_of(lambda a: client.post("/charge"), timeout=TIMEOUT)
        seconds = time.monotonic() - begun
        server.closing.set()
        holder.join(5)
    assert outcome is T
    assert report is not None
    assert "own-pool-exhausted" in report.last_error
    assert seconds < TIMEOUT + SLACK


def test_r24_tls_works_and_tells_the_fact() -> None:
    context = ssl.create_default_context(cafile=CERTIFICATE)
    with serving(faults.tls(CERTIFICATE)) as server:
        url = server.url.replace("http:", "https:").replace("127.0.0.1", "localhost")
        facts: list[bool | None] = []

        def send(attempt: Attempt) -> Any:
            answer = client.post("/charge", json={}).json()
            facts.append(attempt.bytes_may_have_left)
            return answer

        with http_client(base_url=url, verify=context) as client:
            assert outcome_of(send)[0] is Outcome.SUCCESS
            assert outcome_of(send)[0] is Outcome.SUCCESS
    assert facts == [True, True]
    # The second went over the first one's connection.
    assert (len(server.requests), server.connections) == (2, 1)


# -- kept connections ---------------------------------------------------------------------------------


def test_h2_a_connection_closed_while_idle_is_replaced_without_a_second_post() -> None:
    with serving(faults.close_while_idle) as server, by_httpx2(server.url) as send:
        for _ in range(3):
            assert outcome_of(send)[0] is Outcome.SUCCESS
    assert len(server.requests) == 3


def test_h2_a_reset_on_a_kept_connection_is_ambiguous_and_not_repeated_by_the_client() -> None:
    with serving(faults.reset_on_reuse) as server, by_httpx2(server.url) as send:
        assert outcome_of(send)[0] is Outcome.SUCCESS
        assert outcome_of(send)[0] is A
    assert len(server.requests) == 2


# -- one layer retries --------------------------------------------------------------------------------


def _sends(server: FaultServer, send: Send, *, keyed: bool, fault: str) -> tuple[int, int]:
    policy = RetryPolicy(attempts=3, base=0.001, cap=0.001, attempt_timeout=PATIENT, series=20)
    journal: list[int] = []
    with journalled(lambda: journal.append(1)), contextlib.suppress(CallError):
        Guard(name=fault, keyed=keyed, policy=policy).call(send)
    return len(journal), len(server.requests)


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("cell", [cell for cell in ANSWERED if "stalled" not in cell])
def test_h2_the_peer_receives_exactly_the_sends_that_the_journal_recorded(
    cell: str, keyed: bool
) -> None:
    fault, outcome = ANSWERED[cell]
    with serving(fault) as server, by_httpx2(server.url) as send:
        journalled_sends, received = _sends(server, send, keyed=keyed, fault=cell)
    assert journalled_sends == received == (3 if keyed and outcome is A else 1)


def test_the_fault_server_tells_the_truth() -> None:
    with serving(faults.success) as server, by_httpx2(server.url) as send, journalled(lambda: None):
        answer = Guard(name="peer").call(send)
    assert answer == json.loads(faults.OK)
    assert server.requests[0].startswith(b"POST /charge HTTP/1.1")
