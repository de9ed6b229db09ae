"""For an async server."""

from django.core.asgi import get_asgi_application

application = get_asgi_application()
