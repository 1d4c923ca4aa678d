"""Metadata of a node, read member by member: what a group tells of all nodes below it is never held parsed as a whole.

As text it takes some hundred bytes a node, as Python's objects ten times as many.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hyperslab._verify._files import Damaged

CONSOLIDATED = "consolidated_metadata"
_BLANKS = re.compile(r"[ \t\n\r]*")


@dataclass(frozen=True)
class Block:
    """Consolidated metadata: the text in which they lie, and where."""

    text: str
    at: int

    def nodes(self) -> Iterator[tuple[str, Any]] | None:
        """Names and metadata of the nodes that are listed; nothing if it lists none."""
        reader = _Reader(self.text, self.at)
        if not reader.is_object():
            return None
        for key in reader.names():
            if key == "metadata" and reader.is_object():
                return ((name, reader.value()) for name in reader.names())
            reader.value()
        return None


def parsed(content: bytes) -> tuple[dict[str, Any], Block | None]:
    """The metadata of a node without those of others, and where these are.

    Raises
    ------
    Damaged
        If it is no JSON object.
    """
    try:
        text = content.decode(json.detect_encoding(content), "surrogatepass")
        return _split(text)
    except RecursionError:
        raise Damaged("expected JSON, found more nesting than can be read") from None
    except ValueError as error:
        where = f" at character {error.pos}" if isinstance(error, json.JSONDecodeError) else ", since they are no UTF-8"
        raise Damaged(f"expected JSON, found {len(content)} B that do not parse{where}") from None


def _split(text: str) -> tuple[dict[str, Any], Block | None]:
    reader = _Reader(text, _after_blanks(text, 0))
    if not reader.is_object():
        other = reader.value()
        reader.end()
        raise Damaged(f"expected a JSON object, found {type(other).__name__}")
    found: dict[str, Any] = {}
    block = None
    for key in reader.names():
        if key == CONSOLIDATED:
            began = reader.at
            block = Block(text, began) if reader.skip() else None
        else:
            found[key] = reader.value()
    reader.end()
    return found, block


def _after_blanks(text: str, at: int) -> int:
    blanks = _BLANKS.match(text, at)
    return at if blanks is None else blanks.end()


def _integer(digits: str) -> int | float:
    """A number; Python refuses to read thousands of digits."""
    return int(digits) if len(digits) < 4000 else float(digits)


class _Reader:
    """Reads values one behind another."""

    _decoder = json.JSONDecoder(parse_int=_integer)

    def __init__(self, text: str, at: int) -> None:
        self._text = text
        #: Where the next value begins.
        self.at = at

    def is_object(self) -> bool:
        return self._text.startswith("{", self.at)

    def value(self) -> Any:
        """The next value, whole."""
        found, self.at = self._decoder.raw_decode(self._text, self.at)
        return found

    def names(self) -> Iterator[str]:
        """Names of the members of the object that begins here; after each, its value must be taken."""
        self._pass("{")
        if self._text.startswith("}", self.at):
            self._pass("}")
            return
        while True:
            if not self._text.startswith('"', self.at):
                raise json.JSONDecodeError("expected a name", self._text, self.at)
            key = self.value()
            self._pass(":")
            yield key
            if self._text.startswith(",", _after_blanks(self._text, self.at)):
                self._pass(",")
                continue
            self._pass("}")
            return

    def skip(self) -> bool:
        """Passes a block of consolidated metadata, node by node. Says whether there is one."""
        if not self.is_object():
            return self.value() is not None
        for key in self.names():
            if key == "metadata" and self.is_object():
                for _ in self.names():
                    self.value()
            else:
                self.value()
        return True

    def end(self) -> None:
        """Nothing may follow."""
        if (end := _after_blanks(self._text, self.at)) != len(self._text):
            raise json.JSONDecodeError("expected the end", self._text, end)

    def _pass(self, sign: str) -> None:
        at = _after_blanks(self._text, self.at)
        if not self._text.startswith(sign, at):
            raise json.JSONDecodeError(f"expected '{sign}'", self._text, at)
        self.at = _after_blanks(self._text, at + 1)
