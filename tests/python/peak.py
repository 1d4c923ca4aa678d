"""The most memory that a process has had since it runs its program, for tests of memory.

What getrusage tells begins with what the process had that started it: below a large pytest, that says nothing.
"""

from __future__ import annotations

import inspect


def peak_bytes() -> int:
    with open("/proc/self/status", encoding="ascii") as status:  # noqa: PTH123 (as a text, it imports nothing)
        (line,) = (line for line in status if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


#: For programs that are given as text.
PEAK = inspect.getsource(peak_bytes)
