"""Dump, die, restart on another number of ranks, and end with the same bytes.

Run it with ``make demo``, or::

    python examples/jeans/demo.py

It needs an MPI, mpi4py, NumPy, zarr, xarray and matplotlib; it starts the ranks itself.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import picture
import readback
from death import DEATH_NOTE, MOMENTS
from launch import simulate

if TYPE_CHECKING:
    import subprocess

EIGHT = (2, 2, 2)
SIX = (3, 2, 1)
VICTIMS = {"before-first-byte": 3, "inside-analysis": 5, "between-files": 6, "inside-step": 2, "before-rename": 0}
"""Which rank dies at which moment. Rank 0 renames, so it is the one to die before it does."""


class Demo:
    """One demonstration in a directory of its own."""

    def __init__(self, out: Path, shape: str, steps: int, every: int) -> None:
        self.out = out
        self.whole = out / "uninterrupted"
        self.steps = steps
        self.every = every
        self.last = steps // every
        self.fatal = self.last - 1
        self.options = ("--shape", shape, "--dump-every", str(every))

    def run(self) -> None:
        """Run everything; raise ``readback.DifferenceError`` at the first thing that is not as promised."""
        shutil.rmtree(self.out, ignore_errors=True)
        self.out.mkdir(parents=True)
        heading("1. An uninterrupted run on 8 ranks (2 x 2 x 2)")
        print(succeeded(simulate(self.whole, EIGHT, *self.options, "--steps", str(self.steps))))
        heading(f"2. Five sudden deaths in dump {self.fatal}; each run is resumed on 6 ranks (3 x 2 x 1)")
        before = self.out / "before"
        succeeded(simulate(before, EIGHT, *self.options, "--steps", str((self.fatal - 1) * self.every)))
        print(f"a second run stops after dump {self.fatal - 1}; the five that follow begin with a copy of it")
        for moment in MOMENTS:
            self._die_and_resume(before, moment)
        shutil.rmtree(before)
        heading("3. The dumps, read back with tools that know nothing of hyperslab")
        count = readback.check_files(self.whole, self.last)
        print(f"numpy.fromfile and h5py: {count} files agree with the steps in double precision")
        path = self.out / "collapse.png"
        picture.draw(self.whole, readback.steps(self.whole), path)
        print(f"xarray and zarr-python: all {self.last + 1} steps; drawn in {path}")
        heading("4. What the dumps of the uninterrupted run cost")
        table(self.whole / "costs.jsonl")

    def _die_and_resume(self, before: Path, moment: str) -> None:
        """Let one rank die, look at what is left, resume on other ranks, and compare the end of the run."""
        out = self.out / f"died-{moment}"
        shutil.copytree(before, out)
        print(f"\n{moment}: rank {VICTIMS[moment]} of 8 is killed {MOMENTS[moment]}")
        victim = str(VICTIMS[moment])
        death = ("--die-at", moment, "--die-in-dump", str(self.fatal), "--die-rank", victim)
        when = ("--die-after", f"{self._within(moment):.4f}")
        goal = (*self.options, "--steps", str(self.steps), "--resume")
        run = simulate(out, EIGHT, *goal, *death, *when)
        note = out / DEATH_NOTE
        if run.returncode == 0 or not note.exists():
            raise readback.DifferenceError(
                f"it should have died ({moment}), but returned {run.returncode}\n{report(run)}"
            )
        print(f"  the run died ({note.read_text(encoding='utf-8')}); mpiexec returned {run.returncode}")
        left = readback.check_after_death(out, self.whole, self.fatal - 1)
        print(f"  visible to others: dumps 0 to {self.fatal - 1}, whole and unchanged")
        print(f"  left behind, unpublished: {', '.join(left) or 'nothing'}")
        note.unlink()
        lines = succeeded(simulate(out, SIX, *goal)).splitlines()
        for line in lines:
            if line.startswith(("removed", "resumed")):
                print(f"  {line}")
        if readback.steps(out) != readback.steps(self.whole):
            raise readback.DifferenceError(f"{out}: the resumed run has the steps {readback.steps(out)}")
        for number in range(self.fatal, self.last + 1):
            readback.same_step(out, self.whole, f"dump_{number:04d}")
            for name in readback.file_names(number):
                readback.same_files(out / name, self.whole / name)
        readback.same_files(out / "restart.raw", self.whole / "restart.raw")
        print("  its end against the uninterrupted run's, every byte of all arrays and files: identical")
        shutil.rmtree(out)

    def _within(self, moment: str) -> float:
        """Return a third of the time that the transfer took in the uninterrupted run [s]: when to kill inside it."""
        file = "run.zarr/dump_" if moment == "inside-step" else "analysis_"
        rows = costs(self.whole / "costs.jsonl")
        return min(float(row["seconds"]) for row in rows if row["file"].startswith(file)) / 3.0


def costs(path: Path) -> list[dict[str, Any]]:
    """Return what each file of a run cost."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def table(path: Path) -> None:
    """Print what each file of a run cost."""
    print(f"{'file':<24} {'bytes':>12} {'seconds':>9} {'MB/s':>9}  strategy")
    for row in costs(path):
        rate = row["bytes"] / row["seconds"] / 1e6
        print(f"{row['file']:<24} {row['bytes']:>12,} {row['seconds']:>9.3f} {rate:>9.1f}  {row['strategy']}")


def succeeded(run: subprocess.CompletedProcess[str]) -> str:
    """Return the output of a run that must not have failed."""
    if run.returncode != 0:
        raise SystemExit(f"the simulation failed\n{report(run)}")
    return run.stdout.rstrip()


def report(run: subprocess.CompletedProcess[str]) -> str:
    """Return all that a run has said."""
    return f"command: {' '.join(run.args)}\nreturned {run.returncode}\n{run.stdout}\n{run.stderr}"


def heading(text: str) -> None:
    """Print a heading."""
    print(f"\n{text}\n{'-' * len(text)}", flush=True)


def main() -> int:
    """Run the demonstration; return 0 when everything was identical."""
    parser = argparse.ArgumentParser(description="Dump, die, restart elsewhere, and end with the same bytes.")
    parser.add_argument("--out", type=Path, default=Path("demo-output"), help="directory, emptied at the start")
    parser.add_argument("--shape", default="128,128,64", help="cells in x, y and z")
    parser.add_argument("--steps", type=int, default=20, help="number of time steps, a multiple of --dump-every")
    parser.add_argument("--dump-every", type=int, default=5, help="time steps from dump to dump")
    asked = parser.parse_args()
    if asked.steps % asked.dump_every or asked.steps < 3 * asked.dump_every:
        parser.error("--steps must be a multiple of --dump-every, and at least three times as much")
    begin = time.perf_counter()
    try:
        Demo(asked.out, asked.shape, asked.steps, asked.dump_every).run()
    except readback.DifferenceError as difference:
        print(f"\nDIFFERENT: {difference}", file=sys.stderr)
        return 1
    print(f"\nAll five restarts ended identical to the uninterrupted run ({time.perf_counter() - begin:.0f} s).")
    return 0


if __name__ == "__main__":
    sys.exit(main())
