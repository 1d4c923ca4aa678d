"""Expressions have the values and the types that NumPy gives them, and whatever is no expression is refused."""

from __future__ import annotations

import random
from typing import Any

import hyperslab as hs
import numpy as np
import pytest

from expression_cases import alike, arrays_of, expected, text_of

#: Random expressions of a seed.
CASES = 2500


@pytest.mark.parametrize("seed", range(6))
def test_random_expressions_equal_numpy(seed: int) -> None:
    rng = random.Random(seed)
    arrays = arrays_of(67, seed)
    compared = refused = 0
    for number in range(CASES):
        text = text_of(rng, list(arrays), rng.choice([1, 1, 2, 2, 3]))
        wanted = expected(text, arrays)
        try:
            found: Any = hs.Expression(text).evaluate(arrays)
        except hs.Error as error:
            said = str(error)
        else:
            said = ""
        if said:
            assert wanted is None or accepted_by_numpy_alone(said), f"{number}: {text}\n{said}"
            refused += 1
            continue
        assert wanted is not None, f"{number}: {text} is refused by NumPy and has type {found.dtype}"
        exact = "**" not in text
        assert alike(found, wanted, exact=exact), f"{number}: {text}\n{found.dtype} {found}\n{wanted.dtype} {wanted}"
        compared += 1
    assert compared > CASES // 2
    assert refused > 10


def accepted_by_numpy_alone(error: str) -> bool:
    """Whether an error is one that expressions have and NumPy does not."""
    # Of plain numbers alone Python makes truth values and long integers; a sign of a truth value is Python's.
    return any(
        said in error
        for said in ("a plain number is no truth value", "does not fit into", "have no sign", "not for plain floats")
    )


def test_parameters_have_the_types_that_they_are_given_with() -> None:
    arrays = arrays_of(50, 9)
    rng = np.random.default_rng(9)
    for kind in ("i1", "u2", "i8", "u8", "f2", "f4", "f8", "?"):
        bound = np.dtype(kind).type(rng.integers(0, 2))
        for name, array in arrays.items():
            for sign in ("+", "//", "<", "=="):
                text = f"{name} {sign} bound"
                wanted = expected(text, arrays | {"bound": bound})
                if wanted is not None:
                    found = hs.Expression(text, {"bound": bound}).evaluate({name: array})
                    assert alike(found, wanted, exact=True), f"{text} with {bound!r}"
    plain = hs.Expression("a_float32 * bound", {"bound": 0.1}).evaluate(arrays)
    assert plain.dtype == np.float32
    found = hs.Expression("a_int16 in wanted", {"wanted": [0, 7, 2.0]}).evaluate(arrays)
    assert np.array_equal(found, np.isin(arrays["a_int16"], [0, 7, 2]))
    assert not hs.Expression("a_int16 in wanted", {"wanted": []}).evaluate(arrays).any()


def test_operators_of_python_make_the_same_expressions(tmp_path: Any) -> None:
    with hs.open(tmp_path / "a.zarr", "w") as store:
        rho, count = np.linspace(-1, 1, 24).reshape(4, 6), np.arange(24, dtype="i4").reshape(4, 6)
        store.write({"rho": rho, "count": count})
        a, b = store["rho"], store["count"]
        for made, wanted in [
            (a > 0.5, rho > 0.5),
            (0.5 - a >= 0, 0.5 - rho >= 0),
            ((a > -0.5) & ~(b % 3 == 0), (rho > -0.5) & ~(count % 3 == 0)),
            ((a > 0.5) | (b < 3), (rho > 0.5) | (count < 3)),
            (abs(a) * 2 - 1 > b // 20, abs(rho) * 2 - 1 > count // 20),
            (2**b > 7, 2**count > 7),
            (1 / (a + 2) < 0.5, 1 / (rho + 2) < 0.5),
            (b == 7, count == 7),
            (b != a.expression, count != rho),
            (b.isin([1, 5, 23]), np.isin(count, [1, 5, 23])),
            (a.expression != a.expression, rho != rho),
            (a.expression.isnan(), np.isnan(rho)),
            ((a + 1).sqrt() > 1, np.sqrt(rho + 1) > 1),
            (-b + 5 > 0, -count + 5 > 0),
        ]:
            found = store.select(made, "count")
            assert np.array_equal(found["count"], count[wanted]), made
        assert (a == a, a == b, a != b, a is not None, a in {a}) == (True, False, True, True, True)
        with pytest.raises(TypeError, match="for each element"):
            bool((a > 0) and (b > 0))
        # What NumPy's arrays made of ours before they still make.
        assert np.array_equal(rho + a, 2 * rho)
        assert np.array_equal(a * rho, rho * rho)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rho >", "is missing here"),
        ("rho = 1", "compare with =="),
        ("nothing > 1", "is no array, no parameter and no position"),
        ("rho & 1", "'&' is not for float64"),
        ("rho > 1 & rho < 2", "write `\\(a > 0\\) & \\(b > 0\\)`"),
        ("__import__('os').system('true')", "is no function of expressions"),
        ("(" * 5000 + "rho" + ")" * 5000, "nests deeper than"),
        ("rho > " + "9" * 50, "is too large"),
        ("rho\u0000rho", "means nothing in an expression"),
        ("x" * 20000, "at most 16384 B are parsed"),
        ("rho + 1", "gives float64, not truth values"),
    ],
)
def test_texts_that_are_no_conditions_are_refused_on_all_ranks(text: str, said: str, tmp_path: Any) -> None:
    with hs.open(tmp_path / "a.zarr", "w") as store:
        store.write("rho", np.arange(4.0))

    def rank(comm: hs.ThreadComm) -> None:
        with hs.open(tmp_path / "a.zarr", comm=comm) as store:
            with pytest.raises((hs.InvalidError, hs.NotFoundError), match=said if text != "nothing > 1" else "nothing"):
                store.select(text, ["rho"])
            # The store can be used as before.
            assert store.reduce("count", "rho") == 4

    hs.threads(3, rank)
