"""What may only shrink: see `ratchet`."""

from __future__ import annotations

import pytest

import ratchet

#: By how much a number may be below what is recorded, as a share: who edits a page need not count its words.
SLACK = 0.1
WRITE = "record it: python tests/python/ratchet.py --write"


@pytest.fixture(scope="module")
def recorded() -> dict[str, ratchet.Measure]:
    return ratchet.recorded()


@pytest.mark.parametrize("name", ratchet.MEASURES)
def test_nothing_has_grown(name: str, recorded: dict[str, ratchet.Measure]) -> None:
    measured, known = ratchet.MEASURES[name](), recorded[name]
    assert sum(measured.values()) > 0, "a measure that finds nothing, since a folder has moved, holds nothing down"
    grown = {thing: (known.get(thing, 0), now) for thing, now in measured.items() if now > known.get(thing, 0)}
    assert not grown, f"{name} have grown (from, to): {grown}"
    shrunk = {thing: (was, measured.get(thing, 0)) for thing, was in known.items()}
    shrunk = {thing: pair for thing, pair in shrunk.items() if pair[1] < pair[0] * (1 - SLACK)}
    assert not shrunk, f"{name} have shrunk (from, to): {shrunk}; {WRITE}"


def test_functions_are_measured_from_their_names_to_their_ends() -> None:
    rust = """
impl A {
    pub(crate) fn short(&self) -> u32 { 1 }

    fn declared(&self);

    fn also_declared(
        &self,
    );

    const fn longer<T>(
        &self,
    ) -> T {
        let inner = || {
            1
        };
        inner()
    }
}

fn outer() {
}
"""
    assert list(ratchet.rust_functions(rust)) == [("short", 1), ("longer", 8), ("outer", 2)]
    python = 'def told(a):\n    """A page.\n\n    Of lines.\n    """\n    return a\n'
    assert list(ratchet.python_functions(python)) == [("told", 2)]


def test_circles_are_found() -> None:
    a, b, c, d = (("a",), ("b",), ("c",), ("d",))
    assert ratchet.circles({a: [b], b: [c], c: [d], d: []}) == []
    assert ratchet.circles({a: [b], b: [a, c], c: [d], d: []}) == [[a, b]]
    assert sorted(map(len, ratchet.circles({a: [b], b: [c], c: [a], d: [a]}))) == [3]


def test_imports_are_read() -> None:
    text = "use crate::{a::B, super_::{C, d::E as F}};\nuse super::g;\nfn f() { crate::h::i(); } // crate::no"
    paths = [["crate", "a", "B"], ["crate", "super_", "C"], ["crate", "super_", "d", "E"], ["super", "g"]]
    assert list(ratchet.use_paths(text)) == [*paths, ["crate", "h", "i"]]


def test_a_planted_circle_is_found_by_whatever_list_it_goes() -> None:
    texts = {
        (): "mod a;\nmod b;\nmod c;\npub use b::B;",
        ("a",): "use crate::B;\npub struct A;",
        ("b",): "mod inner;\nuse inner::I;\npub struct B(I);",
        ("b", "inner"): "use super::super::c::{C as Other};\npub struct I(Other);",
        ("c",): "pub struct C;",
    }
    assert ratchet.circles(ratchet.module_graph(texts)) == []
    # By the list of the crate, by what a file imports for those below it, and by a name in the middle of the code.
    for planted in ("use crate::a::A;", "use super::I;", "fn f() { crate::b::inner::g(); }"):
        graph = ratchet.module_graph(texts | {("c",): texts["c",] + planted.replace("super::I", "crate::b::I")})
        expected = [["a", "b/inner", "c", "b"]] if "A" in planted else [["b/inner", "c"]]
        found = [["/".join(module) for module in circle] for circle in ratchet.circles(graph)]
        assert [sorted(each) for each in found] == [sorted(each) for each in expected], planted


def test_tests_do_not_count() -> None:
    elsewhere = "use a;\n#[cfg(test)]\nmod tests;\nfn a() {}\n"
    assert ratchet.without_tests(elsewhere) == "use a;\nfn a() {}\n"
    assert ratchet.without_tests("fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n") == "fn a() {}\n"
    assert ratchet.without_tests("#[cfg(test)]\nuse b;\nfn a() {}\n") == "#[cfg(test)]\nuse b;\nfn a() {}\n"
