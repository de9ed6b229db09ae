"""A process is proven dead only where the proof is certain (R36)."""

import dataclasses
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from idempotency.ledger import process
from idempotency.ledger.process import ProcessIdentity, current_process

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc")


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        yield child
        child.kill()


def identity_of(pid: int) -> ProcessIdentity:
    return process._identity_of(pid)


def test_a_process_that_has_ended_is_proven_dead(child: subprocess.Popen[bytes]) -> None:
    identity = identity_of(child.pid)
    assert not identity.is_proven_dead()
    child.kill()
    child.wait()
    assert identity.is_proven_dead()


def test_one_that_only_this_process_may_not_see_is_not(
    child: subprocess.Popen[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As under systemd's ProtectProc=invisible, which mounts /proc with hidepid."""
    identity = identity_of(child.pid)
    monkeypatch.setattr(process, "_PROC", tmp_path)
    monkeypatch.setattr(process, "current_process", lambda: identity)
    assert not identity.is_proven_dead()


def test_one_of_another_user_is_not(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    identity = current_process()

    def refuse(*_: Any) -> None:
        raise PermissionError

    monkeypatch.setattr(process, "_PROC", tmp_path)
    monkeypatch.setattr(process, "current_process", lambda: identity)
    monkeypatch.setattr(os, "kill", refuse)
    assert not identity.is_proven_dead()


@pytest.mark.parametrize("unknown", [{"boot_id": ""}, {"pid_namespace": ""}, {"started": ""}])
def test_where_it_is_not_known_which_process_it_was_nothing_is_proven(
    child: subprocess.Popen[bytes], unknown: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    identity = dataclasses.replace(identity_of(child.pid), **unknown)
    child.kill()
    child.wait()
    here = dataclasses.replace(current_process(), **unknown)
    monkeypatch.setattr(process, "current_process", lambda: here)
    assert not identity.is_proven_dead()
