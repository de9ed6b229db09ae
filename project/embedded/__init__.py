"""Real servers for a machine that has none: PostgreSQL and Valkey (or Redis) from wheels.

For development and tests. They listen on loopback only, behind a random password, and end with the
process that started them.
"""

from project.embedded.postgres import Postgres
from project.embedded.server import Server, ServerFailed
from project.embedded.store import Store

__all__ = ["Postgres", "Server", "ServerFailed", "Store"]
