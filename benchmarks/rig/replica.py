"""A streaming replica of a PostgreSQL server of ours."""

from pathlib import Path

from project.embedded import Postgres, ServerFailed


class Replica(Postgres):
    """A hot standby: copied from the other server by pg_basebackup, then following it."""

    def __init__(self, *, home: Path, of: Postgres) -> None:
        super().__init__(home=home, max_connections=of.max_connections)
        self._of = of

    @property
    def password(self) -> str:
        """Return the other's: users and passwords are copied too."""
        return self._of.password

    def prepare(self) -> None:
        """Copy the other server. Raises: ServerFailed."""
        self.data.mkdir(mode=0o700)
        self._hand_over(self.data)
        words = ("-D", str(self.data), "-R", "-X", "stream", "-c", "fast", "-d", self._of.url)
        done = self._run("pg_basebackup", *words)
        if done.returncode:
            raise ServerFailed(f"pg_basebackup failed: {done.stderr.strip()[-600:]}")

    def settle(self) -> None:
        """Make nothing: it takes no writes."""
