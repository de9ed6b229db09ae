"""The ASGI entry point, for a host that serves Django by ASGI; views still run in threads."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
os.environ.setdefault("PROCESS_ROLE", "web")
# Each request has a thread of its own here: a connection that is kept is never used again, and stays open.
os.environ.setdefault("CONN_MAX_AGE", "0")

application = get_asgi_application()
