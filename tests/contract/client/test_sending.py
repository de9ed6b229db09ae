"""What a client does with each answer, on real sockets, against a server that answers as a script says."""

from typing import Any

import pytest

from idempotency.client import (
    IntentChanged,
    NotRenewable,
    StillOpen,
)
from idempotency.exceptions import CallFailed
from tests.contract.client.calling import BUSY, DONE, IN_PROGRESS, UNKNOWN, UNKNOWN_FIRST, Make, pay
from tests.support.faultserver import Exchange, serving
from tests.support.scripted import Line, Script, keys, lost, problem


def test_what_was_not_executed_is_tried_again_under_one_key(make: Make) -> None:
    """R25: the server's word is never shortened."""
    with serving(Script(BUSY, BUSY, DONE)) as server:
        caller = make(server)
        answer = pay(caller)
    assert (answer.status, answer.json()) == (201, {"id": "p1"})
    assert len(keys(server)) == 3
    assert len(set(keys(server))) == 1
    assert caller.time.waits == [3.0, 3.0]


@pytest.mark.parametrize("line", [lost, (500, {}), (502, {}), (503, {"no": "code"})])
def test_what_may_have_been_executed_is_tried_again_under_the_same_key(
    make: Make, line: Line
) -> None:
    with serving(Script(line, line, DONE)) as server:
        answer = pay(make(server))
    assert answer.status == 201
    assert len(keys(server)) == 3
    assert len(set(keys(server))) == 1


def ended_by_the_connection(status: int, kind: str, body: bytes) -> Line:
    """Return a line whose length nobody tells, so that a cut is not noticed on the wire."""

    def answer(exchange: Exchange) -> None:
        if exchange.read_request():
            head = f"HTTP/1.1 {status} Status\r\nContent-Type: {kind}\r\nConnection: close\r\n\r\n"
            exchange.socket.sendall(head.encode() + body)

    return answer


@pytest.mark.parametrize(
    "broken",
    [
        ended_by_the_connection(201, "application/json", b'{"id": "p1", "amou'),
        ended_by_the_connection(201, "application/json", b""),
        ended_by_the_connection(201, "application/json; charset=utf-8", b'{"id": "\xff'),
        ended_by_the_connection(402, "application/problem+json", b'{"code": "payment-decl'),
        ended_by_the_connection(200, "text/html", b"<html>Log in to this network"),
        ended_by_the_connection(409, "text/html", b"<html>Conflict"),
    ],
)
def test_what_is_cut_or_no_answer_of_the_server_is_asked_for_again(
    make: Make, broken: Line
) -> None:
    """Kept as the final answer, it would be all that is ever known of the operation."""
    with serving(Script(broken, DONE)) as server:
        caller = make(server)
        assert pay(caller).json() == {"id": "p1"}
    assert len(set(keys(server))) == 1
    assert len(keys(server)) == 2


def raw(answer: bytes) -> Line:
    """Return a line that sends these bytes, and ends."""

    def send(exchange: Exchange) -> None:
        if exchange.read_request():
            exchange.socket.sendall(answer)

    return send


@pytest.mark.parametrize(
    "broken",
    [
        raw(b"HTTP/1.1 201 Created\r\n"),
        raw(b"HTTP/1.1 201 Created\r\nContent-Type: app"),
        raw(b"HTTP/1.1 402 Payment Required\r\nServer: x\r\n"),
        raw(b"HTTP/1.1 201 Created\r\nContent-Length: 9\r\nContent-Length: 4\r\n\r\n{}"),
        raw(b"HTTP/1.1 201 Created\r\nContent-Length: 9\r\n\r\n{}"),
        raw(b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n"),
    ],
)
def test_an_answer_that_breaks_off_or_contradicts_itself_is_asked_for_again(
    make: Make, broken: Line
) -> None:
    """Whatever the library makes of it: a head that ends early, an error that is named like one of the request's."""
    with serving(Script(broken, DONE)) as server:
        assert pay(make(server)).json() == {"id": "p1"}
    assert len(set(keys(server))) == 1
    assert len(keys(server)) == 2


@pytest.mark.parametrize(
    "length", [b"Content-Length: 0\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"]
)
def test_an_answer_that_says_that_it_is_empty_is_whole(make: Make, length: bytes) -> None:
    with serving(Script(raw(b"HTTP/1.1 201 Created\r\n" + length))) as server:
        assert pay(make(server)).status == 201


def test_what_is_never_whole_is_not_known(make: Make) -> None:
    with serving(Script(ended_by_the_connection(201, "application/json", b"[" * 200_000))) as it:
        caller = make(it)
        with pytest.raises(StillOpen):
            pay(caller)
    assert [intent.name for intent in caller.store.unanswered()] == ["charge 881"]


def test_an_answer_without_a_body_is_whole(make: Make) -> None:
    with serving(Script(ended_by_the_connection(204, "application/json", b""))) as server:
        assert pay(make(server)).status == 204


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (524, {"error_code": 524, "retryable": True}),
        (503, {"status": 503, "retryable": True}),
        (500, {"code": "internal", "retryable": True}),
    ],
)
def test_retryable_of_somebody_else_does_not_mean_that_nothing_happened(
    make: Make, status: int, body: dict[str, Any]
) -> None:
    """A network in between says it of an answer that it lost."""
    with serving(Script((status, body))) as server, pytest.raises(StillOpen):
        pay(make(server))


