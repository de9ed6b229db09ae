"""The room under its defaults, whatever the project sets."""

import pytest
from django.conf import LazySettings


@pytest.fixture(autouse=True)
def _defaults(settings: LazySettings) -> None:
    settings.IDEMPOTENCY = {}
