"""Running a command on a terminal of its own."""

from __future__ import annotations

import os
import pty
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress

from mpi_launch import environment


def on_a_terminal(
    command: Sequence[str],
    status: int,
    *,
    apart: bool = False,
    watch: Callable[[subprocess.Popen[bytes], bytes], None] | None = None,
    **variables: str,
) -> tuple[str, str]:
    """Run a command, which must end so; gives its stdout, if that is apart, and what the terminal shows.

    Whenever the terminal shows more, `watch` gets the process and all that is shown.
    """
    own = {name: value for name, value in environment({}).items() if name != "NO_COLOR"}
    own |= {"TERM": "xterm"} | variables
    master, slave = pty.openpty()
    with (
        tempfile.TemporaryFile() as stdout,
        subprocess.Popen(command, stdout=stdout if apart else slave, stderr=slave, env=own) as process,
    ):
        os.close(slave)
        shown = b""
        # Reading from a terminal that nobody has open any more is an error, and the end.
        with suppress(OSError):
            while part := os.read(master, 65536):
                shown += part
                if watch is not None:
                    watch(process, shown)
        os.close(master)
        assert process.wait(100) == status, shown.decode()
        stdout.seek(0)
        return stdout.read().decode(), shown.decode()
