"""RabbitMQ as Debian installs it (`apt install rabbitmq-server`), started on loopback for the length of a test.

    TEST_BROKER=rabbitmq pytest -m "" tests/faults/operations

runs the tests of deferred work with it in the place of Valkey; so does `nox -s rabbitmq`.
"""

import os
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from project import lifeline
from project.embedded.server import HOST, Server, free_port

PROGRAM = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
EPMD = Path("/usr/bin/epmd")


class RabbitMQ(Server):
    """One node, with a name server of Erlang's of its own: the usual one would be left behind."""

    name = "rabbitmq"

    @staticmethod
    def installed() -> bool:
        """Return whether it can be started."""
        return PROGRAM.exists() and EPMD.exists()

    def __init__(self, *, home: Path, port: int = 0) -> None:
        super().__init__(home=home, port=port)
        self._names = free_port()
        self._distribution = free_port()
        self._name_server: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@{HOST}:{self.port}//"

    def program(self) -> Sequence[str]:
        return [str(PROGRAM)]

    def spawn(self, output: int) -> subprocess.Popen[bytes]:
        self._start_names()
        return subprocess.Popen(
            lifeline.command(self.program(), death=signal.SIGKILL),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            process_group=0,
            env={**os.environ, **self._environment()},
        )

    def ready(self) -> bool:
        """Return whether it greets. Source: AMQP 0-9-1 §4.2.2."""
        try:
            with socket.create_connection((HOST, self.port), timeout=1) as connection:
                connection.sendall(b"AMQP\x00\x00\x09\x01")
                return connection.recv(1) == b"\x01"
        except OSError:
            return False

    def stop(self, *, grace: float = 30.0) -> None:
        super().stop(grace=grace)
        if self._name_server is not None:
            self._name_server.kill()
            self._name_server.wait()
            self._name_server = None

    def kill(self) -> None:
        """End it by force, with the virtual machine under its script."""
        if self.process is not None:
            self.signal(signal.SIGKILL)
            self.process.wait()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to all its processes."""
        assert self.process is not None
        os.killpg(self.process.pid, number)

    def _start_names(self) -> None:
        if self._name_server is None:
            self._name_server = subprocess.Popen(
                lifeline.command(
                    [str(EPMD), "-address", HOST, "-port", str(self._names)], death=signal.SIGKILL
                ),
                stdin=subprocess.DEVNULL,
            )

    def _environment(self) -> Mapping[str, str]:
        return {
            "HOME": str(self.home),
            "ERL_EPMD_ADDRESS": HOST,
            "ERL_EPMD_PORT": str(self._names),
            "RABBITMQ_NODENAME": f"test{self.port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": HOST,
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(self._distribution),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
            "RABBITMQ_MNESIA_BASE": str(self.home / "mnesia"),
            "RABBITMQ_LOG_BASE": str(self.home / "log"),
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_PID_FILE": str(self.home / "pid"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.home / "plugins"),
            "RABBITMQ_CONF_ENV_FILE": str(self.home / "no-environment"),
            "RABBITMQ_CONFIG_FILE": str(self.home / "no-configuration"),
        }
