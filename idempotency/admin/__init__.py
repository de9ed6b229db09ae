"""The staff console: what happened to a key, and what may be done about it.

It registers itself unless `IDEMPOTENCY["ADMIN_REGISTER"]` is False; then a host registers these classes with a site of
its own.
"""

from django.contrib import admin

from idempotency.admin.keys import KeyAdmin
from idempotency.admin.overview import OverviewAdmin
from idempotency.conf import conf
from idempotency.models import Heartbeat, Key

__all__ = ["KeyAdmin", "OverviewAdmin", "register"]


def register(site: admin.AdminSite) -> None:
    """Put the whole console on a site."""
    site.register(Heartbeat, OverviewAdmin)
    site.register(Key, KeyAdmin)


if conf.ADMIN_REGISTER:
    register(admin.site)
