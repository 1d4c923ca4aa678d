"""Several nodes on one machine, joined by a network that can be cut; no root is needed.

A node has a network interface, numbers of processes, shared memory, a host name and temporary files of its own, so that
nothing works between nodes that would not work between machines. What they share are the file systems, and with them
one page cache: what NFS, Lustre and their like show late to other clients, such as new sizes, names and attributes that
a client still holds in its caches, shows at once here. Of these, tests on such nodes can say nothing.

`nodes.sh` makes the nodes and runs the launcher on the first; `node.sh` plays ssh. All of it is inside of namespaces
that end with the launcher, so two runs do not meet and nothing is left behind.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

HERE = Path(__file__).parent
#: Where administrators' commands are, if they are not on the path of ordinary users.
SBIN = ("/usr/sbin", "/sbin")
UNSHARE = (
    "unshare",
    "--user",
    "--map-root-user",
    "--net",
    "--mount",
    "--ipc",
    "--pid",
    "--fork",
    "--kill-child",
    "--mount-proc",
)


@dataclass(frozen=True)
class Nodes:
    """Nodes for one launch."""

    number: int
    #: Files of this launch.
    session: Path
    #: Where each node has an empty file system of its own.
    own: tuple[Path, ...]

    @property
    def inside(self) -> list[str]:
        """The command that makes the nodes and runs another one, the launcher, on the first."""
        return [*UNSHARE, str(HERE / "nodes.sh"), str(self.number), str(self.session)]

    def environment(self, ranks: int) -> dict[str, str]:
        """What tells the launchers of MPICH and Open MPI to spread ranks over the nodes in blocks."""
        shares = [ranks // self.number + (node < ranks % self.number) for node in range(self.number)]
        ours, theirs = self.session / "hosts-of-mpich", self.session / "hosts-of-openmpi"
        ours.write_text("".join(f"node{node}:{share}\n" for node, share in enumerate(shares, 1)))
        theirs.write_text("".join(f"node{node} slots={share}\n" for node, share in enumerate(shares, 1)))
        agent = str(HERE / "node.sh")
        return {
            "NODES_SESSION": str(self.session),
            "NODES_OWN": ":".join(map(str, self.own)),
            "PATH": _path(),
            "HYDRA_HOST_FILE": str(ours),
            "HYDRA_LAUNCHER": "ssh",
            "HYDRA_LAUNCHER_EXEC": agent,
            "HYDRA_IFACE": "eth0",
            "PRTE_MCA_prte_default_hostfile": str(theirs),
            "PRTE_MCA_plm_ssh_agent": agent,
            "PRTE_MCA_prte_if_include": "eth0",
            "PRTE_MCA_rmaps_default_mapping_policy": "slot:oversubscribe",
            "OMPI_MCA_btl_tcp_if_include": "eth0",
            # There may be more ranks than cores, which the launcher on a node does not know of the others.
            "OMPI_MCA_mpi_yield_when_idle": "1",
        }

    def cut(self, launcher: subprocess.Popen[bytes], node: int) -> None:
        """Cut a node (counted from 1) off from the others."""
        self._link(launcher, node, "down")

    def mend(self, launcher: subprocess.Popen[bytes], node: int) -> None:
        """Undo a cut."""
        self._link(launcher, node, "up")

    def _link(self, launcher: subprocess.Popen[bytes], node: int, state: str) -> None:
        enter = ["nsenter", "--target", str(launcher.pid), "--user", "--preserve-credentials", "--net"]
        subprocess.run(
            [*enter, "ip", "link", "set", f"node{node}", state],
            env=os.environ | {"PATH": _path()},
            check=True,
            capture_output=True,
            timeout=10,
        )


@contextmanager
def nodes(number: int, own: Sequence[Path] = ()) -> Iterator[Nodes]:
    """Nodes for one launch; where they cannot be made, the test is skipped and says why."""
    why = _impossible()
    if why is not None:
        pytest.skip(why)
    # A short path, since sockets lie below it.
    with tempfile.TemporaryDirectory(prefix="nodes-") as session:
        yield Nodes(number, Path(session), tuple(own))


@functools.cache
def _impossible() -> str | None:
    """Why there can be no nodes here, if so."""
    for command, package in {"unshare": "util-linux", "nsenter": "util-linux", "ip": "iproute2"}.items():
        if shutil.which(command, path=_path()) is None:
            return f"there is no {command} ({package})"
    with tempfile.TemporaryDirectory(prefix="nodes-") as session:
        made = Nodes(1, Path(session), ())
        environment = os.environ | made.environment(1)
        try:
            tried = subprocess.run([*made.inside, "true"], env=environment, capture_output=True, timeout=30)
        except subprocess.TimeoutExpired:
            return "making a node took longer than 30 s"
    if tried.returncode != 0:
        return f"no namespaces with a network can be made here: {tried.stderr.decode(errors='replace').strip()}"
    return None


def _path() -> str:
    return os.pathsep.join([os.environ.get("PATH", os.defpath), *SBIN])
