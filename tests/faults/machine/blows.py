"""What breaks in a storm. To add something, add one line to `BLOWS`: its weight, what it does, its particulars.

What it does is a function of the deployment and the particulars, which are drawn from the script's own chance. Nothing
has to be mended here: the storm starts again what is dead (`Deployment.revive`), and what is frozen thaws by itself.
"""

import os
import random
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis
from django.db import connection

from payments.simulator.faults.kinds import KINDS
from tests.faults.machine.deployment import Deployment
from tests.support import wrongclock
from tests.support.servers import servers

GATEWAY_PATHS = ("/v1/payment_intents", "/v1/refunds", "/v1/payouts", "/v1/accounts")
Act = Callable[..., object]
Draw = Callable[[random.Random], Mapping[str, Any]]

# -- processes -----------------------------------------------------------------------------------


def killed(name: str) -> Act:
    """Kill it as a crash does."""
    return lambda deployment: deployment.restart(name)


def told(name: str, number: signal.Signals) -> Act:
    """Send it a signal, and let it do of it what it will."""
    return lambda deployment: deployment.stack[name].signal(number, group=False)


def frozen(name: str) -> Act:
    """Stop it where it is, with its children, for a while."""

    def act(deployment: Deployment, *, seconds: float) -> None:
        process = deployment.stack[name]
        deployment.freeze(process.signal, seconds=seconds)

    return act


def shifted(name: str) -> Act:
    """Let it live in another time than the database and the others."""

    def act(deployment: Deployment, *, seconds: float) -> None:
        deployment.restart(name, environment=wrongclock.off(seconds))

    return act


# -- servers: one of somebody else's is spared ------------------------------------------------------


def end_database(number: signal.Signals) -> Act:
    """End PostgreSQL, at once or without a checkpoint as a crash does, and start it again."""

    def act(_: Deployment) -> None:
        if servers.postgres is not None and servers.postgres.process is not None:
            connection.close()
            servers.postgres.process.send_signal(number)
            servers.postgres.process.wait(30)
            servers.postgres.start()

    return act


def freeze_database(deployment: Deployment, *, seconds: float) -> None:
    """Stop PostgreSQL with all that it does: whoever waits for a COMMIT waits on."""
    if servers.postgres is None or servers.postgres.process is None:
        return
    mother = servers.postgres.process.pid
    children = Path(f"/proc/{mother}/task/{mother}/children").read_text().split()

    def send(number: signal.Signals) -> None:
        for pid in (mother, *map(int, children)):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue

    deployment.freeze(send, seconds=seconds)


def cut_connections(_: Deployment) -> None:
    """End every session of the database but this one, whatever it is doing."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE usename = current_user AND pid <> pg_backend_pid()"
        )


def flush_store(deployment: Deployment) -> None:
    """Lose every message, breaker and heartbeat."""
    with redis.Redis.from_url(deployment.stack.environment["REDIS_URL"]) as client:
        client.flushdb()


def restart_store(_: Deployment) -> None:
    if servers.store is not None:
        servers.store.stop()
        servers.store.start()


def freeze_store(deployment: Deployment, *, seconds: float) -> None:
    """Let the broker hang: it takes a connection and answers nothing."""
    if servers.store is not None and servers.store.process is not None:
        deployment.freeze(servers.store.process.send_signal, seconds=seconds)


LATEST = 2.0
"""Seconds by which the gateway is late at most, with an answer or an effect."""


def gateway_fault(deployment: Deployment, **fault: Any) -> None:
    deployment.stack.simulate("POST", "/_sim/faults", fault)


# -- particulars -----------------------------------------------------------------------------------


def nothing(_: random.Random) -> Mapping[str, Any]:
    return {}


def seconds(least: float, most: float) -> Draw:
    return lambda chance: {"seconds": round(chance.uniform(least, most), 1)}


def shift(chance: random.Random) -> Mapping[str, Any]:
    return {"seconds": chance.choice([-7200, -60, 90, 7200])}


def fault(chance: random.Random) -> Mapping[str, Any]:
    return {
        "path": chance.choice(GATEWAY_PATHS),
        "kind": chance.choice(sorted(KINDS)),
        "times": chance.randint(1, 4),
        "seconds": round(chance.uniform(0.2, LATEST), 2),
    }


# -- all of them -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kind:
    """One thing that breaks: how often beside the others, how, and with which particulars."""

    weight: int
    act: Act
    draw: Draw = nothing


BLOWS = {
    "gateway_fault": Kind(10, gateway_fault, fault),
    "kill_web": Kind(3, killed("web")),
    "kill_worker": Kind(3, killed("worker")),
    "kill_beat": Kind(1, killed("beat")),
    "kill_simulator": Kind(2, killed("simulator")),
    "end_web": Kind(1, told("web", signal.SIGTERM)),
    "quit_web": Kind(1, told("web", signal.SIGQUIT)),
    "end_worker": Kind(1, told("worker", signal.SIGTERM)),
    "quit_worker": Kind(1, told("worker", signal.SIGQUIT)),
    "freeze_web": Kind(2, frozen("web"), seconds(1, 12)),
    "freeze_worker": Kind(2, frozen("worker"), seconds(1, 12)),
    "shift_web": Kind(1, shifted("web"), shift),
    "shift_worker": Kind(1, shifted("worker"), shift),
    "crash_database": Kind(1, end_database(signal.SIGQUIT)),
    "restart_database": Kind(1, end_database(signal.SIGINT)),
    "freeze_database": Kind(1, freeze_database, seconds(0.5, 5)),
    "cut_connections": Kind(2, cut_connections),
    "flush_store": Kind(2, flush_store),
    "restart_store": Kind(1, restart_store),
    "freeze_store": Kind(1, freeze_store, seconds(0.5, 5)),
}
