"""Celery's shells, one call each. It can also be run without Celery: `manage.py payments_follow`."""

from celery import shared_task

from payments import completion, services
from payments.operations import FOLLOW_UP


@shared_task(name="payments.tasks.follow_up", ignore_result=True)
def follow_up() -> None:
    """Ask the gateway about what it had not decided yet."""
    with FOLLOW_UP.turn() as detail:
        detail["finished"] = services.follow_up()


@shared_task(name="payments.tasks.tidy", ignore_result=True)
def tidy() -> None:
    """Delete deliveries of webhooks that ended long ago."""
    with completion.TIDY.turn() as detail:
        detail["deleted"] = completion.forget()
