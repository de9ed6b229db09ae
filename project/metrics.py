"""Serve the metrics of all processes that share PROMETHEUS_MULTIPROC_DIR, and how the ledger stands."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from idempotency import metrics


@require_GET
@never_cache
def show(request: HttpRequest) -> HttpResponse:
    """Return the metrics in Prometheus' text form."""
    return HttpResponse(metrics.exposition(request), content_type=metrics.CONTENT_TYPE)
