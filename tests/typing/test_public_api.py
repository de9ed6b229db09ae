"""The names that a host imports: they stay, and their types are held by `public_api.py` beside this file."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PUBLIC: dict[str, set[str]] = {
    "idempotency.decorators": {"idempotent"},
    "idempotency.operations": {"operation", "defer", "resolver", "consume", "idempotent_task"},
    "idempotency.ledger": {"Claim"},
    "idempotency.resilience": {
        "Guard",
        "RetryPolicy",
        "Deadline",
        "CircuitBreaker",
        "Bulkhead",
        "degrade",
    },
    "idempotency.exceptions": {"CallError", "CallRejected", "CallFailed", "CallUnknown"},
    "idempotency.types": {
        "Absent",
        "Applied",
        "Downstream",
        "LookUp",
        "OpenStep",
        "OutsideRequest",
        "OutsideResult",
        "State",
    },
    "idempotency.openapi": {"AutoSchema"},
    "idempotency.testing": {"assert_replayed"},
    "idempotency.client": {"Client", "Answer", "MemoryIntents"},
}
"""A name leaves this list only with a new major version."""


@pytest.mark.parametrize("module", PUBLIC)
def test_a_public_name_can_be_imported(module: str) -> None:
    assert PUBLIC[module] <= set(dir(importlib.import_module(module)))


def test_the_type_of_every_public_name_is_held() -> None:
    tree = ast.parse((HERE / "public_api.py").read_text())
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    used |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert set().union(*PUBLIC.values()) <= used


@pytest.mark.slow
def test_pyright_agrees() -> None:
    """mypy reads the same file in `make types`."""
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "-p", HERE],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
