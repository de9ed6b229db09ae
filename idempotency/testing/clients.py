"""DRF's test client, as an impatient consumer and as an unlucky one."""

import uuid
from typing import Any

from django.urls import Resolver404
from rest_framework.test import APIClient

from idempotency.answers import REFUSALS
from idempotency.decorated import config_at
from idempotency.http.response import REPLAYED
from idempotency.testing.asserting import assert_replayed, require


class RepeatingClient(APIClient):
    """Sends every request to an `@idempotent` handler twice under one key, and compares the answers.

    Returns the first answer; the second is the client's `repeat`, None where the request was sent once. A key is made
    where the test gives none. What was refused before it began (400, 401 …) is refused again; a settled answer is
    replayed. Requests to other handlers are sent once.
    """

    repeat: Any = None

    def generic(  # type: ignore[override]  # all of its arguments are handed on
        self, method: str, path: str, *args: Any, **extra: Any
    ) -> Any:
        self.repeat = None
        if not _counts(path, method):
            return super().generic(method, path, *args, **extra)
        with_key = _with_key(extra)
        first = super().generic(method, path, *args, **with_key)
        second = super().generic(method, path, *args, **_again(with_key))
        if first.status_code < 500:
            _compare(first, second)
        self.repeat = second
        return first


class AnswerLost(Exception):
    """The server has done its work and answered, and the client hears nothing.

    Attributes:
        response: what it would have heard.
    """

    def __init__(self, response: Any) -> None:
        super().__init__("The answer was lost on its way.")
        self.response = response


class LosingClient(APIClient):
    """Loses as many answers as `lose` says.

    with pytest.raises(AnswerLost):
        losing_client.post("/api/payments/", order, headers={"Idempotency-Key": "k1"})
    """

    def __init__(self, *args: Any, lose: int = 1, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lose = lose

    def generic(  # type: ignore[override]  # all of its arguments are handed on
        self, method: str, path: str, *args: Any, **extra: Any
    ) -> Any:
        response = super().generic(method, path, *args, **extra)
        if self.lose > 0:
            self.lose -= 1
            raise AnswerLost(response)
        return response


def _counts(path: str, method: str) -> bool:
    try:
        return config_at(path.partition("?")[0], method.upper()) is not None
    except Resolver404:
        return False


def _with_key(extra: dict[str, Any]) -> dict[str, Any]:
    headers = {**(extra.get("headers") or {})}
    if "HTTP_IDEMPOTENCY_KEY" in extra or any(n.lower() == "idempotency-key" for n in headers):
        return extra
    return {**extra, "headers": {**headers, "Idempotency-Key": str(uuid.uuid4())}}


def _again(extra: dict[str, Any]) -> dict[str, Any]:
    # The factory takes what it is given apart.
    return {**extra, **({"headers": {**extra["headers"]}} if extra.get("headers") else {})}


def _compare(first: Any, second: Any) -> None:
    if first.status_code in REFUSALS and REPLAYED not in second.headers:
        require(
            second.status_code == first.status_code,
            f"refused with {first.status_code}, and then answered {second.status_code}: {second.content[:500]!r}",
        )
    else:
        assert_replayed(first, second)
