"""Run a Python program with throw-away servers.

python -m project.embedded manage.py migrate
python -m project.embedded -m benchmarks
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from project.embedded import Postgres, Store


def main() -> int:
    """Start what the environment does not name, run the program, return its exit code."""
    home = Path(tempfile.mkdtemp(prefix="idempotency-ledger-"))
    home.chmod(0o755)
    started: list[Postgres | Store] = []
    addresses = {}
    try:
        if not os.environ.get("DATABASE_URL"):
            started.append(Postgres(home=home / "postgres", durable=False))
            addresses["DATABASE_URL"] = started[-1].start()
        if not os.environ.get("REDIS_URL"):
            started.append(Store(home=home / "store", durable=False))
            addresses["REDIS_URL"] = started[-1].start()
        return subprocess.run(
            [sys.executable, *sys.argv[1:]], env=os.environ | addresses, check=False
        ).returncode
    finally:
        for server in reversed(started):
            server.stop()
            server.remove()
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
