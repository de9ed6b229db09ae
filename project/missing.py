"""What answers where nothing is, or where no view could: a problem under /api/, and elsewhere a page."""

import sys
from typing import Any, NoReturn

from django.db import DatabaseError, InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, HttpResponsePermanentRedirect
from django.http.response import HttpResponseBase
from django.views.decorators.csrf import csrf_exempt
from django.views.defaults import server_error
from rest_framework.exceptions import APIException, NotFound
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.views import APIView

from idempotency.exceptions import LedgerUnavailable
from idempotency.resilience import is_outage


class Missing(APIView):
    """Whatever the method and whoever asks: there is nothing here."""

    authentication_classes: list[Any] = []
    permission_classes = [AllowAny]
    schema = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse before the method is looked at."""
        super().initial(request, *args, **kwargs)
        raise NotFound


@csrf_exempt
def without_slash(request: HttpRequest) -> HttpResponseBase:
    """Lead a read to the address with its last slash; a write is told, for a redirect would lose its body."""
    if request.method in ("GET", "HEAD"):
        return HttpResponsePermanentRedirect(request.get_full_path(force_append_slash=True))
    return Missing.as_view()(request)


class Failed(APIView):
    """An error that no view could answer: one of a middleware, or one that nobody expected."""

    authentication_classes: list[Any] = []
    permission_classes = [AllowAny]
    schema = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> NoReturn:
        """Say that nothing was done, where that is certain: the database was gone before a view was looked for."""
        super().initial(request, *args, **kwargs)
        gone = isinstance(sys.exc_info()[1], DatabaseError | InterfaceError)
        if gone and request.resolver_match is None:
            raise LedgerUnavailable
        raise APIException


def failed(request: HttpRequest) -> HttpResponseBase:
    """Answer an error that Django caught; for `handler500`, which is called while it is handled."""
    if not request.path.startswith("/api/"):
        return (
            HttpResponse(_GONE, status=503)
            if _is_away(sys.exc_info()[1])
            else server_error(request)
        )
    response = Failed.as_view()(request)
    response.render()
    return response


def _is_away(error: BaseException | None) -> bool:
    # That a server takes no writes is no operational error to psycopg.
    return isinstance(error, OperationalError | InterfaceError) or (
        isinstance(error, DatabaseError) and is_outage(error)
    )


_GONE = """<!doctype html>
<html lang="en">
<head><title>The database is away</title></head>
<body>
<h1>The database cannot be reached, or takes no writes</h1>
<p>What you asked for was not done, or not to its end, and nothing is lost: try again in a moment.
If you pressed a button, open the page again first; its timeline says what came of it.</p>
</body>
</html>
"""
