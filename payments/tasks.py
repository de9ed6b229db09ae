"""Celery's shell, one call. It can also be run without Celery: `manage.py payments_follow`."""

from celery import shared_task

from payments import services
from payments.operations import FOLLOW_UP


@shared_task(name="payments.tasks.follow_up", ignore_result=True)
def follow_up() -> None:
    """Ask the gateway about what it had not decided yet."""
    with FOLLOW_UP.turn() as detail:
        detail["finished"] = services.follow_up()
