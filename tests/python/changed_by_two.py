"""One of two programs that change a file at the same time; prints what was reported done, and what was said."""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import hyperslab as hs
import numpy as np


def appends(file: Any, number: int) -> None:
    file.append("v", np.full((1, 4), float(number)))


def sets(file: Any, number: int) -> None:
    file.attrs[f"a{number}"] = number


def adds(file: Any, number: int) -> None:
    file.write(f"n{number}", np.full(3, float(number)))


ACTS: dict[str, Callable[[Any, int], None]] = {"appends": appends, "sets": sets, "adds": adds}


def main(act: str, path: str, seconds: float) -> None:
    number, said, until = 0, set[str](), time.monotonic() + seconds
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        while time.monotonic() < until:
            try:
                with hs.open(path, "r+", comm=None) as file:
                    ACTS[act](file, number)
                number += 1
            except hs.BusyError:
                pass
            except hs.StorageError as error:
                said.add(str(error))
    print(json.dumps({"done": number, "said": [*said, *(str(each.message) for each in warned)]}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
