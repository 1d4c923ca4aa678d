"""Chunks with checksums of which several ranks read parts: what these add up to tells of damage, and where it is."""

from __future__ import annotations

from pathlib import Path

import hyperslab as hs
import numpy as np
import pytest

SHAPE, CHUNKS = (12, 10, 16), (4, 5, 8)
VALUES = np.arange(np.prod(SHAPE), dtype="f8").reshape(SHAPE)
SPREADS = (("block", "*", "*"), ("*", "block", "*"), ("*", "*", "cyclic"), ("cyclic(3)", "*", "*"))
STRATEGIES = (None, "independent", "data-sieving", "two-phase", "server-directed", "disk-directed", "root-gather")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.zarr"
    with hs.open(path, "w", durable=False) as store:
        store.write("x", VALUES, chunks=CHUNKS, fill_value=-1.0)
    return path


def read(path: Path, ranks: int, spread: tuple[str, ...], strategy: str | None) -> list[hs.Error | None]:
    """Read all of it; gives how that ended on each rank."""

    def run(comm: hs.ThreadComm) -> hs.Error | None:
        dist = hs.Distribution(SHAPE, (comm.size,), spread)
        expected = np.where(there(path), VALUES, -1.0)[np.ix_(*dist.indices(comm.rank))]
        with hs.open(path, comm=comm, strategy=strategy) as store:
            try:
                found = store.read("x", dist)
            except hs.Error as error:
                return error
            assert np.array_equal(found, expected)
        return None

    return hs.threads(ranks, run)


def chunk_of(path: Path, at: tuple[int, ...]) -> Path:
    return path / "x" / f"c.{'.'.join(map(str, at))}"


def there(path: Path) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Which elements are in a chunk that is there."""
    grid = tuple(extent // chunk for extent, chunk in zip(SHAPE, CHUNKS, strict=True))
    found = np.array([chunk_of(path, at).exists() for at in np.ndindex(*grid)]).reshape(grid)
    for axis, chunk in enumerate(CHUNKS):
        found = found.repeat(chunk, axis)
    return found


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("spread", SPREADS)
def test_what_adds_up_is_read_and_damage_is_named(path: Path, spread: tuple[str, ...], strategy: str | None) -> None:
    ranks = 3
    assert read(path, ranks, spread, strategy) == [None] * ranks
    random = np.random.default_rng(5)
    for _ in range(3):
        at = tuple(int(random.integers(extent // chunk)) for extent, chunk in zip(SHAPE, CHUNKS, strict=True))
        chunk = chunk_of(path, at)
        whole = chunk.read_bytes()
        byte = int(random.integers(len(whole)))
        flipped = whole[:byte] + bytes([whole[byte] ^ 1 << int(random.integers(8))]) + whole[byte + 1 :]
        for damaged in (flipped, whole[:-1], whole + b"x"):
            chunk.write_bytes(damaged)
            errors = read(path, ranks, spread, strategy)
            assert {type(error) for error in errors} == {hs.CorruptError}
            assert all(error is not None and error.where == str(chunk) for error in errors)
        chunk.write_bytes(whole)
    chunk_of(path, (1, 1, 1)).unlink()
    assert read(path, ranks, spread, strategy) == [None] * ranks


def test_two_chunks_that_are_damaged_alike_do_not_hide_each_other(path: Path) -> None:
    for at in ((0, 0, 0), (2, 1, 1)):
        chunk = chunk_of(path, at)
        whole = bytearray(chunk.read_bytes())
        whole[100] ^= 16
        chunk.write_bytes(whole)
    errors = read(path, 3, SPREADS[1], "independent")
    assert {type(error) for error in errors} == {hs.CorruptError}
