"""Alarms: events that a person has to see to, until somebody says that they did."""

import uuid

from django.db.models import CharField, Exists, OuterRef, QuerySet
from django.db.models.fields.json import KT
from django.db.models.functions import Cast

from idempotency.conf import conf
from idempotency.models import Event


def unhandled() -> QuerySet[Event]:
    """Return the alarms that nobody has seen to yet."""
    events = Event.objects.using(conf.DATABASE)
    seen_to = events.filter(detail__has_key="handles").annotate(handles=KT("detail__handles"))
    mine = seen_to.filter(handles=Cast(OuterRef("pk"), CharField()))
    return events.filter(~Exists(mine), alarming=True)


def unhandled_of(key_id: uuid.UUID) -> list[Event]:
    """Return the alarms about one key that nobody has seen to yet, the oldest first."""
    return list(unhandled().filter(key_id=key_id).order_by("pk")[:20])


def handling(event: Event) -> Event | None:
    """Return the event by which somebody said that they have seen to this one."""
    said = Event.objects.using(conf.DATABASE).filter(detail__has_key="handles")
    return said.annotate(handles=KT("detail__handles")).filter(handles=str(event.pk)).first()
