"""Whether the configuration can work, asked at the start of every web and worker process and of beat."""

import logging

from django.conf import settings
from django.core import checks
from django.core.exceptions import ImproperlyConfigured

logger = logging.getLogger(__name__)


def require() -> None:
    """Run Django's system checks, log what they find, and refuse errors; what is silenced is not looked at.

    In DEBUG errors are logged too, and the process starts: times are made short there to see things happen.

    Raises: ImproperlyConfigured.
    """
    found = [message for message in checks.run_checks() if not message.is_silenced()]
    for message in found:
        level = logging.CRITICAL if message.is_serious() else logging.WARNING
        logger.log(level, "%s: %s %s", message.id, message.msg, message.hint or "")
    wrong = sorted(str(message.id) for message in found if message.is_serious())
    if wrong and not settings.DEBUG:
        raise ImproperlyConfigured(
            f"This configuration cannot work: {', '.join(wrong)}. `manage.py check` says the same."
        )
