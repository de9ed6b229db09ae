"""The door of the API: writes are refused or admitted here, before a key is read (R1, R29, R30)."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.viewsets import GenericViewSet

from idempotency.resilience import Admission
from payments.degradation import read_only


class AdmitsWrites(GenericViewSet[Any]):
    """A view whose writes can be turned away: in read-only mode all of them, else where too many are under way.

    Whether the client has gone is not asked: under WSGI it looks like one that has only finished sending.
    """

    admissions: Mapping[str, Callable[[], Admission]] = {}
    """By action: returns the door of that kind of work."""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        with ExitStack() as self._admitted:
            return super().dispatch(request, *args, **kwargs)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if request.method in SAFE_METHODS:
            return
        read_only().refuse_writes()
        if self.action in self.admissions:
            self._admitted.enter_context(self.admissions[self.action]().enter())
