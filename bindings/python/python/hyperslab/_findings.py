"""What checking finds, and how it is told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import PurePath
from typing import Any, Literal, TypeAlias

from hyperslab._printing import legible, valid

#: First and last index plus one, for each dimension.
Box: TypeAlias = "tuple[tuple[int, int], ...]"

#: How bad it is.
Severity: TypeAlias = Literal["damage", "warning", "unchecked"]
#: What is checked.
Kind: TypeAlias = Literal["zarr", "npy", "netcdf", "hdf5", "raw"]

_KINDS: dict[Kind, str] = {
    "zarr": "Zarr store",
    "npy": "npy file",
    "netcdf": "NetCDF file",
    "hdf5": "HDF5 file",
    "raw": "raw file",
}

#: Lines that the text has under one heading; `Verification.to_dict` has all.
LINES_MAX = 20


@dataclass(frozen=True)
class Finding:
    """One thing that was found; docs/verify.md lists the kinds."""

    #: ``damage``, ``warning``, or ``unchecked`` for what could not be checked.
    severity: Severity
    #: What it is about, such as ``chunk`` or ``leftover``.
    kind: str
    #: The file or directory.
    path: str
    #: What was expected and what was found.
    text: str
    #: Name of the array in the store that it concerns; empty if the path that was checked is the array.
    array: str | None = None
    #: Which of its elements: first index and last index plus one for each dimension. All of them if None.
    section: Box | None = None
    #: Who left it, or is still at work: the record of the owner, where it can be read.
    owner: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class VerifiedArray:
    """An array, and how many of its chunks were checked. What does not lie in chunks counts as one."""

    #: Name in the store; empty if the path that was checked is the array.
    name: str
    #: Global shape; None if the metadata do not say.
    shape: tuple[int, ...] | None = None
    #: Data type as the metadata name it.
    dtype: str | None = None
    #: Shape of a chunk; None of what does not lie in chunks.
    chunk_shape: tuple[int, ...] | None = None
    #: Chunks of the grid.
    chunks: int = 0
    #: Chunks that were read and are whole.
    checked: int = 0
    #: Chunks that are damaged.
    damaged: int = 0
    #: Chunks that are not stored, which is legal: their elements have the fill value.
    absent: int = 0

    @property
    def unchecked(self) -> int:
        """Chunks that are stored but were not checked."""
        return self.chunks - self.checked - self.damaged - self.absent


@dataclass(frozen=True)
class Verification:
    """What `verify` found. Its text is a short report."""

    #: The path that was checked.
    path: str
    #: What is there.
    kind: Kind
    #: Number of groups in a Zarr store, the root included.
    groups: int
    #: The arrays, sorted by name; those of raw files in their order.
    arrays: tuple[VerifiedArray, ...]
    #: What was found: damage first, then warnings, then what could not be checked.
    findings: tuple[Finding, ...]
    #: Bytes that were read: of chunks, those of their elements [B].
    nbytes: int

    @property
    def damaged(self) -> bool:
        """Whether something is damaged."""
        return any(finding.severity == "damage" for finding in self.findings)

    def of(self, severity: Severity) -> tuple[Finding, ...]:
        """The findings of one severity."""
        return tuple(finding for finding in self.findings if finding.severity == severity)

    def to_dict(self) -> dict[str, Any]:
        """The same as data for JSON; docs/verify.md has its schema."""
        arrays = [asdict(array) | {"name": valid(array.name), "unchecked": array.unchecked} for array in self.arrays]
        findings = []
        for each in self.findings:
            array = None if each.array is None else valid(each.array)
            findings.append(asdict(each) | {"path": valid(each.path), "text": valid(each.text), "array": array})
        return {
            "path": valid(self.path),
            "kind": self.kind,
            "damaged": self.damaged,
            "groups": self.groups,
            "nbytes": self.nbytes,
            "arrays": arrays,
            "findings": findings,
        }

    @property
    def text(self) -> str:
        """A short report."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterable[str]:
        what = _KINDS[self.kind]
        counts = [_count(len(self.arrays), "array")]
        if self.kind == "zarr":
            counts.insert(0, _count(self.groups, "group"))
        yield f"{legible(self.path)}: {what}, {', '.join(counts)}"
        yield self._read()
        for severity, heading in (("damage", "damage"), ("warning", "warnings"), ("unchecked", "not checked")):
            yield from _listed(heading, [self._line(each) for each in self.findings if each.severity == severity])
        absent = [f"{legible(each.name) or '.'}: {each.absent} of {each.chunks}" for each in self.arrays if each.absent]
        yield from _listed("absent chunks, which read as the fill value", absent)
        yield f"result: {self._result()}"
        if any(finding.kind in ("leftover", "update") for finding in self.findings):
            yield f"hint: hyperslab clean {legible(self.path)} removes what programs that ended have left"

    def _result(self) -> str:
        """What came out; nothing is called whole that was not looked at."""
        if self.damaged:
            return "damaged"
        if self.kind == "raw" and not self.arrays:
            return "all bytes can be read; nothing else was checked, since the arrays of the file are not known"
        unchecked = sum(array.unchecked for array in self.arrays)
        if not unchecked and not self.of("unchecked"):
            return "no damage found"
        checked = any(array.checked or array.absent for array in self.arrays)
        return "no damage found in what was checked" if checked else "nothing was checked"

    def _read(self) -> str:
        if self.kind not in ("zarr", "hdf5"):
            return f"read: {_bytes(self.nbytes)}"
        names = {"checked": "checked", "damaged": "damaged", "absent": "absent", "unchecked": "not checked"}
        counts = {name: sum(getattr(array, name) for array in self.arrays) for name in names}
        told = [f"{count} {names[name]}" for name, count in counts.items() if count or name == "checked"]
        return f"chunks: {', '.join(told)}; {_bytes(self.nbytes)} of elements read"

    def _line(self, finding: Finding) -> str:
        path = finding.path
        below = self.path.rstrip("/") + "/"
        where = legible(path.removeprefix(below) if path != self.path else PurePath(path).name)
        if finding.section is not None:
            where = f"{legible(finding.array or '')} {section_text(finding.section)} in {where}".lstrip()
        return f"{where}: {legible(finding.text)}{_owner(finding.owner)}"

    def __str__(self) -> str:
        """The text."""
        return self.text

    def __repr__(self) -> str:
        """What was checked, and what came out."""
        return f"<Verification of '{legible(self.path)}': {self._result()}>"


def section_text(section: Box) -> str:
    """A section as it is written in Python.

    >>> section_text(((0, 4), (2, 3)))
    '[0:4, 2:3]'
    """
    return f"[{', '.join(f'{low}:{high}' for low, high in section)}]"


def _listed(heading: str, lines: Sequence[str]) -> Iterable[str]:
    if lines:
        yield f"{heading}:"
        yield from (f"  {line}" for line in lines[:LINES_MAX])
    if len(lines) > LINES_MAX:
        yield f"  ... and {len(lines) - LINES_MAX} more; --json lists all"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _bytes(number: int) -> str:
    if number < 1024:
        return f"{number} B"
    size = float(number)
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        size /= 1024
        if size < 1024 or unit == "TiB":
            break
    return f"{size:.1f} {unit}"


def _owner(owner: Mapping[str, Any] | None) -> str:
    if not owner:
        return ""
    plain = [f"{key} {value}" for key, value in owner.items() if isinstance(value, (str, int, float))]
    told = legible(", ".join(plain))
    return f" (owner: {told if len(told) <= 300 else told[:300] + '...'})"
