"""The client over each HTTP library; time is a number: waiting takes none, and its length is looked at."""

import asyncio
from collections.abc import Iterator
from time import time as now
from typing import Any

import httpx2
import pytest
import requests

from idempotency.client import (
    AsyncClient,
    Client,
    MemoryIntents,
)
from tests.contract.client.calling import POLICY, Caller, Make
from tests.support.faketime import FakeTime
from tests.support.faultserver import FaultServer


@pytest.fixture(params=["requests", "httpx2", "default", "async"])
def make(request: pytest.FixtureRequest) -> Iterator[Make]:
    with asyncio.Runner() as runner, requests.Session() as session, httpx2.Client() as client:
        session.trust_env = False
        time, store = FakeTime(wall=now()), MemoryIntents()
        asynchronous = httpx2.AsyncClient()
        https = {"requests": session, "httpx2": client, "default": None, "async": asynchronous}
        http = https[request.param]

        async def run(made: Any) -> Any:
            return await made

        def caller(server: FaultServer) -> Caller:
            kind: Any = AsyncClient if request.param == "async" else Client
            made = kind(server.url, store=store, http=http, policy=POLICY, clock=time.clock)
            return Caller(made, time, lambda it: runner.run(run(it)), store, lambda: caller(server))

        yield caller
        runner.run(asynchronous.aclose())
