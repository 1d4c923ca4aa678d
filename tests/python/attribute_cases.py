"""Random attributes in all formats, read by the libraries that own them, and copied from any format to any other."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import h5py
import hyperslab as hs
import netCDF4
import numpy as np
import scipy.io
import zarr

#: Formats, how files of them are named, and what they are called when they are opened.
FORMATS = {"hdf5": "h5", "netcdf4": "nc4", "netcdf3": "nc", "zarr": "zarr"}

#: What an oracle says of a value that a format does not have.
REFUSED = object()

NUMBERS = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")
RECORD = np.dtype([("a", "<i4"), ("größe", ">f8", (2,)), ("s", "S3")])
NAMED = h5py.enum_dtype({"OFF": 0, "ON": 1, "ODD": -7}, "i2")


# ---- values --------------------------------------------------------------------------------------------------------


def some_shape(random: np.random.Generator) -> tuple[int, ...]:
    """None, one or several dimensions, some of them empty."""
    return tuple(int(extent) for extent in random.integers(0, 4, random.choice([0, 0, 1, 1, 2, 3])))


def some_bits(random: np.random.Generator, dtype: Any) -> Any:
    """Elements of any bits, NaN and infinity among them."""
    dtype, shape = np.dtype(dtype), some_shape(random)
    raw = random.integers(0, 256, (int(np.prod(shape)), dtype.itemsize), dtype=np.uint8)
    if dtype.kind in "fc" and raw.size and random.random() < 0.5:
        odd = np.array(random.choice([np.nan, np.inf, -np.inf, -0.0, 0.1]), dtype)
        raw[0] = np.frombuffer(odd.tobytes(), np.uint8)
    values = np.frombuffer(raw.tobytes(), dtype).reshape(shape)
    return values if shape else values[()]


def some_text(random: np.random.Generator) -> str:
    """Text in several scripts, or none."""
    return "".join(random.choice([*"abc /\\\"'{}[],: \n", "ä", "ß", "мм", "µ", "𝄞"], int(random.integers(0, 9))))


def some_records(random: np.random.Generator) -> Any:
    """Records, one or several."""
    values = np.zeros(some_shape(random), RECORD)
    values["a"], values["größe"], values["s"] = random.integers(-9, 9, values.shape), 0.5, b"xy"
    return values if values.shape else values[()]


def some_plain(random: np.random.Generator, depth: int = 0) -> Any:
    """What JSON has."""
    kinds: list[Callable[[], Any]] = [
        lambda: int(random.integers(-(2**40), 2**40)),
        lambda: int(random.choice([0, 2**31 - 1, -(2**31), 2**63 - 1])),
        lambda: 2**64 - 1,
        lambda: float(random.normal()),
        lambda: float(random.choice([np.nan, np.inf, -np.inf, 0.0, 1e300, 5e-324])),
        lambda: bool(random.integers(2)),
        lambda: some_text(random),
        lambda: None,
        lambda: [int(one) for one in random.integers(-9, 9, random.integers(0, 4))],
        lambda: [0.5, float("nan"), 3],
        lambda: [some_text(random) for _ in range(random.integers(1, 4))],
        lambda: [[1, 2], [3, 4]],
    ]
    if depth < 2:
        kinds.append(lambda: {some_text(random): some_plain(random, depth + 1) for _ in range(2)})
        kinds.append(lambda: [some_plain(random, depth + 1) for _ in range(2)])
    return kinds[random.integers(len(kinds))]()


def some_value(random: np.random.Generator) -> Any:
    """Any value that a format has."""
    kinds: list[Callable[[], Any]] = [
        lambda: some_bits(random, random.choice(NUMBERS)),
        lambda: some_bits(random, random.choice(NUMBERS)),
        lambda: some_bits(random, np.dtype(random.choice(NUMBERS)).newbyteorder(">")),
        lambda: some_bits(random, random.choice(["f2", "c8", "c16", "V3"])),
        lambda: random.integers(0, 2, 3).astype(bool),
        lambda: np.bool_(random.integers(2)),
        lambda: some_text(random),
        lambda: some_text(random).encode("utf-8") + bytes(random.integers(1, 256, 2, dtype=np.uint8)),
        lambda: np.bytes_(some_text(random).encode("utf-16-le") + b"x"),
        lambda: b"",
        lambda: np.array([b"a", b"", b"\xb5m"]),
        lambda: np.array(["a", "", "größe"], object),
        lambda: np.array([["a", "b"]]),
        lambda: some_text(random) + "\0" + some_text(random),
        lambda: "\udcb5m",
        lambda: complex(random.normal(), np.inf),
        lambda: some_records(random),
        lambda: np.array([0, 1, -7], NAMED),
        lambda: hs.Empty(np.dtype("f4")),
        lambda: some_plain(random),
        lambda: some_plain(random),
        lambda: some_plain(random),
    ]
    return kinds[random.integers(len(kinds))]()


# ---- what formats make of them -------------------------------------------------------------------------------------


def array_of(value: Any) -> Any:
    """The array that a plain value is, as NumPy takes it; nothing where it is none."""
    if isinstance(value, (list, tuple)):
        leaves = [*flat(value)]
        unlike = (
            len(
                {
                    "number" if isinstance(one, (int, float)) and not isinstance(one, bool) else type(one)
                    for one in leaves
                }
            )
            > 1
        )
        if unlike or any(one is None or isinstance(one, dict) for one in leaves):
            return None
        try:
            made = np.array(value, object if leaves and isinstance(leaves[0], str) else None)
        except ValueError:
            return None
        if made.dtype.kind == "O" and any(not isinstance(one, str) for one in made.ravel()):
            return None
        if not whole(leaves):
            return made
        return integers(leaves).reshape(made.shape) if whole_fits(leaves) else None
    return np.array(value)


def whole(leaves: list[Any]) -> bool:
    """Whether all are integers, and there is one."""
    return bool(leaves) and all(isinstance(one, int) and not isinstance(one, bool) for one in leaves)


def whole_fits(leaves: list[int]) -> bool:
    """Whether one type of integers holds all."""
    return max(leaves) < 2**63 or min(leaves) >= 0


def integers(leaves: list[int]) -> Any:
    """Integers in the type that holds all, which NumPy does not look for."""
    return np.array(leaves, "i8" if max(leaves) < 2**63 else "u8")


def flat(value: Any) -> Iterable[Any]:
    """What lies in lists in lists."""
    for one in value:
        if isinstance(one, (list, tuple)):
            yield from flat(one)
        else:
            yield one


def in_hdf5(value: Any) -> Any:
    """A value as h5py gives it back."""
    if value is None or isinstance(value, (dict, hs.Kept)):
        return REFUSED
    if isinstance(value, str):
        return REFUSED if "\0" in value else value
    if isinstance(value, hs.Empty):
        return value
    if isinstance(value, (bytes, np.bytes_)):
        return REFUSED if value.endswith(b"\0") else np.bytes_(value)
    made = value if isinstance(value, (np.ndarray, np.generic)) else array_of(value)
    if made is None:
        return REFUSED
    if made.dtype.kind in "OUT":
        texts = np.array([str(one) for one in made.ravel()], object).reshape(made.shape)
        return REFUSED if any("\0" in one for one in texts.ravel()) else texts
    return made if made.shape else made[()]


def in_netcdf(value: Any, version: int) -> Any:
    """A value as netCDF4-python gives it back, but for bytes that are no UTF-8, which it destroys."""
    if value is None or isinstance(value, (dict, hs.Empty, hs.Kept, bool, np.bool_)):
        return REFUSED
    if isinstance(value, (str, bytes)):
        text = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else bytes(value)
        if b"\0" in text:
            return REFUSED
        try:
            return text.decode()
        except UnicodeDecodeError:
            return np.bytes_(text)
    typed = isinstance(value, (np.ndarray, np.generic))
    made = value if typed else array_of(value)
    if (
        made is None
        or made.ndim > 1
        or made.dtype.names is not None
        or made.dtype.metadata
        or hasattr(value, "members")
    ):
        return REFUSED
    if made.dtype.kind in "OUT" and made.size and version == 4:
        texts = [str(one) for one in made.ravel()]
        return REFUSED if any("\0" in one for one in texts) else texts[0] if len(texts) == 1 else texts
    if made.dtype.kind not in "iuf" or (made.dtype.itemsize == 2 and made.dtype.kind == "f"):
        return REFUSED
    made = made.astype(made.dtype.newbyteorder("="))
    small = np.append(made, 0)
    if not typed and made.dtype.kind == "i" and version == 3 and -(2**31) <= small.min() <= small.max() < 2**31:
        made = made.astype("i4")
    return made.ravel()[0] if made.size == 1 else made


def in_zarr(value: Any) -> Any:
    """A value as zarr-python gives it back."""
    if isinstance(value, (np.ndarray, np.generic)) and not isinstance(value, (str, bytes)):
        if value.dtype.kind not in "biufOUT" or value.dtype.metadata or hasattr(value, "members"):
            return REFUSED
        return in_zarr(value.tolist())
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return REFUSED
    if isinstance(value, (bytes, complex, hs.Empty, hs.Kept)):
        return REFUSED
    if isinstance(value, (list, tuple)):
        parts = [in_zarr(one) for one in value]
        return REFUSED if any(part is REFUSED for part in parts) else parts
    return value


ORACLES: dict[str, Callable[[Any], Any]] = {
    "hdf5": in_hdf5,
    "netcdf4": lambda value: in_netcdf(value, 4),
    "netcdf3": lambda value: in_netcdf(value, 3),
    "zarr": in_zarr,
}


# ---- how they are compared -----------------------------------------------------------------------------------------


def told(value: Any) -> Any:
    """A value so that those are equal which are alike: by type, shape and bits."""
    if isinstance(value, Mapping):
        return {name: told(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [told(one) for one in value]
    if isinstance(value, float) and not isinstance(value, np.generic):
        return ("float", "nan" if value != value else value.hex())
    if isinstance(value, (str, bytes)):
        return ("text" if isinstance(value, str) else "bytes", str(value) if isinstance(value, str) else bytes(value))
    if isinstance(value, (np.ndarray, np.generic)):
        metadata = value.dtype.metadata or {}
        content = value.tolist() if value.dtype.kind == "O" else value.tobytes()
        names = dict(metadata.get("enum") or {})
        return (value.dtype.str, value.dtype.names, value.shape, content, names)
    if type(value).__name__ == "Empty":
        return ("empty", str(np.dtype(value.dtype)) if value.dtype is not None else None)
    return (type(value).__name__, value)


def owner(path: Path, name: str) -> dict[str, Any]:
    """Attributes of the file as the library of its format gives them."""
    if name == "hdf5":
        with h5py.File(path) as file:
            return dict(file.attrs)
    if name == "zarr":
        return dict(zarr.open_group(path, mode="r").attrs)
    with netCDF4.Dataset(path) as data:
        return {one: data.getncattr(one) for one in data.ncattrs()}


def by_scipy(path: Path) -> dict[str, Any]:
    """Attributes of a classic file as SciPy gives them, which does not read all versions."""
    with scipy.io.netcdf_file(path, mmap=False) as file:
        return {name.encode("latin-1").decode(): value for name, value in file._attributes.items()}


def check(path: Path, name: str, expected: Mapping[str, Any]) -> None:
    """That the owner's library finds what is expected."""
    found = owner(path, name)
    assert list(found) == list(expected) or name == "hdf5", (list(found), list(expected))
    for one, value in expected.items():
        if isinstance(value, np.bytes_) and name.startswith("netcdf"):
            # It has put U+FFFD in place of what is no UTF-8.
            assert "�" in found[one]
            continue
        assert told(found[one]) == told(value), (one, found[one], value)
    if name == "netcdf3" and path.read_bytes()[3] < 5:
        for one, value in by_scipy(path).items():
            if isinstance(value, bytes):
                given = expected[one]
                assert value == (given.encode() if isinstance(given, str) else bytes(given)), one
            else:
                assert told(np.atleast_1d(value).astype(np.asarray(value).dtype.newbyteorder("="))) == told(
                    np.atleast_1d(expected[one])
                ), one


