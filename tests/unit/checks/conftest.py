"""The project under its defaults, with the app's own pages only."""

from collections.abc import Iterator

import pytest
from django.test import override_settings


@pytest.fixture(autouse=True)
def _pages() -> Iterator[None]:
    with override_settings(ROOT_URLCONF="idempotency.urls", IDEMPOTENCY={}):
        yield
