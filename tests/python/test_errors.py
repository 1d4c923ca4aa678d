"""A collective call fails on all ranks together, with one text, quickly; and what was stored before is still there."""

from __future__ import annotations

import json
from pathlib import Path

import hyperslab as hs
import numpy as np
import pytest

from error_cases import CASES, ODD, Outcome
from mpi_launch import run_ranks
from mpi_programs.failing import run_cases

RANKS = 3
Errors = list[dict[str, Outcome]]


@pytest.fixture(scope="module")
def errors_of_threads(tmp_path_factory: pytest.TempPathFactory) -> Errors:
    directory = tmp_path_factory.mktemp("threads")
    return hs.threads(RANKS, lambda comm: run_cases(comm, directory))


@pytest.fixture(scope="module")
def errors_of_mpi(tmp_path_factory: pytest.TempPathFactory) -> Errors:
    printed = run_ranks(RANKS, "failing", tmp_path_factory.mktemp("mpi"))
    errors: Errors = json.loads(printed.splitlines()[-1])
    return errors


def check(name: str, every: Errors) -> None:
    """All ranks have the error that the case says, with one text."""
    case = CASES[name]
    outcomes = [outcomes[name] for rank, outcomes in enumerate(every) if not (case.own and rank == ODD)]
    assert {kind for kind, _ in outcomes} <= set(case.kind.split()), outcomes[0]
    assert len({text for _, text in outcomes}) == 1, "\n".join(text for _, text in outcomes)
    text = outcomes[0][1]
    assert [word for word in case.words if word not in text] == [], text


@pytest.mark.parametrize("name", CASES)
def test_threads_fail_together(name: str, errors_of_threads: Errors) -> None:
    check(name, errors_of_threads)


@pytest.mark.mpi
@pytest.mark.parametrize("name", CASES)
def test_mpi_ranks_fail_together(name: str, errors_of_mpi: Errors) -> None:
    check(name, errors_of_mpi)


def test_errors_are_also_those_of_python() -> None:
    for own, known in {
        hs.InvalidError: ValueError,
        hs.DisagreementError: ValueError,
        hs.TimeoutError: TimeoutError,
        hs.NotFoundError: FileNotFoundError,
        hs.ExistsError: FileExistsError,
        hs.StorageError: OSError,
        hs.UnsupportedError: NotImplementedError,
    }.items():
        assert issubclass(own, (hs.Error, known))
        assert issubclass(own, known)
        with pytest.raises(known, match="text of it"):
            raise own("text of it")


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    store = hs.open(tmp_path / "a.zarr", "w")
    store.close()
    with pytest.raises(hs.InvalidError, match="is closed\n  hint: move the call into the with block, or open it again"):
        store.arrays()


def test_what_an_error_says_is_there_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    with hs.open(path, "w") as store:
        store.write("rho", np.arange(8.0))
    chunk = path / "rho" / "c.0"
    chunk.write_bytes(chunk.read_bytes()[:-3])
    with hs.open(path) as store, pytest.raises(hs.CorruptError) as raised:
        store.read("rho")
    error = raised.value
    assert error.where == str(chunk)
    assert error.doing == (f"read of 'rho' from '{path}'",)
    assert error.what == f"'{chunk}' is damaged"
    assert error.expected is not None
    assert error.found is not None
    assert str(error).startswith(f"{error.doing[0]}: {error.what}: expected {error.expected}, found {error.found}")
    assert error.hint
    assert str(error).endswith(f"hint: {error.hint}")
    assert error.ranks == (), "there is one rank only"


def test_an_error_names_the_ranks_that_it_befell(tmp_path: Path) -> None:
    def run(comm: hs.ThreadComm) -> tuple[tuple[int, ...], str | None, str | None]:
        whole = np.zeros((3, 8) if comm.rank == 2 else (2, 8))
        dist = hs.Distribution((8, 8), (comm.size,), ("block", "*"))
        with hs.open(tmp_path / "b.zarr", "w", comm=comm) as store, pytest.raises(hs.InvalidError) as raised:
            store.write("a", whole, dist)
        return raised.value.ranks, raised.value.expected, raised.value.found

    assert hs.threads(4, run) == [((2,), "shape (2, 8)", "shape (3, 8)")] * 4


def test_requests_say_by_themselves_what_calls_do(tmp_path: Path) -> None:
    """Also where the rank that waits could not make its call."""
    with hs.open(tmp_path / "s.zarr", "w", durable=False) as store:
        store.write("rho", np.arange(12.0))
        (tmp_path / "s.zarr/rho/zarr.json").write_text('{"zarr_format": 3, "node_type": "array", "shape": "none"}')
        store.refresh()
        told = []
        for call in (lambda: store.read("rho"), lambda: store.iread("rho").wait()):
            with pytest.raises(hs.Error) as raised:
                call()
            error = raised.value
            told.append((type(error), error.what, error.where, error.expected, error.found, error.hint))
        assert told[0] == told[1]


def test_options_of_new_arrays_are_refused_for_those_that_are_there(tmp_path: Path) -> None:
    with hs.open(tmp_path / "s.zarr", "w", durable=False) as store:
        store.write("rho", np.arange(12.0))
        for options in ({"chunks": (4,)}, {"zstd": 1}, {"fill_value": 1}, {"attributes": {"a": 1}}, {"dtype": "f4"}):
            with pytest.raises(hs.InvalidError, match="cannot be given for an array that is there already"):
                store.write("rho", np.zeros(2), section=slice(0, 2), **options)
        np.testing.assert_array_equal(store.read("rho"), np.arange(12.0))


def test_sections_that_make_no_sense_say_so(tmp_path: Path) -> None:
    with hs.open(tmp_path / "s.zarr", "w", durable=False) as store:
        store.write("rho", np.arange(12.0))
        for section in ("ab", (1, 2, 3), [(1, 2, 3)], 1.5, {}):
            with pytest.raises((hs.InvalidError, TypeError)) as raised:
                store.read("rho", section=section)
            assert "__index__" not in str(raised.value)
        with pytest.raises(hs.InvalidError, match="'rho' is named twice"):
            store.read(["rho", "rho"])