def make(path: Path, name: str, attributes: Mapping[str, Any], comm: Any) -> None:
    """A file of a format with attributes of its own, and an array with the same."""
    if name == "zarr":
        with hs.open(path, "w", comm=comm, durable=False) as store:
            store.attrs.update(attributes)
            store.write("a", np.zeros(3), hs.Distribution.replicated((3,), comm.size), attributes=attributes)
        return
    with hs.open(path, "w", comm=comm, durable=False, format=name, attributes=attributes) as file:
        file.write("a", np.zeros(3), hs.Distribution.replicated((3,), comm.size), attributes=attributes)


def refused(path: Path, name: str, one: str, value: Any, comm: Any) -> None:
    """That a value is refused by an error that names attribute and format."""
    try:
        make(path, name, {one: value}, comm)
    except hs.Error as error:
        text = str(error)
        assert repr(one) in text, text
        assert "hint: " in text, text
    else:
        raise AssertionError((name, one, value))


def case(comm: Any, folder: Path, random: np.random.Generator) -> None:
    """Random attributes in each format, and from each of these in each."""
    given = {f"n{number} ä": some_value(random) for number in range(6)}
    folder.mkdir(exist_ok=True)
    for name, end in FORMATS.items():
        outcome = {one: ORACLES[name](value) for one, value in given.items()}
        holds = {one: value for one, value in outcome.items() if value is not REFUSED}
        path = folder / f"a.{end}"
        for one in (one for one, value in outcome.items() if value is REFUSED):
            refused(folder / f"refused.{end}", name, one, given[one], comm)
        make(path, name, {one: given[one] for one in holds}, comm)
        comm.barrier()
        if comm.rank == 0:
            check(path, name, holds)
        with hs.open(path, comm=comm, format=None if name == "zarr" else name) as file:
            read = [dict(file.attrs), dict(file["a"].attrs)]
        for found in read:
            assert [*found] == [*holds]
            for one, value in holds.items():
                assert told(found[one]) == told(value), (name, one, found[one], value)
        copies(comm, folder, name, read[0])


