"""What replaces something has its permissions: mode, owner, group and lists of others; it is never open wider."""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hyperslab as hs
import pytest

import permission_cases
from fault_library import quick_directory
from mpi_launch import launched
from permission_cases import OPERATIONS
from strangers import ME, as_user

HERE = Path(__file__).parent
GROUP = 4321
#: Threads, and ranks of MPI.
RANKS = ["1", "3", "4", *(pytest.param(f"mpi {ranks}", marks=pytest.mark.mpi) for ranks in (1, 3, 4))]


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory of its own, where others may look names up."""
    with quick_directory() as made:
        made.chmod(0o777)
        yield made


def look(place: Path) -> dict[str, tuple[int, int, int, bytes]]:
    """Mode, owner, group and list of others of all that is there."""

    def listed(path: Path) -> bytes:
        try:
            return os.getxattr(path, "system.posix_acl_access", follow_symlinks=False)
        except OSError:
            return b""

    all_of = [path for path in sorted(place.rglob("*")) if ".hyperslab" not in path.name]
    return {
        str(path.relative_to(place)): (
            path.stat().st_mode & 0o7777,
            path.stat().st_uid,
            path.stat().st_gid,
            listed(path),
        )
        for path in all_of
    }


def narrowed(place: Path, file_mode: int, directory_mode: int) -> None:
    """Gives all that is there these modes."""
    for path in place.rglob("*"):
        path.chmod(directory_mode if path.is_dir() else file_mode)


def run(place: Path, ranks: str, user: int = 0, group: int = 0) -> None:
    """Carries out all operations; ranks of MPI as this user with this group besides."""
    if ranks.startswith("mpi"):
        ended = launched(
            int(ranks.split()[1]),
            sys.executable,
            "-m",
            "mpi4py",
            HERE / "permission_cases.py",
            f"--as={user},{group}",
            place,
            *OPERATIONS,
        )
        assert ended.returncode == 0, ended.stderr
        return
    for operation in OPERATIONS.values():
        if ranks == "1":
            operation(place, None)
        else:
            hs.threads(int(ranks), lambda comm, operation=operation: operation(place, comm))


def lost(before: dict[str, Any], place: Path) -> dict[str, Any]:
    """What has other permissions than before, of what is still there."""
    after = look(place)
    return {name: (found, after[name]) for name, found in before.items() if name in after and after[name] != found}


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize(
    ("file_mode", "directory_mode"), [(0o600, 0o700), (0o664, 0o2775), (0o640, 0o750)], ids=["own", "group", "read"]
)
def test_what_is_replaced_keeps_its_mode(file_mode: int, directory_mode: int, ranks: str, place: Path) -> None:
    permission_cases.made(place, None)
    narrowed(place, file_mode, directory_mode)
    before = look(place)
    assert len(before) > 12
    run(place, ranks)
    assert lost(before, place) == {}
    # Chunks that took the places of others are among those that are compared.
    assert before.keys() & look(place).keys() >= {"s.zarr/rho/c.0.0", "s.zarr/rho/c.1.0", "s.zarr/old/zarr.json"}
    assert [path for path in place.rglob("*") if ".hyperslab" in path.name] == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")
@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("actor", [0, ME], ids=["root", "owner"])
def test_owner_group_and_lists_of_others_are_kept(actor: int, ranks: str, place: Path) -> None:
    permission_cases.made(place, None)
    entries = [(1, 6, 0xFFFFFFFF), (2, 4, 1003), (4, 0, 0xFFFFFFFF), (16, 4, 0xFFFFFFFF), (32, 0, 0xFFFFFFFF)]
    acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
    for path in [place, *place.rglob("*")]:
        os.chown(path, ME, GROUP)
        if path == place:
            continue
        path.chmod(0o700 if path.is_dir() else 0o640)
        if path.is_file():
            try:
                os.setxattr(path, "system.posix_acl_access", acl)
            except OSError:
                pytest.skip("this file system has no lists of others")
    before = look(place)

    def act() -> None:
        os.umask(0o022)
        run(place, ranks)

    if ranks.startswith("mpi"):
        # Ranks become him when all is loaded: other users may not read what root's Python is made of.
        run(place, ranks, user=actor, group=GROUP)
    else:
        done = as_user(actor, act, groups=[GROUP])
        assert "done" in done, done
    assert lost(before, place) == {}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")
def test_of_a_group_that_cannot_be_kept_nobody_gets_more(place: Path) -> None:
    """Who replaces a file whose group he is not in: members of the other group may do what everybody may."""
    permission_cases.made(place, None)
    for path in [place, *place.rglob("*")]:
        os.chown(path, ME, GROUP)
        if path != place:
            path.chmod(0o770 if path.is_dir() else 0o660)
    done = as_user(ME, lambda: OPERATIONS["w f.raw"](place, None))
    assert "done" in done, done
    found = (place / "f.raw").stat()
    assert (found.st_gid, found.st_mode & 0o777) == (ME, 0o600)


def test_what_is_new_has_what_any_program_gives(place: Path) -> None:
    before = os.umask(0o027)
    try:
        permission_cases.made(place, None)
    finally:
        os.umask(before)
    modes = {(path.is_dir(), path.stat().st_mode & 0o777) for path in place.rglob("*")}
    assert modes == {(True, 0o750), (False, 0o640)}


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_nothing_is_open_wider_in_between(place: Path) -> None:
    """As the system is asked to make it: what is made has at most the permissions of what it replaces."""
    permission_cases.made(place, None)
    narrowed(place, 0o600, 0o700)
    trace = place.with_name(place.name + ".trace")
    calls = "trace=openat,open,creat,mkdir,mkdirat,chmod,fchmod,fchmodat"
    # An append makes chunks that replace nothing.
    replacing = [name for name in OPERATIONS if name != "append"]
    program = [sys.executable, HERE / "permission_cases.py", place, *replacing]
    variables = os.environ | {"HYPERSLAB_PROFILE": "none", "HYPERSLAB_LEARNED": "none"}
    subprocess.run(["strace", "-f", "-y", "-s", "400", "-e", calls, "-o", trace, *program], check=True, env=variables)
    told = trace.read_text()
    trace.unlink()
    wide, seen = [], 0
    for call in told.splitlines():
        made = re.search(r"(openat|open|mkdirat|mkdir|fchmod|chmod)\((.*), (0[0-7]*)\) = (\d+)", call)
        if made is None or place.name not in call:
            continue
        seen += 1
        # The hidden root lets nobody else in: what is new and lies in it replaces nothing yet.
        new = "-array-" in call or "-step-" in call
        if int(made[3], 8) & ~0o022 & 0o077 and not new:
            wide.append(call)
    assert seen > 20
    assert wide == []
