"""Measures of the code that may shrink and must not grow: lengths, circles, names with two meanings, constants, words.

`ratchet.json` holds what they are. Whoever makes one smaller records it:

    python tests/python/ratchet.py --write

The measures read text: Rust as rustfmt leaves it, where a function ends with the first brace that stands as far left as
it, and Python by its own parser. Tests do not count.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
RECORD = Path(__file__).with_suffix(".json")
PACKAGE = ROOT / "bindings/python/python/hyperslab"

#: A measure: a number of each thing, by its name.
Measure = dict[str, int]

#: What people do not say, and so our pages, comments and errors should not.
WORDS = {
    "guard cells (say halo)": r"\bguard cells?\b",
    "past the cache (say direct I/O)": r"\bpast (?:the|its) (?:system's )?cache\b",
    "the machine at hand (say this machine)": r"\bat hand\b",
    "turned over (say transposed)": r"\bturned over\b",
    "makes no sense (say what is allowed)": r"\bmakes? no sense\b",
    "need be (say have to)": r"\b(?:need|needs) (?:not )?be\b",
    "Ask (say ArrayRequest)": r"\b(?:Write)?Asks?\b",
    "wish (say hints)": r"\bwish(?:es)?\b",
    "tap, sink, carrier": r"\b(?:tap|sink|carrier)s?\b",
    "Laid (say MemoryLayout)": r"\bLaid\b",
    "Held, Holding (say Ownership)": r"\b(?:Held|Holding)\b",
}


# ---- files --------------------------------------------------------------------------------------------------------


#: What stands before the tests of a file.
OF_TESTS = r"^#\[cfg\(test\)\]\n(?:#\[[^\n]*\]\n)*(?:pub(?:\([a-z]+\))? )?mod tests\b"


def without_tests(text: str) -> str:
    """A file of Rust up to its tests; those that lie in another file are named anywhere in it."""
    elsewhere = re.sub(OF_TESTS + r";\n", "", text, flags=re.M)
    return re.split(OF_TESTS + r" \{", elsewhere, flags=re.M)[0]


def rust_files() -> Iterator[tuple[Path, str]]:
    """The product's files of Rust, without their tests."""
    for folder in sorted([*ROOT.glob("crates/*/src"), *ROOT.glob("bindings/*/src")]):
        for path in sorted(folder.rglob("*.rs")):
            if path.stem != "tests" and "tests" not in path.relative_to(folder).parts[:-1]:
                yield path, without_tests(path.read_text(encoding="utf-8"))


def python_files() -> Iterator[tuple[Path, str]]:
    """The product's files of Python."""
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path, path.read_text(encoding="utf-8")


def written_files() -> Iterator[str]:
    """All that people read: code, pages, and what describes machines."""
    for _, text in [*rust_files(), *python_files()]:
        yield text
    for pattern in ("docs/*.md", "*.md", "machines/*.toml"):
        for path in sorted(ROOT.glob(pattern)):
            # What was released stays as it was written.
            if path.name != "CHANGELOG.md":
                yield path.read_text(encoding="utf-8")


# ---- lengths ------------------------------------------------------------------------------------------------------


def rust_functions(text: str) -> Iterator[tuple[str, int]]:
    """Functions with bodies, and how many lines they have."""
    lines = text.splitlines()
    for start, line in enumerate(lines):
        begun = re.match(r"( *)(?:pub(?:\([a-z ]+\))? )?(?:const |unsafe |async |extern \"C\" )*fn (\w+)", line)
        if begun is None:
            continue
        for end in range(start, len(lines)):
            at_its_left = lines[end].startswith((begun[1] + "}", begun[1] + ")")) or end == start
            if at_its_left and lines[end].endswith(";"):
                break
            if at_its_left and lines[end].endswith("}"):
                yield begun[2], end - start + 1
                break


