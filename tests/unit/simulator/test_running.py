"""The simulator in this process, where its clock and its threads can be seen."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from payments.simulator import Config, Settings, Simulator
from payments.simulator.cli import main

CHARGE = b"amount=5&currency=eur&confirm=true&payment_method=pm_card_visa&metadata[reference]=r"


class SetClock:
    """A clock that stands still until it is set."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def simulator(tmp_path: Path, clock: SetClock) -> Iterator[Simulator]:
    config = Config(lookup_lag=60.0, key_ttl=3600.0)
    simulator = Simulator(Settings(data_dir=tmp_path, port=0, config=config), clock=clock)
    simulator.start()
    yield simulator
    simulator.stop()


def _connect(simulator: Simulator) -> socket.socket:
    port = int(simulator.url.rpartition(":")[2])
    return socket.create_connection(("127.0.0.1", port), timeout=5)


def _request(method: str, target: str, body: bytes = b"", key: str = "k") -> bytes:
    head = (
        f"{method} {target} HTTP/1.1\r\nAuthorization: Bearer sk_test_x\r\n"
        f"Idempotency-Key: {key}\r\nContent-Length: {len(body)}\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + body


def _ask(simulator: Simulator, method: str, target: str, body: bytes = b"", key: str = "k") -> Any:
    with _connect(simulator) as client:
        client.sendall(_request(method, target, body, key))
        answer = b""
        while received := client.recv(65536):
            answer += received
    return json.loads(answer.partition(b"\r\n\r\n")[2])


def test_search_shows_what_is_older_than_the_lag(simulator: Simulator, clock: SetClock) -> None:
    _ask(simulator, "POST", "/v1/payment_intents", CHARGE)
    target = "/v1/payment_intents/search?query=metadata%5B%27reference%27%5D%3A%27r%27"
    clock.now += 59
    assert _ask(simulator, "GET", target)["data"] == []
    clock.now += 1
    assert len(_ask(simulator, "GET", target)["data"]) == 1


def test_a_key_is_forgotten_at_its_time(simulator: Simulator, clock: SetClock) -> None:
    first = _ask(simulator, "POST", "/v1/payment_intents", CHARGE)
    clock.now += 3599
    assert _ask(simulator, "POST", "/v1/payment_intents", CHARGE) == first
    clock.now += 1
    assert _ask(simulator, "POST", "/v1/payment_intents", CHARGE)["id"] != first["id"]


def test_what_is_postponed_comes_when_it_is_due(simulator: Simulator, clock: SetClock) -> None:
    fault = {"path": "/v1/payment_intents", "kind": "late_success", "seconds": 600}
    _ask(simulator, "POST", "/_sim/faults", json.dumps(fault).encode())
    with _connect(simulator) as client:
        client.sendall(_request("POST", "/v1/payment_intents", CHARGE))
        with pytest.raises(ConnectionResetError):
            client.recv(1)
    again = _ask(simulator, "POST", "/v1/payment_intents", CHARGE)
    assert again["error"]["code"] == "idempotency_key_in_use"
    clock.now += 600
    _until(lambda: len(_ask(simulator, "GET", "/_sim/effects")) == 1)
    assert _ask(simulator, "POST", "/v1/payment_intents", CHARGE)["status"] == "succeeded"


@pytest.mark.parametrize("kind", ["hang_sending_before", "hang_before", "hang_mid_body_after"])
def test_a_hang_ends_when_the_client_leaves(simulator: Simulator, kind: str) -> None:
    fault = {"path": "/v1/payment_intents", "kind": kind, "seconds": 600}
    _ask(simulator, "POST", "/_sim/faults", json.dumps(fault).encode())
    _until(lambda: _conversations() == 0)
    with _connect(simulator) as client:
        client.sendall(_request("POST", "/v1/payment_intents", CHARGE))
        _until(lambda: len(_ask(simulator, "GET", "/_sim/requests")) == 1)
        _until(lambda: _conversations() == 1)
    _until(lambda: _conversations() == 0)


def test_requests_sent_at_once_are_answered_in_turn(simulator: Simulator) -> None:
    rates = b"GET /deps/rates HTTP/1.1\r\n\r\n"
    last = b"GET /deps/offers HTTP/1.1\r\nConnection: close\r\n\r\n"
    with _connect(simulator) as client:
        client.sendall(rates + rates + last)
        answer = b""
        while received := client.recv(65536):
            answer += received
    assert answer.count(b"HTTP/1.1 200 OK") == 3


def test_a_taken_port_leaves_the_record_free(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings = Settings(data_dir=tmp_path, port=taken.getsockname()[1])
        with pytest.raises(OSError, match="in use"):
            Simulator(settings)
    simulator = Simulator(Settings(data_dir=tmp_path, port=0))
    simulator.start()
    simulator.stop()


def test_the_command_line_asks_for_a_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["payments.simulator"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2


def _conversations() -> int:
    return sum("process_request_thread" in thread.name for thread in threading.enumerate())


def _until(holds: Any) -> None:
    ends = time.monotonic() + 5
    while not holds():
        assert time.monotonic() < ends
        time.sleep(0.005)
