"""Command-line flags, shared by `python -m payments.simulator` and `manage.py`."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from pathlib import Path

from payments.simulator.config import Config
from payments.simulator.control_input import BadControl, an_address
from payments.simulator.record.store import DirectoryInUse
from payments.simulator.simulator import Settings, Simulator


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add this program's flags to a parser."""
    parser.add_argument("--host", default=Settings.host, help="address to listen on")
    parser.add_argument("--port", type=int, default=Settings.port, help="port; 0 takes a free one")
    parser.add_argument(
        "--data-dir", type=Path, required=True, help="directory of the durable record"
    )
    parser.add_argument("--no-keys", action="store_true", help="ignore idempotency keys")
    parser.add_argument("--webhook-url", help="where events are sent; none are without it")
    parser.add_argument(
        "--webhook-secret", default=Config.webhook_secret, help="what events are signed with"
    )


def run(
    *,
    host: str,
    port: int,
    data_dir: Path,
    no_keys: bool,
    webhook_url: str | None,
    webhook_secret: str,
) -> None:
    """Serve until SIGTERM or SIGINT.

    Raises:
        SystemExit: the gateway cannot start; the message says why.
    """
    if webhook_url is not None:
        _require_address(webhook_url)
    config = Config(idempotency=not no_keys, webhook_url=webhook_url, webhook_secret=webhook_secret)
    ending = threading.Event()
    for signum in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signum, lambda *_: ending.set())
    try:
        simulator = Simulator(Settings(data_dir=data_dir, host=host, port=port, config=config))
    except (DirectoryInUse, OSError) as error:
        raise SystemExit(f"payments simulator: cannot start: {error}") from error
    simulator.start()
    sys.stdout.write(f"payments simulator listening on {simulator.url}\n")
    sys.stdout.flush()
    ending.wait()
    simulator.stop()


def _require_address(webhook_url: str) -> None:
    try:
        an_address(webhook_url, "--webhook-url")
    except BadControl as error:
        raise SystemExit(f"payments simulator: {error}") from error


def main() -> None:
    """Read the flags and run."""
    parser = argparse.ArgumentParser(
        prog="python -m payments.simulator", description="A stand-in payment gateway."
    )
    add_flags(parser)
    run(**vars(parser.parse_args()))
