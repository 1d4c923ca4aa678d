"""Elements of type bfloat16, which NumPy knows only through ml_dtypes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import hyperslab as hs
import numpy as np
import pytest
from numpy.typing import NDArray

ml_dtypes = pytest.importorskip("ml_dtypes")

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def every_value() -> NDArray[Any]:
    """All 65,536 bit patterns."""
    return np.arange(1 << 16, dtype="u2").view(BFLOAT16).reshape(256, 256)


def stored(path: Path, array: NDArray[Any], **options: Any) -> Path:
    with hs.open(path, "w") as store:
        store.write("x", array, **options)
    return path


def read(path: Path, **options: Any) -> NDArray[Any]:
    with hs.open(path) as store:
        return store.read("x", **options)


def same_numbers(found: NDArray[Any], expected: NDArray[Any]) -> None:
    """Equal bits, where any NaN is as good as any other."""
    assert found.dtype == expected.dtype
    nan = np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(found), nan)
    bits = f"u{found.itemsize}"
    np.testing.assert_array_equal(found.view(bits)[~nan], expected.view(bits)[~nan])


def test_every_bit_pattern_comes_back(tmp_path: Path) -> None:
    def body(comm: hs.ThreadComm) -> None:
        dist = hs.Distribution.block((256, 256), comm.size)
        mine = np.ascontiguousarray(every_value()[np.ix_(*dist.indices(comm))])
        with hs.open(tmp_path / "a.zarr", "w", comm=comm) as store:
            store.write("x", mine, dist, zstd=1)
        with hs.open(tmp_path / "a.zarr", comm=comm) as store:
            assert store["x"].dtype == BFLOAT16
            found = store.read("x", dist)
            assert found.dtype == BFLOAT16
            np.testing.assert_array_equal(found.view("u2"), mine.view("u2"))

    hs.threads(4, body)
    metadata = json.loads((tmp_path / "a.zarr/x/zarr.json").read_text())
    assert (metadata["data_type"], metadata["fill_value"]) == ("bfloat16", 0.0)


@pytest.mark.parametrize("kind", ["f2", "f4", "f8", "c8"])
def test_reading_converts_as_ml_dtypes_does(kind: str, tmp_path: Path) -> None:
    values = every_value()
    with np.errstate(over="ignore", invalid="ignore"):
        expected = values.astype("f4").astype(kind)
    found = read(stored(tmp_path / "a.zarr", values), dtype=kind)
    if kind == "c8":
        assert not found.imag.any()
        found, expected = found.real.copy(), expected.real.copy()
    same_numbers(found, expected)


def around_ties() -> NDArray[np.float32]:
    """Every bfloat16, the ties between them, and the neighbours of all these."""
    bits = np.arange(1 << 16, dtype="u4")[:, None] << 16 | np.array([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF], "u4")
    return bits.astype("u4").view("f4")


@pytest.mark.parametrize("kind", ["f4", "f8", "f2", "i2", "u1"])
def test_writing_rounds_as_ml_dtypes_does(kind: str, tmp_path: Path) -> None:
    values: NDArray[Any] = np.arange(1 << 16, dtype="u2").view("i2").astype(kind)
    if kind in ("f4", "f8"):
        with np.errstate(invalid="ignore"):
            values = around_ties().astype(kind)
    elif kind == "f2":
        values = np.arange(1 << 16, dtype="u2").view("f2")
    with np.errstate(over="ignore", invalid="ignore"):
        expected = values.astype(BFLOAT16)
    same_numbers(read(stored(tmp_path / "a.zarr", values, dtype=BFLOAT16)), expected)
    same_numbers(read(stored(tmp_path / "b.zarr", values, dtype="bfloat16")), expected)


def test_integers_and_doubles_are_rounded_once(tmp_path: Path) -> None:
    integer = (1 << 56) + (1 << 48) + 1
    found = read(stored(tmp_path / "a.zarr", np.array([integer, -integer, 257, 259]), dtype="bfloat16"))
    assert found.view("u2").tolist() == [0x5B81, 0xDB81, 0x4380, 0x4382]
    double = np.array([np.nextafter(1.00390625, 2), 1.00390625, 1e300, -1e-300])
    found = read(stored(tmp_path / "b.zarr", double, dtype="bfloat16"))
    assert found.view("u2").tolist() == [0x3F81, 0x3F80, 0x7F80, 0x8000]


@pytest.mark.parametrize(
    ("fill", "bits"), [(0, 0), (1.5, 0x3FC0), (ml_dtypes.bfloat16(-2), 0xC000), (np.nan, 0x7FC0), (-np.inf, 0xFF80)]
)
def test_fill_values(fill: Any, bits: int, tmp_path: Path) -> None:
    path = stored(tmp_path / "a.zarr", np.ones((4, 4), BFLOAT16), chunks=(2, 2), fill_value=fill)
    (chunk,) = [each for each in (path / "x").rglob("*") if each.is_file() and each.name == "c.1.1"]
    chunk.unlink()
    assert (read(path)[2:, 2:].view("u2") == bits).all()


def test_raw_files_hold_bfloat16(tmp_path: Path) -> None:
    with hs.open_raw(tmp_path / "a.bin", "w", order="C") as file:
        file.write({"x": every_value()})
    assert (tmp_path / "a.bin").read_bytes() == every_value().tobytes()
    with hs.open_raw(tmp_path / "a.bin", order="C", header=0, arrays={"x": ((256, 256), "bfloat16")}) as file:
        assert file["x"].dtype == BFLOAT16
        np.testing.assert_array_equal(file.read("x").view("u2"), every_value().view("u2"))


def test_npy_files_have_no_code_for_it(tmp_path: Path) -> None:
    def body(comm: hs.ThreadComm) -> None:
        with pytest.raises(hs.Error, match=r"bfloat16(.|\n)*hint: store it as float32"):
            hs.save_npy(
                tmp_path / "a.npy", np.ones(3, BFLOAT16), hs.Distribution.replicated((3,), comm.size), comm=comm
            )

    hs.threads(3, body)
    assert list(tmp_path.iterdir()) == []
    hs.save_npy(tmp_path / "a.npy", np.ones(3, BFLOAT16), dtype="f4")
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), np.ones(3, "f4"))


WITHOUT = """
import sys
sys.modules["ml_dtypes"] = None
import numpy as np, hyperslab as hs
with hs.open(sys.argv[1], "w") as store:
    store.write("x", np.array([1.0, 2.5, np.inf]), dtype="bfloat16")
with hs.open(sys.argv[1]) as store:
    assert store["x"].dtype == np.dtype("V2"), store["x"].dtype
    assert store.read("x", dtype="f4").tolist() == [1.0, 2.5, np.inf]
    try:
        store.read("x")
    except hs.Error as error:
        assert "ml_dtypes" in str(error), error
    else:
        raise SystemExit("two bytes without a meaning were read")
"""


def test_without_ml_dtypes_it_converts(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, str(tmp_path / "a.zarr")], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("count", [2, 3])
def test_numbers_of_less_than_a_byte_are_refused_by_name(count: int, tmp_path: Path) -> None:
    with hs.open(tmp_path / "a.zarr", "w") as store, pytest.raises(hs.InvalidError, match="int4 cannot be stored"):
        store.write("x", np.zeros(count, ml_dtypes.int4))
