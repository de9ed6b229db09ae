"""The simulator as a process: what a kill leaves, how it starts, how it ends."""

from __future__ import annotations

import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
import requests
import stripe

from tests.contract.simulator_process import ROOT, Gateway, eventually, running


def test_the_record_survives_a_kill(tmp_path: Path) -> None:
    with running(tmp_path) as gateway:
        gateway.configure(lookup_lag=0.0, latency=0.01)
        gateway.add_fault("refuse_503", times=3)
        with pytest.raises(stripe.APIError):
            gateway.charge(key="k1")
        gateway.control("POST", "faults", {"path": "/v1/refunds", "kind": "drip"})
        gateway.control("POST", "reset")
        gateway.configure(latency=0.01)
        gateway.add_fault("refuse_503", "/v1/payouts", times=3)
        first = gateway.charge(key="k1")
        record = _everything(gateway)
        gateway.kill()
    with running(tmp_path) as gateway:
        assert _everything(gateway) == record
        assert gateway.charge(key="k1").id == first.id
        assert len(gateway.effects()) == 1


def test_nothing_is_acknowledged_that_a_kill_could_lose(tmp_path: Path) -> None:
    acknowledged: list[str] = []

    def charge_until_it_dies(gateway: Gateway, number: int) -> None:
        turn = 0
        with suppress(stripe.APIConnectionError):
            while turn := turn + 1:
                acknowledged.append(gateway.charge(key=f"k{number}-{turn}").id)

    with running(tmp_path) as gateway, ThreadPoolExecutor(4) as pool:
        for number in range(4):
            pool.submit(charge_until_it_dies, gateway, number)
        eventually(lambda: len(acknowledged), lambda count: count > 20)
        gateway.kill()
    with running(tmp_path) as gateway:
        moved = [effect["id"] for effect in gateway.effects()]
        keys = [effect["idempotency_key"] for effect in gateway.effects()]
    assert set(acknowledged) <= set(moved)
    assert len(set(keys)) == len(keys)


def test_a_request_under_way_at_a_kill_leaves_its_key_free(tmp_path: Path) -> None:
    with running(tmp_path) as gateway, ThreadPoolExecutor() as pool:
        gateway.configure(latency=30)
        lost = pool.submit(gateway.charge, key="k1", timeout=20)
        eventually(gateway.requests, bool)
        gateway.kill()
        assert isinstance(lost.exception(), stripe.APIConnectionError)
    with running(tmp_path) as gateway:
        gateway.configure(latency=0)
        assert gateway.effects() == []
        assert gateway.charge(key="k1").status == "succeeded"
        assert [request["status"] for request in gateway.requests()] == [None, 200]


def test_a_late_success_survives_a_kill(tmp_path: Path) -> None:
    with running(tmp_path) as gateway:
        gateway.add_fault("late_success", seconds=0.5)
        with pytest.raises(stripe.APIConnectionError):
            gateway.charge(key="k1")
        gateway.kill()
    with running(tmp_path) as gateway:
        eventually(gateway.effects, lambda effects: len(effects) == 1)


def test_sigterm_ends_it_although_clients_wait(tmp_path: Path) -> None:
    with running(tmp_path) as gateway, ThreadPoolExecutor() as pool:
        gateway.add_fault("hang_before", seconds=600)
        waiting = pool.submit(gateway.charge, timeout=20)
        eventually(gateway.requests, bool)
        gateway.process.terminate()
        assert gateway.process.wait(timeout=5) == 0
        assert isinstance(waiting.exception(), stripe.APIConnectionError)


def test_a_directory_serves_one_process(tmp_path: Path) -> None:
    with running(tmp_path):
        second = _start("--port", "0", "--data-dir", str(tmp_path))
    assert second.returncode == 1
    assert "another process keeps its record" in second.stderr


def test_a_taken_port_is_said_in_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        second = _start("--port", port, "--data-dir", str(tmp_path))
    assert second.returncode == 1
    assert len(second.stderr.splitlines()) == 1


def test_a_wrong_webhook_address_is_said_in_one_line(tmp_path: Path) -> None:
    second = _start("--port", "0", "--data-dir", str(tmp_path), "--webhook-url", "nowhere")
    assert second.returncode == 1
    assert "--webhook-url" in second.stderr


def test_configuration_is_read_and_refused_by_field(tmp_path: Path) -> None:
    with running(tmp_path) as gateway:
        config = gateway.control("GET", "config")
        assert (config["idempotency"], config["webhooks"], config["key_ttl"]) == (
            True,
            "off",
            86400,
        )
        for change, field in (
            ({"key_ttl": "1"}, "key_ttl"),
            ({"lookup_lag": -1}, "lookup_lag"),
            ({"idempotency": 1}, "idempotency"),
            ({"webhooks": "thrice"}, "webhooks"),
            ({"webhook_url": "ftp://x"}, "webhook_url"),
            ({"latency": 1, "colour": "red"}, "colour"),
        ):
            assert gateway.refused_control("PUT", "config", change) == field
        assert gateway.control("GET", "config") == config


@pytest.mark.parametrize(
    "octets",
    [
        b"nonsense\r\n\r\n",
        b"POST /v1/refunds HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        b"POST /v1/refunds HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST /v1/refunds HTTP/1.1\r\nno colon\r\n\r\n",
        b"POST /v1/refunds HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n",
    ],
)
def test_what_is_no_request_is_refused(tmp_path: Path, octets: bytes) -> None:
    with running(tmp_path) as gateway:
        port = int(gateway.url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=5) as client:
            client.sendall(octets)
            assert client.recv(65536).startswith(b"HTTP/1.1 400 ")
        assert requests.get(f"{gateway.url}/deps/rates", timeout=5).status_code == 200


def _everything(gateway: Gateway) -> list[object]:
    names = ("effects", "requests", "faults", "config")
    return [gateway.control("GET", name) for name in names]


def _start(*flags: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "payments.simulator", *flags],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
