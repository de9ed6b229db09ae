"""The API's description: what `@idempotent` adds to an operation, from the decorator itself. For drf-spectacular.

    REST_FRAMEWORK = {"DEFAULT_SCHEMA_CLASS": "idempotency.openapi.AutoSchema"}

Over a schema class of the host's own, put the mixin first:

    class OurSchema(IdempotentSchema, drf_standardized_errors.openapi.AutoSchema): ...

`IdempotentSchema` touches only what is decorated; `ProblemSchema` also describes, for every other operation, the
problems that DRF itself answers with. An application names its own verdicts:

    @extend_schema(responses={201: PaymentOut, **problems("payment-declined")})
"""

try:
    from drf_spectacular.openapi import AutoSchema as SpectacularSchema
except ImportError as error:
    raise ImportError(
        "the API's description needs drf-spectacular: install the extra `openapi`"
    ) from error

from idempotency.openapi import own
from idempotency.openapi.problems import ProblemOut, problems
from idempotency.openapi.promises import PROMISED
from idempotency.openapi.schema import IdempotentSchema, ProblemSchema

__all__ = ["PROMISED", "AutoSchema", "IdempotentSchema", "ProblemOut", "ProblemSchema", "problems"]

# Imported for drf-spectacular to find: how this package's own views are described.
OWN_VIEWS = (own.MonitorDescribed, own.CancelDescribed)


class AutoSchema(IdempotentSchema, ProblemSchema, SpectacularSchema):
    """A ready schema class: what is decorated, and the problems of everything else."""
