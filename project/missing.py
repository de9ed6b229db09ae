"""What answers under /api/ where nothing is: a problem, as everywhere in the API, and no page."""

from typing import Any, NoReturn

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
