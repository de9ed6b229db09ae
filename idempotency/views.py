"""Pages of the app itself: one per problem code, at the address that a problem's `type` names."""

from dataclasses import asdict

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.cache import patch_cache_control, patch_vary_headers
from django.views.decorators.http import require_safe

from idempotency.http.problem import catalogue


@require_safe
def problem_page(request: HttpRequest, code: str) -> HttpResponse:
    """Say what a problem code means and what to do about it, as a page or as JSON.

    Source: RFC 9457 §3.1.1 and §4: a problem type's address should lead to its documentation.
    """
    entry = catalogue().get(code)
    if entry is None:
        raise Http404("There is no such problem code.")
    response: HttpResponse
    if request.get_preferred_type(["text/html", "application/json"]) == "application/json":
        response = JsonResponse(asdict(entry))
    else:
        response = render(request, "idempotency/problem.html", {"entry": entry})
    patch_vary_headers(response, ["Accept"])
    patch_cache_control(response, public=True, max_age=3600)
    return response