def test_what_is_in_progress_or_unknown_is_waited_for(make: Make) -> None:
    """Far more often than an attempt may be repeated: waiting is no failure."""
    lines = [UNKNOWN_FIRST, *[UNKNOWN] * 5, IN_PROGRESS, DONE]
    with serving(Script(*lines)) as server:
        caller = make(server)
        assert pay(caller).status == 201
    assert len(keys(server)) == len(lines)
    assert len(set(keys(server))) == 1
    assert caller.time.waits == [5.0] * 6 + [2.0]


def test_past_the_deadline_it_is_still_open_and_says_what_to_do(make: Make) -> None:
    with serving(Script(UNKNOWN)) as server:
        caller = make(server)
        with pytest.raises(StillOpen) as caught:
            pay(caller, deadline=12)
        assert sum(caller.time.waits) <= 12
        open_ = caught.value
        assert (open_.intent, open_.code, open_.operation_ref, open_.retry_after) == (
            "charge 881",
            "outcome-unknown",
            "ref-1",
            5.0,
        )
        with pytest.raises(StillOpen):
            pay(caller.again(), deadline=12)
    assert len(set(keys(server))) == 1


def test_what_certainly_did_not_happen_is_told_so(make: Make) -> None:
    """With the server's own reason; and the request may then be another."""
    with serving(Script(BUSY)) as server:
        caller = make(server)
        with pytest.raises(CallFailed) as caught:
            pay(caller)
        assert (caught.value.code, caught.value.retry_after) == ("overloaded", 3.0)
        with pytest.raises(CallFailed):
            caller.post("/api/payments/", json={"another": 1}, intent="charge 881")
    assert len(set(keys(server))) == 1


def test_a_server_that_is_not_there_got_nothing(make: Make) -> None:
    with serving(Script(DONE)) as server:
        pass
    caller = make(server)
    with pytest.raises(CallFailed):
        pay(caller)
    assert caller.store.unanswered() == []


def test_after_a_lost_answer_nothing_is_certain_any_more(make: Make) -> None:
    """A refusal in a later call does not undo what an earlier one may have done."""
    with serving(Script(lost)) as server:
        caller = make(server)
        with pytest.raises(StillOpen):
            pay(caller)
    with pytest.raises(StillOpen):
        pay(caller.again())
    with pytest.raises(IntentChanged):
        caller.post("/api/payments/", json={"another": 1}, intent="charge 881")


def test_a_final_answer_is_asked_for_once(make: Make) -> None:
    with serving(Script(DONE)) as server:
        caller = make(server)
        first, second = pay(caller), pay(caller.again())
    assert (first.remembered, second.remembered) == (False, True)
    assert first.json() == second.json()
    assert len(server.requests) == 1


def test_a_verdict_is_an_answer_and_a_new_key_only_after_it(make: Make) -> None:
    declined = problem(402, "payment-declined", retryable=False, safe_new_key=True)
    with serving(Script(declined, DONE)) as server:
        caller = make(server)
        assert (pay(caller).status, pay(caller).code) == (402, "payment-declined")
        assert len(server.requests) == 1
        caller.renew("charge 881")
        assert pay(caller).status == 201
        with pytest.raises(NotRenewable):
            caller.renew("charge 881")
    first, second = keys(server)
    assert first != second


def test_a_refused_request_can_be_corrected_under_its_key(make: Make) -> None:
    with serving(Script(problem(400, "invalid"), DONE)) as server:
        caller = make(server)
        assert pay(caller).status == 400
        answer = caller.post("/api/payments/", json={"amount": 6}, intent="charge 881")
    assert answer.status == 201
    assert len(set(keys(server))) == 1


def test_a_refusal_after_a_lost_answer_frees_nothing(make: Make) -> None:
    """The token ran out between two tries: the first may have been done."""
    with serving(Script(lost, problem(401, "not-authenticated"))) as server:
        caller = make(server)
        assert pay(caller).status == 401
        with pytest.raises(IntentChanged):
            caller.post("/api/payments/", json={"amount": 6}, intent="charge 881")
    assert [intent.name for intent in caller.store.unanswered()] == ["charge 881"]


def test_a_reused_key_is_neither_done_nor_denied(make: Make) -> None:
    with serving(Script(problem(422, "key-reused", safe_new_key=False))) as server:
        with pytest.raises(StillOpen) as caught:
            pay(make(server))
        assert caught.value.code == "key-reused"


def test_what_an_earlier_process_began_is_finished(make: Make) -> None:
    with serving(Script(lost, lost, lost, lost, DONE)) as server:
        caller = make(server)
        with pytest.raises(StillOpen):
            pay(caller)
        ends = caller.again().resume()
    assert ends["charge 881"].status == 201
    assert len(set(keys(server))) == 1
    assert caller.store.unanswered() == []
