"""The deployment: the two apps, wired to a database, a store, a broker and a web server."""

from project.celery import app as celery_app

__all__ = ["celery_app"]
