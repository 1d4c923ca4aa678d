"""Reads of the elements for which an expression holds, and numbers made of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from hyperslab import _core
from hyperslab._calls import calling, run, until_up_to_date
from hyperslab._sizes import size_of
from hyperslab._types import type_of
from hyperslab._values import names_of, unfit
from hyperslab.distribution import Distribution
from hyperslab.errors import InvalidError
from hyperslab.expressions import Expression, bound_of, renamed

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Choosing", "Selected"]


class Selected(Mapping[str, "NDArray[Any]"]):
    """What this rank got of a selection: a mapping of the names of the columns to their values, in file order.

    Made by `Group.select`.
    """

    def __init__(self, core: _core.Selected, *, with_positions: bool) -> None:
        self._shape = tuple(core.shape)
        self._values: dict[str, NDArray[Any]] = {}
        self._positions: NDArray[np.int64] | None = None
        self._count = core.count
        self._report = dict(core.report())
        columns = core.columns()
        if with_positions:
            columns.pop()
            self._positions = np.frombuffer(core.values(len(columns)), np.int64)
        for number, (name, kind) in enumerate(columns):
            self._values[name] = np.frombuffer(core.values(number), type_of(kind))

    def __getitem__(self, name: str) -> NDArray[Any]:
        """The values of a column."""
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        """Names of the columns."""
        return iter(self._values)

    def __len__(self) -> int:
        """Number of the columns; see `count` for that of the elements."""
        return len(self._values)

    @property
    def count(self) -> int:
        """How many elements this rank got."""
        return self._count

    @property
    def matches(self) -> int:
        """How many elements all ranks got."""
        return self._report["matches"]

    @property
    def positions(self) -> NDArray[np.int64]:
        """Where each element is in the grid: its number in row-major order, as ``numpy.flatnonzero`` counts."""
        if self._positions is None:
            message = "the positions were not asked for\n  hint: select(..., positions=True)"
            raise InvalidError(message)
        return self._positions

    @property
    def indices(self) -> tuple[NDArray[np.int64], ...]:
        """The same as indices, one array for each dimension, as ``numpy.nonzero`` gives them."""
        found: Any = np.unravel_index(self.positions, self._shape) if self._shape else ()
        return tuple(found)

    @property
    def report(self) -> Mapping[str, int]:
        """What it took on this rank.

        ``elements`` of the grid and ``matches`` among them, on all ranks; ``units`` that this rank looked at, in so
        many ``rounds``; ``read_bytes`` from storage, ``sent_bytes`` to other ranks, and most ``buffer_bytes`` at one
        time beside what it got [B].
        """
        return dict(self._report)

    def __repr__(self) -> str:
        return f"<Selected {self.count} of {self.matches} elements: {', '.join(self._values) or 'no columns'}>"


def _text(expression: Any, what: str, group: Any, parameters: Mapping[str, Any] | None) -> tuple[str, dict[str, Any]]:
    """An expression as text, with what its names stand for."""
    given = dict(parameters or {})
    if isinstance(expression, str):
        return expression, given
    made = getattr(expression, "_operand", lambda: None)()
    if not isinstance(made, Expression):
        raise unfit(what, "a text such as 'rho > 0.1', or an expression of arrays", expression)
    if made._group is not None and made._group is not group:
        message = f"{what} is about arrays of another group"
        raise InvalidError(message)
    twice = sorted(given.keys() & made.parameters.keys())
    if twice:
        # Names that users give are theirs; those of expressions can be others.
        free = {name: f"q_{number}_{name}" for number, name in enumerate(twice)}
        parameters = {free.get(name, name): value for name, value in made.parameters.items()}
        return renamed(made.text, free), given | parameters
    return made.text, given | made.parameters


class Choosing:
    """What is open and holds arrays, as far as values decide what is read; a part of `Group`."""

    _core: Any
    _comm: Any
    path: Any

    def select(
        self,
        where: str | Any,
        columns: str | Sequence[str] | None = None,
        *,
        positions: bool = False,
        parameters: Mapping[str, Any] | None = None,
        distribution: Distribution | None = None,
        owner: str | Any = None,
        memory: int | str = "64MiB",
    ) -> Selected:
        """Read the elements for which an expression holds, and nothing else. Collective.

        Each rank reads chunks, evaluates the expression on them, and sends what matches to the rank that gets it.

        Parameters
        ----------
        where : str or Expression
            Which elements: ``"(rho > 0.1) & (abs(x) < xmax)"``, or ``store["rho"] > 0.1``. Names are arrays of one
            shape (in quotes where they are no words of Python: ``"group/rho"``), fields of records (``p.mass`` or
            ``p["mass"]``), parameters, and ``i0``, ``i1``, ..., the index of the element in each dimension. There are
            ``+ - * / // % **``, comparisons, ``& | ^ ~``, ``and or not``, ``in [1, 2]``, and the functions ``abs min
            max sqrt isnan``, all with the types and the rounding that NumPy has.
        columns : str or sequence of str, optional
            Arrays whose values are wanted; those in `where` by default.
        positions : bool
            Whether to tell where each element is.
        parameters : mapping, optional
            What names in the expressions stand for: numbers, or lists of numbers for ``in``.
        distribution : Distribution, optional
            Each rank gets those elements that it holds by this distribution of the grid.
        owner : str or Expression, optional
            An expression of integers: the rank that gets the element, such as ``"cell // 1000"``.
        memory : int or str
            What each rank may use for buffers, beside what it gets [B]. Without `distribution` or `owner`, elements
            are shared evenly in file order, and what a rank has found stays in its memory until all have counted.

        Returns
        -------
        Selected
            The values of the columns, in file order on each rank.

        Raises
        ------
        InvalidError
            Where the expression is not one, with the place in the text; where the arrays are not of one shape; where
            an owner is no rank. The same on all ranks.

        Examples
        --------
        >>> import numpy as np, hyperslab as hs, tempfile
        >>> with hs.open(tempfile.mkdtemp() + "/run.zarr", "w") as store:
        ...     report = store.write({"rho": np.array([0.0, 2.0, 1.0, 3.0]), "id": np.array([7, 8, 9, 10])})
        ...     found = store.select("rho > least", ["id"], positions=True, parameters={"least": 1.5})
        ...     found["id"], found.positions
        (array([ 8, 10]), array([1, 3]))
        """
        what = f"select from '{self.path}'"
        with calling(self._comm, what):
            text, bound = _text(where, "where", self, parameters)
            by = None
            if owner is not None:
                by, bound = _text(owner, "owner", self, bound)
            names = None if columns is None else names_of(columns)
            if distribution is not None and not isinstance(distribution, Distribution):
                raise unfit("distribution", "a Distribution", distribution)
            if distribution is not None and by is not None:
                message = "elements go by a distribution or by an owner, not by both"
                raise InvalidError(message)
            spread = None if distribution is None else distribution._core
            given = (names, bool(positions), bound_of(bound), spread, by, size_of(memory, "memory"))
        core = until_up_to_date(lambda: run(lambda: _core.select(self._core, text, *given), self._comm, what))
        return Selected(core, with_positions=bool(positions))

    def reduce(
        self,
        op: Literal["count", "sum", "mean", "min", "max", "histogram"],
        values: str | Any,
        where: str | Any = None,
        *,
        parameters: Mapping[str, Any] | None = None,
        bins: int | Sequence[float] | None = None,
        range: tuple[float, float] | None = None,  # noqa: A002 (numpy.histogram calls it so)
        memory: int | str = "64MiB",
    ) -> Any:
        """Make one number of the values of an array, or of an expression, without holding them. Collective.

        Chunks are reduced one by one, each by the rank that reads it, and what they give is put together in the order
        of the chunks by a fixed tree. So the result is the same for any number of ranks, to the last bit.

        Parameters
        ----------
        op : {"count", "sum", "mean", "min", "max", "histogram"}
            What is made of them. Sums of integers wrap at 64 bits; sums and means of floats are computed in 64 bits.
        values : str or Expression
            Name of an array, or an expression; see `select`.
        where : str or Expression, optional
            Only of those elements for which this holds.
        parameters : mapping, optional
            What names in the expressions stand for.
        bins : int or sequence of float
            Of a histogram: its edges, which rise, or how many bins of one width there are in `range`.
        range : (float, float), optional
            Least and greatest edge.
        memory : int or str
            What each rank may use for buffers [B].

        Returns
        -------
        numpy scalar, or (counts, edges) of a histogram
            The same on all ranks.

        Raises
        ------
        InvalidError
            Where there is no element, and ``min`` or ``max`` was asked for; as of `select`.

        Examples
        --------
        >>> import numpy as np, hyperslab as hs, tempfile
        >>> with hs.open(tempfile.mkdtemp() + "/run.zarr", "w") as store:
        ...     report = store.write("rho", np.array([0.0, 2.0, 1.0, 3.0]))
        ...     store.reduce("max", "rho"), store.reduce("sum", "rho * rho", "rho < 2.5")
        ...     store.reduce("histogram", "rho", bins=2, range=(0, 4))
        (np.float64(3.0), np.float64(5.0))
        (array([2, 2]), array([0., 2., 4.]))
        """
        what = f"{op} from '{self.path}'"
        with calling(self._comm, what):
            bound = dict(parameters or {})
            condition = None
            if where is not None:
                condition, bound = _text(where, "where", self, bound)
            text = values if isinstance(values, str) else None
            if text is None:
                text, bound = _text(values, "values", self, bound)
            elif text in self:  # type: ignore[operator]
                text = Expression._of_array(self, text).text  # type: ignore[arg-type]
            edges = _edges(op, bins, range)
            given = (condition, bound_of(bound), [float(edge) for edge in edges], size_of(memory, "memory"))
        made = until_up_to_date(lambda: run(lambda: _core.reduce(self._core, op, text, *given), self._comm, what))
        value, kind, counts, _, _ = made
        if op == "histogram":
            return np.array(counts, np.int64), edges
        return np.array(value, type_of(kind))[()]


def _edges(op: str, bins: Any, between: Any) -> NDArray[np.float64]:
    if op != "histogram":
        if bins is not None or between is not None:
            message = "only a histogram has bins and a range"
            raise InvalidError(message)
        return np.empty(0)
    if bins is None:
        message = "a histogram needs bins\n  hint: give bins=10, range=(low, high), or the edges"
        raise InvalidError(message)
    if not hasattr(bins, "__index__"):
        return np.asarray(bins, np.float64).ravel()
    if between is None:
        message = "a number of bins needs a range\n  hint: reduce('min', ...) and reduce('max', ...) find one"
        raise InvalidError(message)
    low, high = between
    return np.linspace(float(low), float(high), bins.__index__() + 1)
