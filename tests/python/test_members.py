"""Metadata read member by member are what the parser of JSON gives for the whole."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hyperslab._verify._files import Damaged
from hyperslab._verify._members import CONSOLIDATED, parsed

BLANKS = ("", " ", "\n\t", "  ")


def some(chance: random.Random, depth: int = 0) -> Any:
    """A value."""
    plain = [None, True, 0, -1.5, 10**30, float("inf"), "", 'a"b\\', "\u00fc\n", "\ud800"]
    kind = chance.randrange(4 if depth < 3 else 2)
    if kind < 2:
        return chance.choice(plain)
    names = [chance.choice(["metadata", "kind", CONSOLIDATED, "", "rho/p", '{"}']) for _ in range(chance.randrange(4))]
    below = [some(chance, depth + 1) for _ in names]
    return below if kind == 2 else dict(zip(names, below, strict=True))


def written(value: Any, chance: random.Random) -> str:
    """As text, with blanks where these may be."""
    comma, colon = (chance.choice(BLANKS) + sign + chance.choice(BLANKS) for sign in ",:")
    text = json.dumps(value, separators=(comma, colon), ensure_ascii=chance.random() < 0.5)
    return chance.choice(BLANKS) + text + chance.choice(BLANKS)


def test_what_is_read_member_by_member_is_what_is_there() -> None:
    chance = random.Random(58)
    blocks = 0
    for _ in range(5000):
        whole = {name: some(chance) for name in ("zarr_format", "attributes", CONSOLIDATED, "a")}
        found, block = parsed(written(whole, chance).encode("utf-8", "surrogatepass"))
        told = whole.pop(CONSOLIDATED)
        assert found == whole
        assert (block is None) == (told is None)
        if block is not None:
            listed = told.get("metadata") if isinstance(told, dict) else None
            nodes = block.nodes()
            assert (None if nodes is None else dict(nodes)) == (listed if isinstance(listed, dict) else None)
            blocks += nodes is not None
    assert blocks > 40


def test_what_is_no_json_is_damage() -> None:
    """Wherever it is cut or changed, the same texts are refused as by the parser of the whole."""
    chance = random.Random(58)
    refused = 0
    for _ in range(2000):
        text = written({"a": some(chance), CONSOLIDATED: {"metadata": {"g": some(chance)}}}, chance)
        at = chance.randrange(len(text))
        cut = text[:at] + chance.choice(["", "x", '"', "{", "}", ",", ":"]) + text[at + chance.randrange(2) :]
        content = cut.encode("utf-8", "surrogatepass")
        try:
            whole = json.loads(content)
            assert isinstance(whole, dict)
        except (ValueError, AssertionError):
            refused += 1
            with pytest.raises(Damaged, match="expected"):
                parsed(content)
        else:
            assert parsed(content)[0] == {name: value for name, value in whole.items() if name != CONSOLIDATED}
    assert refused > 600


def test_what_is_nested_too_deeply_is_damage() -> None:
    for text in ('{"a":' + "[" * 100_000, f'{{"{CONSOLIDATED}": {{"metadata": {{"g": ' + "[" * 100_000):
        with pytest.raises(Damaged, match="more nesting than can be read"):
            parsed(text.encode())
    with pytest.raises(Damaged, match="that do not parse, since they are no UTF-8"):
        parsed(b'{"a": "\xff"}')
    with pytest.raises(Damaged, match="expected a JSON object, found list"):
        parsed(b"[1]")
