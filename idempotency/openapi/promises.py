"""Deferred work in the API's description: the 202, and the operation that its Location leads to."""

from typing import Any

from drf_spectacular.utils import OpenApiExample, OpenApiResponse

from idempotency.views import OperationOut

_EXAMPLE = OpenApiExample(
    "accepted",
    value={
        "id": "01990c2e-6f4a-7c1b-9a55-0f3c2d1e4b5a",
        "operation": "things.make",
        "state": "in_progress",
        "done": False,
        "attempts": 0,
        "created_at": "2026-11-29T10:00:00.000Z",
        "updated_at": "2026-11-29T10:00:00.000Z",
        "retry_at": "2026-11-29T10:00:01.000Z",
    },
    media_type="application/json",
    status_codes=["202"],
    response_only=True,
)

PROMISED: dict[Any, OpenApiResponse] = {
    202: OpenApiResponse(
        OperationOut,
        "It will be done. Location says where to see how; a repeat gets this same answer, in every state.",
        [_EXAMPLE],
    )
}
"""How a request is answered whose work is done later, for `@extend_schema(responses=…)` where the handler's operation
has another name than the deferred one; otherwise it is described unasked."""
