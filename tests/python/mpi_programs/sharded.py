"""A matrix of arrays in shards and chunks: ours read by zarr-python and xarray, theirs by us.

Usage: sharded DIRECTORY SEED PART PARTS
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import hyperslab as hs
import numcodecs
import numpy as np
import xarray
import zarr
from numpy.typing import NDArray
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, TransposeCodec, ZstdCodec

from global_arrays import Spread, replace, same, select
from random_cases import Random, as_user_says, section_shape, some_section, some_spread, some_values
from sharded_cases import CHAINS, Cell, cells

CODECS = {"blosc": BloscCodec, "crc32c": Crc32cCodec, "gzip": GzipCodec, "zstd": ZstdCodec}
Expected = dict[str, tuple[Cell, NDArray[Any]]]


def write_ours(store: hs.Group, cell: Cell, random: Random, rank: int, ranks: int) -> NDArray[Any]:
    """Write an array, change a section of it, append to it; what must then be found."""
    values = some_values(random, cell.shape, cell.kind, any_bits=True)
    options: dict[str, Any] = {"attributes": cell.attributes, "codecs": cell.codecs(), "shards": cell.shards}
    names = [f"d{dim}_{cell.number}" for dim in range(len(cell.shape))]
    dist = cell.wrote.distribution()
    store.write(cell.name, cell.wrote.part(values, rank), dist, chunks=cell.chunks, dimension_names=names, **options)
    spread = some_spread(random, section_shape(cell.section), ranks)
    new = some_values(random, spread.shape, cell.kind, any_bits=True)
    section = as_user_says(random, cell.section)
    store.write(cell.name, spread.part(new, rank), spread.distribution(), section=section)
    replace(values, cell.section, new)
    for _ in range(int(random.integers(0, 3))):
        axis = int(random.integers(len(cell.shape)))
        grown = list(values.shape)
        grown[axis] = int(random.integers(1, 6))
        spread = some_spread(random, tuple(grown), ranks)
        new = some_values(random, spread.shape, cell.kind, any_bits=True)
        store.append(cell.name, spread.part(new, rank), spread.distribution(), axis=axis)
        values = np.concatenate([values, new], axis)
    return values


def read(store: hs.Group, cell: Cell, values: NDArray[Any], random: Random, rank: int, ranks: int) -> None:
    """Read all of an array, and a section of it, and compare."""
    spread = cell.reads if values.shape == cell.shape else some_spread(random, values.shape, ranks)
    for quads, spread in ((None, spread), some_part(random, values.shape, ranks)):  # noqa: B020 (the first is the array's)
        expected = values if quads is None else select(values, quads)
        section = None if quads is None else as_user_says(random, quads)
        found = store.read(cell.name, spread.distribution(), section=section)
        if spread.holds(rank):
            same(found, spread.part(expected, rank), f"{cell.name}, section {section}, rank {rank}")


def some_part(random: Random, shape: tuple[int, ...], ranks: int) -> tuple[Any, Spread]:
    """A section, and who reads what of it."""
    quads = some_section(random, shape)
    return quads, some_spread(random, section_shape(quads), ranks)


def write_theirs(path: Path, cell: Cell, values: NDArray[Any]) -> None:
    """Write an array by zarr-python."""
    group = zarr.open_group(path, mode="a", zarr_format=2 if cell.is_v2 else 3)
    if cell.is_v2:
        first = next((one for one in CHAINS[cell.chain] if one["name"] != "crc32c"), None)
        array = group.create_array(
            cell.name,
            shape=cell.shape,
            chunks=cell.chunks,
            dtype=np.dtype(cell.kind).newbyteorder("<" if cell.endian == "little" else ">"),
            order=cell.order,
            compressors=None if first is None else compressor_of_v2(first),
            filters=None,
            attributes=cell.attributes,
            chunk_key_encoding={"name": "v2", "separator": "/" if cell.number % 2 else "."},
        )
    else:
        shards: Any = cell.shards
        if cell.lies_in == "shards, index first":
            shards = {"shape": cell.shards, "index_location": "start"}
        itemsize = np.dtype(cell.kind).itemsize
        array = group.create_array(
            cell.name,
            shape=cell.shape,
            chunks=cell.chunks,
            shards=shards,
            dtype=cell.kind,
            filters=[TransposeCodec(order=tuple(cell.permutation))] if cell.order == "F" else None,
            serializer=BytesCodec(endian=cell.endian) if itemsize > 1 else BytesCodec(endian=None),
            compressors=[codec_of(one, itemsize) for one in CHAINS[cell.chain]] or None,
            attributes=cell.attributes,
        )
    array[...] = values


def codec_of(one: dict[str, Any], itemsize: int) -> Any:
    """A codec of zarr-python."""
    configuration = dict(one.get("configuration", {}))
    if one["name"] == "blosc":
        configuration["typesize"] = itemsize
    return CODECS[one["name"]](**configuration)


def compressor_of_v2(one: dict[str, Any]) -> Any:
    """A compressor of Zarr v2."""
    configuration = one["configuration"]
    if one["name"] == "blosc":
        shuffle = ["noshuffle", "shuffle", "bitshuffle"].index(configuration["shuffle"])
        return numcodecs.Blosc(configuration["cname"], configuration["clevel"], shuffle)
    return {"gzip": numcodecs.GZip, "zstd": numcodecs.Zstd}[one["name"]](configuration["level"])


def check_ours(path: Path, expected: Expected) -> None:
    """Compare what zarr-python and xarray find in our arrays."""
    group = zarr.open_group(path, mode="r")
    for name, (cell, values) in expected.items():
        array = group[name]
        same(np.asarray(array[...]), values, f"zarr-python's '{name}'")
        assert (array.chunks, array.shards) == (cell.chunks, cell.shards), f"{cell}"
        assert dict(array.attrs) == cell.attributes
    plain = {cell.name: values for cell, values in expected.values() if "/" not in cell.name}
    dataset = xarray.open_zarr(path, consolidated=False, mask_and_scale=False)
    assert set(plain) == set(dataset.variables)
    for name, values in plain.items():
        same(np.asarray(dataset[name].values), values, f"xarray's '{name}'")
        assert dataset[name].dims == tuple(f"d{dim}_{name[1:]}" for dim in range(values.ndim))


def run_cells(comm: Any, directory: Path, seed: int, part: int, parts: int) -> str:
    """Run cells on the ranks of a communicator; the summary."""
    rank, ranks = comm.rank, comm.size
    chosen = cells(seed, ranks, part, parts)
    expected: Expected = {}
    with hs.open(directory / "ours.zarr", "w", comm=comm, durable=False, arrival_seconds=60) as store:
        for cell, random in chosen:
            try:
                values = write_ours(store, cell, random, rank, ranks)
                expected[cell.name] = (cell, values)
                read(store, cell, values, random, rank, ranks)
            except Exception as error:
                error.add_note(f"in a cell of seed {seed} on {ranks} ranks: {cell}")
                raise
    theirs = {cell.number: some_values(random, cell.shape, cell.kind, any_bits=True) for cell, random in chosen}
    if rank == 0:
        check_ours(directory / "ours.zarr", expected)
        for cell, _ in chosen:
            write_theirs(directory / ("v2.zarr" if cell.is_v2 else "v3.zarr"), cell, theirs[cell.number])
    comm.barrier()
    for name, is_v2 in (("v2.zarr", True), ("v3.zarr", False)):
        with hs.open(directory / name, comm=comm) as store:
            for cell, random in (one for one in chosen if one[0].is_v2 == is_v2):
                try:
                    read(store, cell, theirs[cell.number], random, rank, ranks)
                    found = store[cell.name]
                    assert found.attrs == cell.attributes
                    assert is_v2 or (found.chunks, found.shards) == (cell.chunks, cell.shards)
                except Exception as error:
                    error.add_note(f"in a cell of zarr-python's, seed {seed}, {ranks} ranks: {cell}")
                    raise
    return f"{len(chosen)} cells on {ranks} ranks"


def main() -> None:
    """Run under MPI."""
    from mpi4py import MPI

    warnings.simplefilter("ignore")
    comm = MPI.COMM_WORLD
    summary = run_cells(comm, Path(sys.argv[1]), *map(int, sys.argv[2:]))
    if comm.rank == 0:
        print(summary)


if __name__ == "__main__":
    main()
