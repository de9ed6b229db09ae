"""Configuration of the web server: `gunicorn --config python:project.gunicorn project.wsgi`."""

import os
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from prometheus_client import multiprocess

from project import environment, lifeline
from project.settings import LOGGING

wsgi_app = "project.wsgi"
# Loopback unless told otherwise: TLS and the outside are a proxy's business.
bind = f"{environment.text('WEB_HOST', '127.0.0.1')}:{environment.port('PORT', 8000)}"
workers = environment.integer("WEB_WORKERS", 2, least=1, most=64)
# A request waits for a gateway most of its time; a thread each, in few processes.
worker_class = "gthread"
threads = environment.integer("WEB_THREADS", 8, least=1, most=256)
# A worker that does not even turn its own loop for so long is hung: it is killed.
timeout = 30
# An orderly stop lets requests end for this long; `make run` stops within ten seconds in all.
graceful_timeout = 5
keepalive = 5
# Its own control channel would be a file in the home directory, one for all checkouts.
control_socket_disable = True
logconfig_dict = LOGGING | {"loggers": {"gunicorn.error": {"propagate": True, "handlers": []}}}


def post_fork(server: Any, worker: Any) -> None:
    """End a worker whose master was killed, at once, so that the port is free again."""
    lifeline.end_with_parent()


def post_worker_init(worker: Any) -> None:
    """Refuse a configuration that cannot work; make the first request as quick as the second."""
    from project import ready, warm

    kind = worker.cfg.worker_class_str
    if "gevent" in kind or "eventlet" in kind:
        raise ImproperlyConfigured(
            f"gunicorn's worker class {kind} cannot serve this project: it replaces threads "
            "after Django has been loaded, and each request is then refused another's database connection. "
            "Use gthread, or an ASGI server for project.asgi."
        )
    warm.load()
    ready.require()


def child_exit(server: Any, worker: Any) -> None:
    """Take a dead worker's gauges out of the metrics."""
    if os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
        multiprocess.mark_process_dead(worker.pid)
