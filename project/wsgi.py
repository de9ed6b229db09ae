"""The WSGI entry point: `gunicorn --config python:project.gunicorn project.wsgi`."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
os.environ.setdefault("PROCESS_ROLE", "web")

application = get_wsgi_application()
