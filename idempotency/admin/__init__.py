"""The staff console: what happened to a key, and what may be done about it.

It registers itself unless `IDEMPOTENCY["ADMIN_REGISTER"]` is False; then a host registers these classes with a site of
its own.
"""

from django.apps import apps
from django.contrib import admin

from idempotency.admin.events import EventAdmin
from idempotency.admin.keys import KeyAdmin
from idempotency.admin.operations import OperationAdmin
from idempotency.admin.overview import OverviewAdmin
from idempotency.conf import conf
from idempotency.models import Event, Heartbeat, Key, Operation

__all__ = ["EventAdmin", "KeyAdmin", "OperationAdmin", "OverviewAdmin", "register"]


def register(site: admin.AdminSite) -> None:
    """Put the whole console on a site."""
    site.register(Heartbeat, OverviewAdmin)
    site.register(Key, KeyAdmin)
    site.register(Operation, OperationAdmin)
    site.register(Event, EventAdmin)


# Without the admin site these pages still tell a terminal what they would show.
if conf.ADMIN_REGISTER and apps.is_installed("django.contrib.admin"):
    register(admin.site)