def copies(comm: Any, folder: Path, source: str, attributes: Mapping[str, Any]) -> None:
    """What one format has told, written to each."""
    for name, end in FORMATS.items():
        outcome = {one: ORACLES[name](value) for one, value in attributes.items()}
        holds = {one: value for one, value in outcome.items() if value is not REFUSED}
        path = folder / f"{source}.{end}"
        for one in (one for one, value in outcome.items() if value is REFUSED):
            refused(folder / f"refused.{end}", name, one, attributes[one], comm)
        make(path, name, {one: attributes[one] for one in holds}, comm)
        comm.barrier()
        if comm.rank == 0:
            check(path, name, holds)


def run(comm: Any, folder: Path, seed: int, cases: Iterable[int]) -> None:
    """Random cases, each by its number."""
    warnings.simplefilter("ignore")
    for number in cases:
        try:
            case(comm, folder / f"{number}", np.random.default_rng([seed, number]))
        except Exception as error:
            error.add_note(f"seed {seed}, case {number}, {comm.size} ranks")
            raise


def json_of(path: Path) -> dict[str, Any]:
    """A document with what is written in it, digit for digit: numbers are texts."""
    found: dict[str, Any] = json.loads(path.read_text(), parse_float=str, parse_int=str, parse_constant=str)
    return found
