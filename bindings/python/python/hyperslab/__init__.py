"""Collective I/O of distributed N-dimensional arrays.

One call moves arrays that are spread over the memories of many ranks to storage and back: whole, any section of them,
or a set of them, whatever the layout on either side. Files are ordinary Zarr v3, NetCDF classic, npy and raw files.

>>> import hyperslab as hs
>>> dist = hs.Distribution.block((128, 128, 64), 8)
>>> dist.local_shape(0)
(64, 64, 32)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hyperslab._core import __version__
from hyperslab.array import Array
from hyperslab.attributes import Attributes, Empty, Kept
from hyperslab.batch import Batch
from hyperslab.chunking import TypicalRequest
from hyperslab.comm import ThreadComm, release, threads
from hyperslab.conversion import Converted, convert
from hyperslab.distribution import Distribution
from hyperslab.ending import finalize
from hyperslab.errors import (
    BusyError,
    CorruptError,
    DisagreementError,
    Error,
    ExistsError,
    InterruptedError,
    InvalidError,
    NotFoundError,
    OutdatedError,
    PeerError,
    PoisonedError,
    StorageError,
    TimeoutError,
    UnsupportedError,
    UnsyncedError,
)
from hyperslab.explaining import Explanation, explain
from hyperslab.expressions import Expression
from hyperslab.files import RawFile, load_npy, open_raw, save_npy
from hyperslab.group import Group, Report
from hyperslab.hdf5 import Hdf5File
from hyperslab.memory import MemoryPath, MemoryStore, ObjectMemory
from hyperslab.netcdf import NetcdfFile
from hyperslab.opening import open
from hyperslab.pieces import Boxes, ElementMap, Pieces, Runs
from hyperslab.requests import Request, wait_all
from hyperslab.selection import Selected
from hyperslab.servers import ServedComm, dedicate
from hyperslab.steps import Step, Steps
from hyperslab.striped import Striped
from hyperslab.verification import Finding, Verification, VerifiedArray, verify

if TYPE_CHECKING:
    from hyperslab import trace
    from hyperslab.planning import Plan, plan
    from hyperslab.simulation import Machine, Simulated, machines, simulate

__all__ = [
    "Array",
    "Attributes",
    "Batch",
    "Boxes",
    "BusyError",
    "Converted",
    "CorruptError",
    "DisagreementError",
    "Distribution",
    "ElementMap",
    "Empty",
    "Error",
    "ExistsError",
    "Explanation",
    "Expression",
    "Finding",
    "Group",
    "Hdf5File",
    "InterruptedError",
    "InvalidError",
    "Kept",
    "Machine",
    "MemoryPath",
    "MemoryStore",
    "NetcdfFile",
    "NotFoundError",
    "ObjectMemory",
    "OutdatedError",
    "PeerError",
    "Pieces",
    "Plan",
    "PoisonedError",
    "RawFile",
    "Report",
    "Request",
    "Runs",
    "Selected",
    "ServedComm",
    "Simulated",
    "Step",
    "Steps",
    "StorageError",
    "Striped",
    "ThreadComm",
    "TimeoutError",
    "TypicalRequest",
    "UnsupportedError",
    "UnsyncedError",
    "Verification",
    "VerifiedArray",
    "__version__",
    "convert",
    "dedicate",
    "explain",
    "finalize",
    "load_npy",
    "machines",
    "open",
    "open_raw",
    "plan",
    "release",
    "save_npy",
    "simulate",
    "threads",
    "trace",
    "verify",
    "wait_all",
]

#: What no program needs that only moves arrays: the laboratory, and reading of traces. By name, the module that has it,
#: which is loaded when somebody asks for it.
_ON_USE = {
    "Machine": "simulation",
    "Plan": "planning",
    "Simulated": "simulation",
    "machines": "simulation",
    "plan": "planning",
    "simulate": "simulation",
    "trace": "trace",
}


def __getattr__(name: str) -> Any:
    if name not in _ON_USE:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    module = import_module(f"{__name__}.{_ON_USE[name]}")
    found = module if name == _ON_USE[name] else getattr(module, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
