"""Arrays of files appended in turn, by processes: see `test_records_in_turn`."""

import sys
from pathlib import Path

from mpi4py import MPI

from test_records_in_turn import FORMATS, history

for form in FORMATS:
    history(MPI.COMM_WORLD, Path(sys.argv[1]), form)
