"""Run a part of a large matrix in the suite, and all of it in `make chaos`: a pytest plugin, named in pyproject.toml.

    pytestmark = pytest.mark.sampled(6)  # one in six, by the seed

The seed is printed in the header; `SAMPLE_SEED=…` repeats a run, and another seed takes other cells.
"""

import os
import zlib

import pytest

SEED = os.environ.get("SAMPLE_SEED", "1")


def pytest_report_header() -> str:
    """Say which sample is run."""
    return f"sampled matrices: SAMPLE_SEED={SEED} (all of them: make chaos)"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave to `make chaos` what the sample does not take."""
    for item in items:
        mark = item.get_closest_marker("sampled")
        if mark is not None and not _taken(item.nodeid, one_in=int(mark.args[0])):
            item.add_marker(pytest.mark.chaos)


def _taken(nodeid: str, *, one_in: int) -> bool:
    return zlib.crc32(f"{SEED} {nodeid}".encode()) % one_in == 0
