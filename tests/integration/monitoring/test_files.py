"""The files in which processes leave their counters: one that is damaged does not blind whoever watches."""

import subprocess
import sys
from pathlib import Path

import pytest
from django.test import RequestFactory

from idempotency import metrics

pytestmark = pytest.mark.django_db

_COUNT = "from prometheus_client import Counter; Counter('probe', 'x').inc(3)"


@pytest.mark.parametrize(
    "content",
    [b"", b"\x10\0\0\0", b"\x20\0\0\0\0\0\0\0\x08\0\0\0" + b"no json!" + b"\0" * 12],
    ids=["just opened", "cut off", "garbage"],
)
def test_a_file_that_cannot_be_read_hides_only_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    subprocess.run([sys.executable, "-c", _COUNT], check=True)
    (tmp_path / "counter_999999.db").write_bytes(content)
    told = metrics.exposition(RequestFactory().get("/metrics")).decode()
    assert "probe_total 3.0" in told
    assert "idempotency_ledger_up 1.0" in told
