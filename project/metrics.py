"""Serve the process's metrics, or those of all processes that share PROMETHEUS_MULTIPROC_DIR."""

import os

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector


@require_GET
def show(request: HttpRequest) -> HttpResponse:
    """Return the metrics in Prometheus' text form."""
    registry = REGISTRY
    if os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
        # One scrape reaches one web process; the files tell about all of them, and the worker.
        registry = CollectorRegistry()
        MultiProcessCollector(registry)
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)
