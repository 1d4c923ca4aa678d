"""Options of the calls on arrays. Each is a real keyword, typed once, here."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar

from hyperslab._calls import Casting, SectionLike
from hyperslab.chunking import Chunks, Shards
from hyperslab.errors import InvalidError

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

__all__ = ["AppendOptions", "CreateOptions", "ReadOptions", "UpdateOptions", "WriteOptions", "check", "keywords"]

F = TypeVar("F", bound=Callable[..., Any])


class _Moving(TypedDict, total=False):
    """Options of all calls that move elements."""

    casting: Casting
    halo: int
    strategy: str | None


class ReadOptions(_Moving, total=False):
    """Options of `Group.read`."""

    section: SectionLike | None
    dtype: DTypeLike | None
    order: Literal["C", "F"]


class UpdateOptions(_Moving, total=False):
    """Options of writing to an array that exists."""

    section: SectionLike | None


class AppendOptions(_Moving, total=False):
    """Options of `Group.append`."""

    axis: int


class CreateOptions(TypedDict, total=False):
    """Options of an array that is made."""

    chunks: Chunks | None
    shards: Shards
    fill_value: Any
    dimension_names: Sequence[str | None] | None
    attributes: Mapping[str, Any] | None
    checksum: bool
    zstd: int | None
    codecs: Sequence[Any] | None
    compression: str | int | None
    compression_opts: int | None
    shuffle: bool
    fletcher32: bool
    maxshape: Sequence[int | None] | None
    overwrite: bool


class WriteOptions(UpdateOptions, CreateOptions, total=False):
    """Options of `Group.write`."""

    dtype: DTypeLike | None


#: Defaults of the options for which it is not None.
_DEFAULTS: Mapping[str, Any] = {
    "axis": 0,
    "casting": "same_kind",
    "checksum": True,
    "fletcher32": False,
    "halo": 0,
    "order": "C",
    "overwrite": False,
    "shards": "auto",
    "shuffle": False,
}


def _names(options: type) -> dict[str, Any]:
    return options.__annotations__


def keywords(options: type) -> Callable[[F], F]:
    """Show the options of a function as the keywords that they are, to `help`, completion and documentation."""

    def shown(function: F) -> F:
        signature = inspect.signature(function)
        own = [one for one in signature.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
        more = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=_DEFAULTS.get(name),
                annotation=getattr(annotation, "__forward_arg__", annotation),
            )
            for name, annotation in _names(options).items()
        ]
        function.__signature__ = signature.replace(parameters=[*own, *more])  # type: ignore[attr-defined]
        return function

    return shown


def check(call: str, given: Mapping[str, Any], options: type) -> None:
    """Refuse options that a call does not have. It is the call's own fault, which all ranks then hear of.

    Raises
    ------
    InvalidError
        When there is one.
    """
    if given.keys() <= _names(options).keys():
        return
    name = next(name for name in given if name not in _names(options))
    near = difflib.get_close_matches(name, _names(options), 1, 0.5)
    hint = f"did you mean {near[0]}=?" if near else f"it has {', '.join(f'{one}=' for one in sorted(_names(options)))}"
    message = f"{call}() has no option {name}=\n  hint: {hint}"
    raise InvalidError(message)
