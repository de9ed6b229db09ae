"""The test host with the console on top: what staff do there meets real keys."""

from collections.abc import Callable

from django.contrib import admin
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import path

from tests.support import host

urlpatterns = [path("admin/", admin.site.urls), *host.urlpatterns]


def strict_policy(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Forbid all that is inline, as a careful host does."""

    def answer(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        response.headers["Content-Security-Policy"] = "default-src 'self'"
        return response

    return answer
