"""What the package tells `logging`, and that it tells nothing to who does not listen."""

from __future__ import annotations

import logging
import re
import subprocess
import sys
import time
from pathlib import Path

import hyperslab as hs
import numpy as np
import pytest


def test_transfers_are_told_at_debug(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="hyperslab"):
        with hs.open(tmp_path / "a.zarr", "w") as store:
            store.write("rho", np.ones(4))
            store.read("rho")
        with hs.open_raw(tmp_path / "a.raw", "w") as file:
            file.write({"u": np.ones(4)})
    told = [record.getMessage() for record in caplog.records if record.name == "hyperslab"]
    assert {record.levelname for record in caplog.records} == {"DEBUG"}
    assert told[0].startswith(f"open '{tmp_path}/a.zarr' (mode w) on 1 ranks: ")
    assert [re.match(r"(?:open|write|read)[^']*'[^']*'", text) is not None for text in told] == [True] * 5
    assert all("/s" in text for text in told if not text.startswith("open"))


def test_waiting_is_told_at_info_and_by_whom(caplog: pytest.LogCaptureFixture) -> None:
    memory = hs.MemoryStore()
    dist = hs.Distribution((8,), (2,))

    def program(comm: hs.ThreadComm) -> None:
        with hs.open(memory, "w", comm=comm) as store:
            if comm.rank == 1:
                time.sleep(1.3)
            store.write("rho", np.ones(4), dist)

    with caplog.at_level(logging.INFO, logger="hyperslab"):
        hs.threads(2, program)
    told = [record.getMessage() for record in caplog.records if record.name == "hyperslab"]
    assert len(told) == 1, told
    assert re.fullmatch(
        r"rank 0: write of 'rho' to 'memory://\d+' waited \d+\.\d s for other ranks or requests", told[0]
    )


def test_nothing_is_configured_and_nothing_loaded() -> None:
    """Neither the module nor a handler; and nothing appears on the error output."""
    code = (
        "import sys, numpy as np, hyperslab as hs\n"
        "store = hs.open(hs.MemoryStore(), 'w'); store.write('a', np.ones(4))\n"
        "assert 'logging' not in sys.modules\n"
        "import logging\n"
        "store.write('b', np.ones(4))\n"
        "assert not logging.getLogger().handlers\n"
        "logging.getLogger('hyperslab').setLevel('DEBUG')\n"
        "store.write('c', np.ones(4))\n"
        "assert [type(each).__name__ for each in logging.getLogger('hyperslab').handlers] == ['NullHandler']\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
