"""How the processes of the deployment reach PostgreSQL."""

from typing import Any

from django.core.exceptions import ImproperlyConfigured

from project import environment

# Milliseconds. A statement of the web ends within the request's budget (12 s by default), one of a
# worker well within a third of the lease (45 s); a migration or report may take its time. A lock
# is waited for briefly everywhere: what waits longer is a twin, and has an answer of its own.
STATEMENT_TIMEOUT = {"web": 10_000, "worker": 15_000, "command": 0}
# Seconds on top of that after which a server that does not even end a statement is given up.
GRACE = 2.0
LOCK_TIMEOUT = {"web": 5_000, "worker": 5_000, "command": 10_000}


def connection(role: str) -> dict[str, Any]:
    """Return what Django's DATABASES says of it, as the environment has it.

    Args:
        role: which kind of process this is: web, worker or command.

    Raises:
        ImproperlyConfigured: there is no such role, or a variable cannot be read.
    """
    if role not in STATEMENT_TIMEOUT:
        raise ImproperlyConfigured(f"PROCESS_ROLE={role!r} is not web, worker or command.")
    address = environment.text("DATABASE_URL", "postgresql://postgres@127.0.0.1:5432/postgres")
    settings = environment.database(address)
    # synchronous_commit stays on: an acknowledged claim must survive a crash of the server.
    timeouts = (
        f"-c statement_timeout={STATEMENT_TIMEOUT[role]} -c lock_timeout={LOCK_TIMEOUT[role]}"
    )
    # PgBouncer in transaction mode refuses them at connecting, and a cursor ends with its transaction there, as does a
    # prepared statement before its version 1.21.
    pooled = environment.flag("DATABASE_POOLED")
    settings["OPTIONS"] = {
        "connect_timeout": 3,
        # A server that vanished without a word is noticed after about 10 + 3 x 5 seconds.
        "keepalives": 1,
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": 20_000,
        "application_name": f"idempotency-ledger-{role}",
        "options": "" if pooled else timeouts,
        # What a connection has sent five times it prepares: PostgreSQL parses and plans it no more.
        "server_side_binding": not pooled,
        "prepare_threshold": None if pooled else 5,
    } | settings["OPTIONS"]
    return settings | {
        "ANSWER_WITHIN": STATEMENT_TIMEOUT[role] and STATEMENT_TIMEOUT[role] / 1000 + GRACE,
        "CONN_MAX_AGE": environment.integer("CONN_MAX_AGE", 60),
        "CONN_HEALTH_CHECKS": True,
        "DISABLE_SERVER_SIDE_CURSORS": pooled,
        # The ledger opens and ends its transactions itself: an outside call has none open.
        "ATOMIC_REQUESTS": False,
    }
