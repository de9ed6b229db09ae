"""What answers under /api/ where nothing is: a problem, as everywhere in the API, and no page."""

from typing import Any, NoReturn

from django.http import HttpRequest, HttpResponsePermanentRedirect
from django.http.response import HttpResponseBase
from django.views.decorators.csrf import csrf_exempt
from rest_framework.exceptions import NotFound
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.views import APIView


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
