"""What keeps browsers from using keys, or answers before the ledger, is reported by its number."""

from typing import Any

import pytest
from django.test import override_settings

from idempotency.checks import check_middleware
from tests.unit.checks.support import ids

CORS = "corsheaders.middleware.CorsMiddleware"
COMMON = "django.middleware.common.CommonMiddleware"
ALLOWED = {"CORS_ALLOW_HEADERS": ["accept", "Idempotency-Key"]}
EXPOSED = {
    "CORS_EXPOSE_HEADERS": ["idempotent-replayed", "Idempotency-Key", "Retry-After", "Location"]
}


@pytest.mark.parametrize(
    ("values", "middleware", "found"),
    [
        (ALLOWED | EXPOSED, [CORS, COMMON], []),
        (EXPOSED, [CORS, COMMON], ["W030"]),
        (ALLOWED, [CORS], ["W031"]),
        (ALLOWED | {"CORS_EXPOSE_HEADERS": ["Location"]}, [CORS], ["W031"]),
        (ALLOWED | EXPOSED, [COMMON, CORS], ["W032"]),
        (ALLOWED | EXPOSED, [COMMON], ["W032"]),
    ],
)
def test_browsers_may_send_keys_and_see_the_marks(
    values: dict[str, Any], middleware: list[str], found: list[str]
) -> None:
    """B10."""

    class Settings:
        INSTALLED_APPS = ["corsheaders"]
        MIDDLEWARE = middleware

    for name, value in values.items():
        setattr(Settings, name, value)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("idempotency.checks.middleware.settings", Settings)
        assert ids(check_middleware()) == found


def test_another_keeper_of_keys_is_a_warning() -> None:
    with override_settings(MIDDLEWARE=[COMMON, "drf_idempotency.middleware.Middleware"]):
        assert ids(check_middleware()) == ["W033"]
    with override_settings(MIDDLEWARE=[COMMON]):
        assert check_middleware() == []
