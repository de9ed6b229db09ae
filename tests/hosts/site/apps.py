"""The project's one app."""

from django.apps import AppConfig


class SiteConfig(AppConfig):
    name = "tests.hosts.site"
    label = "site"
