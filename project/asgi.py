"""The ASGI entry point, for a host that serves Django by ASGI; views still run in threads."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
os.environ.setdefault("PROCESS_ROLE", "web")

application = get_asgi_application()
