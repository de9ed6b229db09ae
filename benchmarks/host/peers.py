"""The same endpoint under other libraries, wired as their READMEs say."""

import functools
import hashlib
import json
from collections.abc import Callable
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from benchmarks.host.work import Bare, work


def by_middleware() -> Callable[..., Any]:
    """Return the bare view: what protects it is in MIDDLEWARE."""
    return Bare.as_view()


def django_idempotency_key() -> Callable[..., Any]:
    """Return the view under its decorator; its middleware does the rest."""
    from idempotency_key.decorators import idempotency_key

    return idempotency_key(Bare.as_view())


def djangorestframework_idempotency_key() -> Callable[..., Any]:
    """Return the view with its method's decorator."""
    from rest_framework_idempotency_key.decorators import simple_idempotency_key_method

    class View(APIView):
        @simple_idempotency_key_method
        def post(self, request: Request) -> Response:
            return work(request)

    return View.as_view()


def drf_idempotencykey() -> Callable[..., Any]:
    """Return the view with its mixin."""
    from drf_idempotencykey.mixins import DrfIdempotencyKeyMixin

    return type("View", (DrfIdempotencyKeyMixin, Bare), {}).as_view()


def idemkit() -> Callable[..., Any]:
    """Return the view with its mixin, on PostgreSQL."""
    from idemkit import HttpConfig
    from idemkit.contrib.drf import idempotent_view

    config = HttpConfig(scope=lambda request: str(request.user.pk), lease_ttl_seconds=30)
    mixin = idempotent_view(backend=_backend(), config=config)
    return type("View", (mixin, Bare), {}).as_view()


def prepare_idemkit() -> None:
    """Make its tables."""
    import subprocess
    import sys
    from pathlib import Path

    program = Path(sys.executable).with_name("idemkit")
    subprocess.run([program, "init-pg", _dsn()], check=True, capture_output=True)


@functools.cache
def _backend() -> Any:
    from idemkit import PostgresBackend

    return PostgresBackend.from_url(_dsn(), min_size=1, max_size=10)


def _dsn() -> str:
    import os

    return os.environ["DATABASE_URL"]


def payment_infra() -> Callable[..., Any]:
    """Return a view that hands its work to the service: the library protects a function, and this glue a view."""
    from payment_infra.exceptions import IdempotencyConflict
    from payment_infra.infrastructure.idempotency.service import IdempotencyService

    class View(APIView):
        def post(self, request: Request) -> Response:
            body = json.dumps(request.data, sort_keys=True).encode()
            try:
                kept = IdempotencyService().execute(
                    request.headers["Idempotency-Key"],
                    lambda: {"data": work(request).data},
                    request_hash=hashlib.sha256(body).hexdigest(),
                    principal=str(request.user.pk),
                )
            except IdempotencyConflict as error:
                return Response({"detail": str(error)}, status=409)
            return Response(kept["data"], status=201)

    return View.as_view()
