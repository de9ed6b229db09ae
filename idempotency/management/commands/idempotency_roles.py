"""`manage.py idempotency_roles`: the console's three groups, each with all that the one before it may."""

from typing import Any

from django.contrib.auth.models import Group, Permission
from django.db import transaction

from idempotency.management.base import DatabaseCommand

_SUPPORT = ("view_key", "view_operation", "view_event", "view_heartbeat")
_OPERATIONS = (
    *_SUPPORT,
    *(
        "lookup_key",
        "settle_key",
        "rerun_message",
        "handle_event",
        "retry_operation",
        "cancel_operation",
        "export_keys",
        "view_payload",
    ),
)
_ENGINEERS = (*_OPERATIONS, "view_step", "view_sender", "control_breaker")

SUPPORT, OPERATIONS, ENGINEERS = (
    "Idempotency: support",
    "Idempotency: operations",
    "Idempotency: engineers",
)
ROLES = {SUPPORT: _SUPPORT, OPERATIONS: _OPERATIONS, ENGINEERS: _ENGINEERS}


class Command(DatabaseCommand):
    """Make the groups; doing it again brings them up to date and leaves other apps' permissions alone."""

    help = "Create or update the groups of the staff console: support (view only), operations, engineers."

    def handle(self, *args: Any, **options: Any) -> None:
        """Make them in one transaction, and say what each may do."""
        with transaction.atomic():
            for name, codenames in ROLES.items():
                _make(name, codenames)
        if options["verbosity"] > 0:
            for name, codenames in ROLES.items():
                self.stdout.write(f"{name}: {', '.join(codenames)}")


def _make(name: str, codenames: tuple[str, ...]) -> None:
    group, _ = Group.objects.get_or_create(name=name)
    ours = Permission.objects.filter(content_type__app_label="idempotency")
    group.permissions.remove(*ours.exclude(codename__in=codenames))
    group.permissions.add(*ours.filter(codename__in=codenames))
