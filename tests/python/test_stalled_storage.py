"""Storage that does not answer has a limit of its own, on all ranks, also while rank 0 works for all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fault_library import compiled, quick_directory
from stalled_storage import STORAGE_SECONDS

HERE = Path(__file__).parent
#: What may pass between the limit and the error, on a machine that has other things to do, too [s].
SLACK_SECONDS = 8.0


@pytest.mark.parametrize(
    ("name", "first", "mode"),
    [
        ("open", 1, "open"),
        ("open", 3, "open"),
        ("stat", 2, "open"),
        ("sync", 1, "update"),
    ],
)
def test_all_ranks_return_in_time_and_name_the_rank(name: str, first: int, mode: str) -> None:
    with compiled() as variables, quick_directory() as directory:
        command = [sys.executable, str(HERE / "stalled_storage.py"), name, str(first), mode, str(directory)]
        environment = os.environ | variables | {"PYTHONPATH": str(HERE)}
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
        assert ran.returncode == 0, ran.stderr
        for kind, text, seconds in json.loads(ran.stdout):
            assert kind == "TimeoutError", (kind, text)
            assert "storage has not answered rank" in text
            assert "storage_seconds" in text
            assert STORAGE_SECONDS * 0.9 < seconds < STORAGE_SECONDS + SLACK_SECONDS
