"""Find places that an unprivileged account can reach, without changing anything of the user's.

Only root needs this: PostgreSQL refuses to run as root, and `nobody` cannot look into a checkout
or a home directory that is closed to others.
"""

import os
import pwd
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from project.embedded.server import ServerFailed

# Survives a reboot, unlike /tmp, and every account can pass through.
COMMON = Path("/var/tmp")  # noqa: S108 - what is made there is checked, see _insist_ours
ORPHAN_SECONDS = 10.0


def as_account(account: pwd.struct_passwd | None) -> dict[str, Any]:
    """Return what `subprocess` needs to run as this account."""
    if account is None:
        return {}
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}


def reachable_copy(package: Path, account: pwd.struct_passwd) -> Path:
    """Return the package's folder, or a copy of it, whose programs the account can run."""
    probe = Path("pginstall") / "bin" / "postgres"
    if _can(account, "-x", package / probe):
        return package
    about = (package / probe).stat()
    own = COMMON / f"idempotency-ledger-postgres-{about.st_size}-{int(about.st_mtime)}"
    if not own.exists():
        _copy(package, own)
    _insist_ours(own)
    copy = own / package.name
    if not _can(account, "-x", copy / probe):
        raise ServerFailed(f"{account.pw_name} cannot run {copy / probe}: set DATABASE_URL")
    return copy


def reachable_home(home: Path, account: pwd.struct_passwd) -> Path:
    """Return `home`, or a lasting place of its own under /var/tmp, that the account can reach."""
    home.mkdir(parents=True, exist_ok=True)
    if _can(account, "-x", home):
        return home
    # Named in a file, so that it is found again, and only by this checkout.
    pointer = home / "DATA_IS_IN"
    if not pointer.exists():
        made = Path(tempfile.mkdtemp(dir=COMMON, prefix="idempotency-ledger-data-"))
        made.chmod(0o755)
        pointer.write_text(f"{made}\n")
    own = Path(pointer.read_text().strip())
    _insist_ours(own)
    return own


def forget_dead_postmaster(data: Path) -> None:
    """Remove a lock file whose server is dead although its process id still looks alive.

    In a container the process id may be a zombie that nobody reaps, or belong to another program
    by now; PostgreSQL would refuse to start. It is removed only when no process works in the data
    directory any more, so that no old backend can meet a new server.
    """
    lock = data / "postmaster.pid"
    if sys.platform != "linux" or not lock.exists():
        return
    end = time.monotonic() + ORPHAN_SECONDS
    while _processes_in(data):
        if time.monotonic() > end:
            raise ServerFailed(f"another PostgreSQL still runs in {data}")
        time.sleep(0.1)
    lock.unlink(missing_ok=True)


def _processes_in(data: Path) -> list[int]:
    """Return the processes whose working directory is this one, as PostgreSQL's is."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if (entry / "cwd").readlink() == data.resolve():
                found.append(int(entry.name))
        except OSError:
            # It is gone, a zombie, or somebody else's.
            continue
    return found


def _copy(package: Path, target: Path) -> None:
    draft = Path(tempfile.mkdtemp(dir=COMMON, prefix=f"{target.name}."))
    try:
        shutil.copytree(package, draft / package.name, symlinks=True)
        libraries = package.with_name(f"{package.name}.libs")
        if libraries.exists():
            shutil.copytree(libraries, draft / libraries.name, symlinks=True)
        draft.chmod(0o755)
        # All or nothing: whoever comes second finds it complete, and drops its own.
        draft.rename(target)
    except OSError:
        shutil.rmtree(draft, ignore_errors=True)
        if not target.exists():
            raise


def _insist_ours(path: Path) -> None:
    """Refuse a place in a public folder that another account made or can change."""
    try:
        about = path.lstat()
    except FileNotFoundError as error:
        raise ServerFailed(f"{path} is gone, and its data with it: remove var/ as well") from error
    if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.geteuid() or about.st_mode & 0o022:
        raise ServerFailed(f"{path} is not a directory of this account alone: remove it")


def _can(account: pwd.struct_passwd, test: str, path: Path) -> bool:
    """Ask as the account itself: modes of parents, access lists and mounts all have their say."""
    asked = subprocess.run(
        ["/bin/sh", "-c", 'test "$1" "$2"', "sh", test, str(path)],
        check=False,
        cwd="/",
        **as_account(account),
    )
    return asked.returncode == 0
