"""Expressions over arrays, made of arrays by operators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from hyperslab import _core
from hyperslab._types import type_code, type_of
from hyperslab._values import unfit
from hyperslab.errors import InvalidError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hyperslab.group import Group

__all__ = ["Expression", "Operators"]


class Operators:
    """What makes expressions of arrays and of expressions, by the signs of Python."""

    def _operand(self) -> Expression:
        raise NotImplementedError

    def _with(self, sign: str, other: Any, *, turned: bool = False) -> Expression:
        theirs = _operand_of(other)
        if theirs is None:
            # An array of NumPy's may know what to do: it reads this one.
            return NotImplemented
        mine = self._operand()
        left, right = (theirs, mine) if turned else (mine, theirs)
        return left._joined(right, f"({{}}) {sign} ({{}})")

    def __lt__(self, other: Any) -> Expression:
        """Where it is less."""
        return self._with("<", other)

    def __le__(self, other: Any) -> Expression:
        """Where it is less or equal."""
        return self._with("<=", other)

    def __gt__(self, other: Any) -> Expression:
        """Where it is greater."""
        return self._with(">", other)

    def __ge__(self, other: Any) -> Expression:
        """Where it is greater or equal."""
        return self._with(">=", other)

    def __add__(self, other: Any) -> Expression:
        return self._with("+", other)

    def __radd__(self, other: Any) -> Expression:
        return self._with("+", other, turned=True)

    def __sub__(self, other: Any) -> Expression:
        return self._with("-", other)

    def __rsub__(self, other: Any) -> Expression:
        return self._with("-", other, turned=True)

    def __mul__(self, other: Any) -> Expression:
        return self._with("*", other)

    def __rmul__(self, other: Any) -> Expression:
        return self._with("*", other, turned=True)

    def __truediv__(self, other: Any) -> Expression:
        return self._with("/", other)

    def __rtruediv__(self, other: Any) -> Expression:
        return self._with("/", other, turned=True)

    def __floordiv__(self, other: Any) -> Expression:
        return self._with("//", other)

    def __rfloordiv__(self, other: Any) -> Expression:
        return self._with("//", other, turned=True)

    def __mod__(self, other: Any) -> Expression:
        return self._with("%", other)

    def __rmod__(self, other: Any) -> Expression:
        return self._with("%", other, turned=True)

    def __pow__(self, other: Any) -> Expression:
        return self._with("**", other)

    def __rpow__(self, other: Any) -> Expression:
        return self._with("**", other, turned=True)

    def __and__(self, other: Any) -> Expression:
        return self._with("&", other)

    def __rand__(self, other: Any) -> Expression:
        return self._with("&", other, turned=True)

    def __or__(self, other: Any) -> Expression:
        return self._with("|", other)

    def __ror__(self, other: Any) -> Expression:
        return self._with("|", other, turned=True)

    def __xor__(self, other: Any) -> Expression:
        return self._with("^", other)

    def __rxor__(self, other: Any) -> Expression:
        return self._with("^", other, turned=True)

    def __invert__(self) -> Expression:
        return self._operand()._around("~({})")

    def __neg__(self) -> Expression:
        return self._operand()._around("-({})")

    def __abs__(self) -> Expression:
        return self._operand()._around("abs({})")

    def isin(self, values: Any) -> Expression:
        """Where it is one of these numbers."""
        return self._operand()._joined(Expression("p0", {"p0": list(values)}), "({}) in {}")

    def isnan(self) -> Expression:
        """Where it is not a number."""
        return self._operand()._around("isnan({})")

    def sqrt(self) -> Expression:
        """Its square root."""
        return self._operand()._around("sqrt({})")


class Expression(Operators):
    """What stands for the values of arrays, element by element: for `Group.select` and `Group.reduce`.

    Arrays make expressions by the operators of Python: ``store["rho"] > 0.1``, ``&``, ``|``, ``~``, ``+`` and so on.
    Nothing is read until it is used.

    Parameters
    ----------
    text : str
        The expression, as `Group.select` describes it.
    parameters : mapping, optional
        What names in it stand for.

    Examples
    --------
    >>> import numpy as np, hyperslab as hs, tempfile
    >>> with hs.open(tempfile.mkdtemp() + "/run.zarr", "w") as store:
    ...     report = store.write("rho", np.arange(5.0))
    ...     dense = (store["rho"] > 1) & (store["rho"] != 3)
    ...     dense.text
    ...     store.select(dense)["rho"]
    '(("rho") > (p0)) & (("rho") != (p1))'
    array([2., 4.])
    """

    def __init__(self, text: str, parameters: Mapping[str, Any] | None = None, *, _group: Group | None = None) -> None:
        if not isinstance(text, str):
            raise unfit("an expression", "a string", text)
        self.text = text
        self.parameters = dict(parameters or {})
        self._group = _group

    def evaluate(self, arrays: Mapping[str, Any]) -> NDArray[Any]:
        """Its values for arrays in memory, all of one shape. Local.

        Examples
        --------
        >>> import numpy as np, hyperslab as hs
        >>> hs.Expression("a // 2 + i0").evaluate({"a": np.array([4, 5, -1], "i2")})
        array([2, 3, 1])
        """
        given = {name: np.asarray(value) for name, value in arrays.items()}
        shapes = {value.shape for value in given.values()} or {()}
        if len(shapes) > 1:
            message = f"arrays of an expression have one shape, not {' and '.join(map(str, sorted(shapes)))}"
            raise InvalidError(message)
        columns = [(name, type_code(value.dtype.newbyteorder("=")), _native(value)) for name, value in given.items()]
        shape = shapes.pop()
        kind, values = _core.evaluate(self.text, columns, shape, bound_of(self.parameters))
        return np.frombuffer(values, type_of(kind)).reshape(shape)

    @classmethod
    def _of_array(cls, group: Group, name: str) -> Expression:
        quote = next((quote for quote in "\"'`" if quote not in name), None)
        if quote is None:
            message = f"{name!r} has all kinds of quotes in it, so that no expression can name it"
            raise InvalidError(message)
        return cls(f"{quote}{name}{quote}", _group=group)

    def _operand(self) -> Expression:
        return self

    def _around(self, form: str) -> Expression:
        return Expression(form.replace("{}", self.text), self.parameters, _group=self._group)

    def _joined(self, other: Expression, form: str) -> Expression:
        """Both in one text; parameters of the other one get other names where they are taken."""
        group = self._group or other._group
        if group is not None and other._group not in (None, group):
            message = "an expression is about arrays of one group\n  hint: name arrays of groups below by their paths"
            raise InvalidError(message)
        others: dict[str, str] = {}
        parameters = dict(self.parameters)
        for name, value in other.parameters.items():
            free = next(each for each in _names_from(name) if each not in parameters and each not in others.values())
            others[name], parameters[free] = free, value
        # A name in the text that is no parameter stays: parameters of this class are p0, p1, and so on.
        text = other.text
        if any(old != new for old, new in others.items()):
            text = renamed(text, others)
        left, right = form.split("{}", 1)[0], form.split("{}", 1)[1]
        return Expression(left + self.text + right.replace("{}", text, 1), parameters, _group=group)

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]
        """Where it is equal."""
        return self._with("==", other)

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]
        """Where it is not equal."""
        return self._with("!=", other)

    __hash__ = None  # type: ignore[assignment]
    #: Numbers of NumPy's leave operators to it.
    __array_ufunc__ = None

    def __bool__(self) -> bool:
        """Refuse: it has a value for each element."""
        message = (
            "an expression has a truth value for each element, not one\n"
            "  hint: write & for `and`, | for `or`, ~ for `not`, with each comparison in parentheses"
        )
        raise TypeError(message)

    def __repr__(self) -> str:
        bound = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items())
        return f"<Expression {self.text}{f' with {bound}' if bound else ''}>"


def _names_from(name: str) -> Any:
    yield name
    number = 0
    while True:
        yield f"p{number}"
        number += 1


def renamed(text: str, names: Mapping[str, str]) -> str:
    """A text with other names, but for those in quotes."""
    out, at = [], 0
    while at < len(text):
        start = at
        if text[at] in "\"'`":
            at = text.index(text[at], at + 1) + 1
            out.append(text[start:at])
        elif text[at].isidentifier():
            while at < len(text) and (text[at].isalnum() or text[at] == "_"):
                at += 1
            word = text[start:at]
            out.append(names.get(word, word))
        else:
            # Digits begin numbers, letters of which are no names.
            at += 1
            while text[start].isdigit() and at < len(text) and (text[at].isalnum() or text[at] in "._"):
                at += 1
            out.append(text[start:at])
    return "".join(out)


def _native(array: NDArray[Any]) -> bytes:
    return array.astype(array.dtype.newbyteorder("="), copy=False).tobytes()


def bound_of(parameters: Mapping[str, Any] | None) -> list[_core._Parameter]:
    """What names stand for, as the compiled module has it."""
    found: list[_core._Parameter] = []
    for name, value in (parameters or {}).items():
        is_list = isinstance(value, (list, tuple, set, frozenset, range)) or (
            isinstance(value, np.ndarray) and value.ndim == 1
        )
        found.append((name, is_list, [_number(name, one) for one in (value if is_list else [value])]))
    return found


def _number(name: str, value: Any) -> tuple[str | None, int | float]:
    """A number with its type, where it is one of NumPy's, since these have types of their own."""
    if isinstance(value, (bool, np.bool_)):
        return "|b1", int(value)
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, np.integer):
        return value.dtype.str, int(value)
    # A float of NumPy's with 64 bits is one of Python's, too.
    if isinstance(value, np.floating) and value.dtype.itemsize <= 8:
        return value.dtype.str, float(value)
    if isinstance(value, (int, float)):
        if isinstance(value, int) and not -(1 << 126) < value < 1 << 126:
            raise unfit(f"parameter {name!r}", "a number of at most 126 bits", value)
        return None, value
    raise unfit(f"parameter {name!r}", "a number, a truth value, or a list of such", value)


def _operand_of(value: Any) -> Expression | None:
    if isinstance(value, Operators):
        return value._operand()
    if isinstance(value, (bool, int, float, np.bool_, np.integer, np.floating)):
        return Expression("p0", {"p0": value})
    return None