def python_functions(text: str) -> Iterator[tuple[str, int]]:
    """Functions, and how many lines they have without their pages."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.body[0]
            page = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
            told = (first.end_lineno or 0) - first.lineno + 1 if page else 0
            yield node.name, (node.end_lineno or 0) - node.lineno + 1 - told


def lengths() -> Measure:
    """Lines of the longest file and function, and how many functions do not fit a screen."""
    found: Measure = {}
    for language, files, functions in (
        ("Rust", [*rust_files()], rust_functions),
        ("Python", [*python_files()], python_functions),
    ):
        longest = [lines for _, text in files for _, lines in functions(text)]
        found[f"{language}: lines of the longest file"] = max(len(text.splitlines()) for _, text in files)
        found[f"{language}: lines of the longest function"] = max(longest)
        found[f"{language}: functions of more than 60 lines"] = sum(lines > 60 for lines in longest)
    return found


# ---- circles ------------------------------------------------------------------------------------------------------

#: A file, as the names of modules that lead to it.
Module = tuple[str, ...]


def circles(graph: Mapping[Module, Iterable[Module]]) -> list[list[Module]]:
    """Groups of files each of which reaches all others (Tarjan 1972)."""
    index: dict[Module, int] = {}
    low: dict[Module, int] = {}
    stack: list[Module] = []
    found: list[list[Module]] = []

    def visit(module: Module) -> None:
        index[module] = low[module] = len(index)
        stack.append(module)
        for other in graph[module]:
            if other not in index:
                visit(other)
                low[module] = min(low[module], low[other])
            elif other in stack:
                low[module] = min(low[module], index[other])
        if low[module] == index[module]:
            at = stack.index(module)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for module in graph:
        if module not in index:
            visit(module)
    return found


def imports(text: str) -> Iterator[list[str]]:
    """The paths that a file of Rust imports."""

    def parts(tree: str) -> Iterator[str]:
        depth, item = 0, ""
        for letter in tree:
            depth += (letter == "{") - (letter == "}")
            if letter == "," and depth == 0:
                yield item
                item = ""
            else:
                item += letter
        if item.strip():
            yield item

    def expand(before: list[str], tree: str) -> Iterator[list[str]]:
        for item in parts(tree.strip()):
            path, brace, inner = item.strip().partition("{")
            names = [name for name in path.split(" as ")[0].split("::") if name]
            if brace:
                yield from expand(before + names, inner.rsplit("}", 1)[0])
            else:
                yield before + names

    for used in re.finditer(r"\buse\s+([^;]+);", re.sub(r"//[^\n]*", "", text)):
        yield from expand([], used[1])


def use_paths(text: str) -> Iterator[list[str]]:
    """The paths that a file of Rust imports or names, from `crate`, `super` or a module of its own on."""
    yield from imports(text)
    code = re.sub(r"//[^\n]*", "", text)
    for named in re.finditer(r"\b((?:crate|super)(?:::\w+)+)", re.sub(r"\buse\s+[^;]+;", "", code)):
        yield named[1].split("::")


def module_graph(texts: Mapping[Module, str]) -> dict[Module, set[Module]]:
    """Which file of a crate uses what is defined in which; the file of the crate itself, which only lists, is left out.

    Names are followed through lists of files (``pub use``, and ``use`` for those below) to where they are defined.
    """
    # Who may see something is no import.
    texts = {module: re.sub(r"\bpub\(in [\w:]+\)", "pub", text) for module, text in texts.items()}
    paths = {module: list(use_paths(text)) for module, text in texts.items()}
    lists = {module: {path[-1]: path for path in imports(texts[module]) if path} for module in texts}

    def file_of(module: Module, path: list[str], passed: frozenset[tuple[Module, str]]) -> Module | None:
        """The file where something is defined that a file names so; nothing of other crates."""
        names = [name for name in path if name not in ("crate", "self", "super")]
        if "tests" in names:
            return None
        if path[0] == "crate":
            at: Module = ()
        elif path[0] in ("self", "super"):
            at = module[: len(module) - path.count("super")]
        elif names and ((*module, names[0]) in texts or names[0] in lists[module]):
            at = module
        else:
            return None
        for number, name in enumerate(names):
            if (*at, name) in texts:
                at = (*at, name)
            elif name in lists[at] and (at, name) not in passed and lists[at][name] != path:
                further = [*lists[at][name], *names[number + 1 :]]
                return file_of(at, further, passed | {(at, name)})
            else:
                break
        return at or None

    graph: dict[Module, set[Module]] = {}
    for module in texts:
        reached = {file_of(module, path, frozenset()) for path in paths[module] if path} if module else set()
        graph[module] = {other for other in reached if other is not None and other != module}
    return graph


def modules_of(source: Path) -> dict[Module, str]:
    """The files of a crate, by the modules that they are."""
    texts: dict[Module, str] = {}
    for path, text in rust_files():
        if path.is_relative_to(source):
            parts = path.relative_to(source).with_suffix("").parts
            texts[() if parts == ("lib",) else parts[:-1] if parts[-1] == "mod" else parts] = text
    return texts


def python_graph() -> dict[Module, set[Module]]:
    """Which file of the package imports which when it is loaded; the package itself, which only lists, is left out."""
    names = {("hyperslab", *path.relative_to(PACKAGE).with_suffix("").parts): text for path, text in python_files()}
    modules = {name[:-1] if name[-1] == "__init__" else name: text for name, text in names.items()}
    graph: dict[Module, set[Module]] = {}
    for module, text in modules.items():
        graph[module] = set()
        if len(module) == 1:
            continue
        for node in ast.parse(text).body:
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                base = tuple(node.module.split("."))
                wanted = {(*base, alias.name) if (*base, alias.name) in modules else base for alias in node.names}
                graph[module] |= {name for name in wanted if name in modules and len(name) > 1 and name != module}
    return graph


def circles_of_files() -> Measure:
    """Files in each circle, by where it is."""
    graphs = {path.parent.name: module_graph(modules_of(path)) for path in sorted(ROOT.glob("crates/*/src"))}
    graphs["hyperslab in Python"] = python_graph()
    found = {f"{where}: {'/'.join(each[0])}": len(each) for where, graph in graphs.items() for each in circles(graph)}
    return dict(sorted(found.items()))


# ---- names, constants, words --------------------------------------------------------------------------------------


def type_names() -> Measure:
    """In how many places a name of a type is defined that is defined in several."""
    places: dict[str, int] = defaultdict(int)
    for _, text in rust_files():
        for name in re.findall(r"^(?:pub(?:\([a-z]+\))? )?(?:struct|enum|trait|type|union) (\w+)", text, re.M):
            places[name] += 1
    return {name: count for name, count in sorted(places.items()) if count > 1}


def constants() -> Measure:
    """Numbers with names, by crate: those of machines belong into profiles, those that people change into policies."""
    number = r"^ *(?:pub(?:\([a-z]+\))? )?const \w+: (?:u8|u16|u32|u64|usize|i32|i64|f32|f64|Duration|\([^=]*\)) ="
    found: Counter[str] = Counter()
    for path, text in rust_files():
        if "profile" not in path.as_posix() and path.stem != "policy":
            found[path.relative_to(ROOT).parts[1]] += len(re.findall(number, text, re.M))
    return dict(sorted(found.items()))


def words() -> Measure:
    """How often it is said what nobody would say."""
    text = "\n".join(written_files())
    return {said: len(re.findall(pattern, text)) for said, pattern in WORDS.items()}


MEASURES = {
    "lengths": lengths,
    "circles": circles_of_files,
    "type names": type_names,
    "constants": constants,
    "words": words,
}


def measured() -> dict[str, Measure]:
    """All measures as they are."""
    return {name: measure() for name, measure in MEASURES.items()}


def recorded() -> dict[str, Measure]:
    """All measures as they may be."""
    read: dict[str, Measure] = json.loads(RECORD.read_text(encoding="utf-8"))
    return read


def main() -> None:
    """Show the measures, or record them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="record them")
    text = json.dumps(measured(), indent=2) + "\n"
    if parser.parse_args().write:
        RECORD.write_text(text, encoding="utf-8")
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
