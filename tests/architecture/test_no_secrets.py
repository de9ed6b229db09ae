"""No credential is committed: every tracked file is searched for what looks like one."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOOKS_LIKE = {
    "private key": r"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----",
    "live key of Stripe": r"\b[sr]k_live_[0-9A-Za-z]{16,}",
    "key of AWS": r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    "token of GitHub": r"\bgh[opsru]_[0-9A-Za-z]{36}\b|\bgithub_pat_[0-9A-Za-z_]{40,}",
    "token of Slack": r"\bxox[abprs]-[0-9A-Za-z-]{10,}",
    "JSON web token": r"\beyJ[0-9A-Za-z_-]{10,}\.eyJ[0-9A-Za-z_-]{10,}\.[0-9A-Za-z_-]{10,}",
    "password in an address": r"\b[a-z]{3,12}://[^\s/:@{}<>\"'$]+:(?!PASSWORD@|password@)[^\s/@{}<>\"'$…]{8,}@",
}
KNOWN = {
    # The certificate of a server on loopback, for the tests of TLS.
    ("tests/support/loopback.pem", "private key"),
}


def tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("not a checkout")
    return [ROOT / name for name in listed.stdout.split("\0") if name]


def found_in(text: str) -> set[str]:
    return {name for name, pattern in LOOKS_LIKE.items() if re.search(pattern, text)}


def test_no_file_holds_a_secret() -> None:
    found = {
        (str(path.relative_to(ROOT)), name)
        for path in tracked()
        if path.is_file()
        for name in found_in(path.read_text(errors="replace"))
    }
    assert found == KNOWN


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("-----BEGIN EC PRIVATE " + "KEY-----", "private key"),
        ("sk_" + "live_0123456789abcdefgh", "live key of Stripe"),
        ("AKIA" + "0123456789ABCDEF", "key of AWS"),
        ("ghp_" + "a" * 36, "token of GitHub"),
        ("postgresql://me:" + "verysecret@db/x", "password in an address"),
    ],
)
def test_each_kind_is_seen(text: str, name: str) -> None:
    assert found_in(text) == {name}


def test_a_local_settings_file_is_never_tracked() -> None:
    names = {str(path.relative_to(ROOT)) for path in tracked()}
    assert not names & {".env", "deploy/environment", "project/local_settings.py"}
