"""A fork shares connections: of two processes on one, each may read the answer to the other's request."""

import subprocess
import sys

import pytest

from tests.support.faultserver import Exchange, serving

PREPARED = """
import os, sys, httpx2, requests
from idempotency.client import Client, MemoryIntents
from idempotency.exceptions import Misuse
from idempotency.resilience import http_client

session = requests.Session()
session.trust_env = False
url, name = sys.argv[1:]
http = {"requests": session, "httpx2": httpx2.Client(trust_env=False), "default": None}[name]

def forked(do):
    child = os.fork()
    if child == 0:
        do()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""


def answering(exchange: Exchange) -> None:
    """Answer each request of the connection."""
    while exchange.read_request():
        exchange.answer()


def run(program: str, url: str, name: str = "default") -> str:
    ended = subprocess.run(
        [sys.executable, "-c", PREPARED + program, url, name],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.parametrize("name", ["requests", "httpx2", "default"])
def test_a_client_that_has_sent_is_of_no_use_after_a_fork(name: str) -> None:
    program = """
client = Client(url, store=MemoryIntents(), http=http)
promised = client.post("/", json={}, intent="parent")

def child():
    for send in (
        lambda: client.post("/", json={}, intent="child"),
        lambda: client.resume(),
        lambda: client.follow(promised),
    ):
        try:
            send()
        except Misuse:
            print("refused", flush=True)

forked(child)
print(client.post("/", json={}, intent="again").status)
"""
    with serving(answering) as server:
        assert run(program, server.url, name).split() == ["refused"] * 3 + ["200"]
    assert len(server.requests) == 2


def test_one_that_has_not_sent_is_each_process_own() -> None:
    program = """
client = Client(url, store=MemoryIntents(), http=http)
for _ in range(2):
    forked(lambda: print(client.post("/", json={}, intent="n").status, flush=True))
"""
    with serving(answering) as server:
        assert run(program, server.url).split() == ["200", "200"]
    assert server.connections == 2


def test_the_guards_http_client_opens_connections_of_its_own() -> None:
    program = """
http = http_client()
http.post(url)
forked(lambda: http.post(url))
http.post(url)
"""
    with serving(answering) as server:
        run(program, server.url)
    assert len(server.requests) == 3
    assert server.connections == 2, "the parent's own, and the child's"
