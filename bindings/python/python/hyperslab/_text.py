"""Reading texts that people hand over: machine profiles and lists of stages."""

from __future__ import annotations

from pathlib import Path

from hyperslab.errors import InvalidError, StorageError

#: Longest file that is read [B].
BYTES_MAX = 64 << 20


def read_text(path: Path, what: str) -> str:
    """The text of a file, which should be UTF-8 whatever the language of the system; `what` says what it should be.

    Raises
    ------
    StorageError
        When it cannot be read.
    InvalidError
        When it is something else than a text, or too long.
    """
    try:
        with path.open("rb") as file:
            contents = file.read(BYTES_MAX + 1)
    except OSError as error:
        message = f"'{path}' cannot be read as {what}: {error.strerror or error}"
        raise StorageError(message) from error
    if len(contents) > BYTES_MAX:
        message = f"'{path}' cannot be {what}: it is longer than {BYTES_MAX} B"
        raise InvalidError(message)
    try:
        return contents.decode()
    except UnicodeDecodeError as error:
        message = (
            f"'{path}' cannot be {what}: byte {error.start} is 0x{contents[error.start]:02x}, which is not UTF-8\n"
            "  hint: save it as text in UTF-8"
        )
        raise InvalidError(message) from error
