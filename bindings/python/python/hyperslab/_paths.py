"""Paths as people give them: a home directory, URLs of files, and names that promise what is not there."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from hyperslab.errors import InvalidError, UnsupportedError

__all__ = ["local_path", "refuse_other_formats"]

#: Where a scheme begins a URL. `pathlib` makes one slash of two, so that the schemes of stores are known with one.
_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+)://")
_URL_OF_PATHLIB = re.compile(r"(?P<scheme>abfs|abfss|az|file|ftp|gcs|gs|hdfs|http|https|memory|s3|sftp|ssh|zip):/(?!/)")

#: Names that end so promise a format that is not written here, and what to do instead.
_OTHER_FORMATS = {
    (".zip",): (
        "a Zarr store in a zip file, which cannot be written in parallel",
        "write a directory, 'run.zarr'; zip it when it is complete, or unzip it before reading",
    ),
    (".npz",): (
        "an archive of NumPy, which cannot be written in parallel",
        "write Zarr, 'run.zarr'; or one array with save_npy",
    ),
    (".npy",): ("an array of NumPy, not a store", "read it with hyperslab.load_npy, write it with save_npy"),
    (".raw", ".bin", ".dat"): (
        "a raw file, which does not say what arrays it has",
        "open it with hyperslab.open_raw, and say so with header= and arrays=",
    ),
}


def local_path(path: str | os.PathLike[str]) -> str:
    """A path of the file system, without a leading ``~`` and without ``file://``.

    Raises
    ------
    UnsupportedError
        When it is a URL of something else.
    """
    text = os.fsdecode(os.fspath(path))
    if not text or "\0" in text:
        message = (
            "the path is empty\n  hint: give '.' for this directory"
            if not text
            else f"{text!r} is not a path: it has a zero byte"
        )
        raise InvalidError(message)
    if text.startswith("~"):
        expanded = os.path.expanduser(text)  # noqa: PTH111 (that of pathlib makes other errors)
        if expanded.startswith("~"):
            user = text.partition("/")[0]
            message = f"'{text}': there is no home directory '{user}'\n  hint: give './{text}' for a path below '.'"
            raise InvalidError(message)
        return expanded
    found = _URL.match(text) or _URL_OF_PATHLIB.match(text)
    return text if found is None else _of_url(text, found["scheme"].lower())


def _of_url(text: str, scheme: str) -> str:
    if scheme == "file":
        parts = urlsplit(text)
        if parts.netloc in ("", "localhost") and parts.path:
            return unquote(parts.path)
        host = f"host '{parts.netloc}'" if parts.netloc else "no path"
        message = (
            f"'{text}' is no URL of a file here: expected file:///path, found {host}\n"
            "  hint: write an absolute path with three slashes"
        )
        raise InvalidError(message)
    message = (
        f"'{text}' is a URL of {scheme}://, which this version cannot open: expected a path, file:///path, or a "
        "MemoryStore or ObjectMemory\n  hint: copy it to a file system that all ranks see, or mount it there"
    )
    raise UnsupportedError(message)


def refuse_other_formats(text: str) -> None:
    """Refuse a name that promises another format than a Zarr store, unless a directory has this name already.

    Raises
    ------
    UnsupportedError
        With what to use instead.
    """
    lower = text.lower().rstrip("/")
    for ends, (what, hint) in _OTHER_FORMATS.items():
        if lower.endswith(ends) and not Path(text).is_dir():
            message = (
                f"by its name, '{text}' is {what}\n  hint: {hint}; or give format='zarr' if it is a store all the same"
            )
            raise UnsupportedError(message)
