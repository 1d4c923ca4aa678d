"""Makes docs/reference from the docstrings of the public names: a page for each class and function.

python scripts/make_reference.py
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hyperslab

FOLDER = Path(__file__).parents[1] / "docs/reference"
NOTE = "<!-- Made by scripts/make_reference.py from the docstrings. -->\n"

#: Public names by what they are for; what is in none of these is listed as "others".
GROUPS = {
    "Opening and saving": ("open", "open_raw", "save_npy", "load_npy", "convert", "Converted"),
    "Selecting by value": ("Expression", "Selected"),
    "What is open": ("Group", "Array", "Step", "Steps", "Batch", "Attributes", "NetcdfFile", "RawFile"),
    "Who holds what": ("Distribution", "Pieces", "Boxes", "Runs", "ElementMap", "TypicalRequest"),
    "Calls": ("Report", "Request", "wait_all", "finalize"),
    "Ranks": ("threads", "ThreadComm", "release", "dedicate", "ServedComm"),
    "Places": ("MemoryStore", "MemoryPath", "ObjectMemory", "Striped"),
    "Understanding and checking": ("explain", "Explanation", "verify", "Verification", "VerifiedArray", "Finding"),
    "Other machines": ("plan", "Plan", "simulate", "Simulated", "machines", "Machine"),
    "Errors": tuple(name for name in hyperslab.__all__ if name.endswith("Error")),
}


def signature(name: str, what: Any) -> str:
    """How something is called, as in the code."""
    try:
        told = str(inspect.signature(what))
    except (TypeError, ValueError):
        return name
    # Annotations are texts, which need no quotes here; whose module a type is of, readers can tell.
    told = re.sub(r"'([^']*)'(?=[,)=\]| ]|$)", r"\1", told) if "'" in told else told
    told = re.sub(r"\b(?:hyperslab|numpy|typing|collections|_core|_options)\.(?:[a-z_]+\.)*(?=[A-Z])", "", told)
    told = re.sub(r"^\(self(?:, )?", "(", told)
    return name + told


def section(what: Any) -> str:
    """A docstring as Markdown: underlined words become headings in bold, examples become blocks."""
    text = inspect.getdoc(what) or ""
    text = re.sub(r"^(\w[\w ]*)\n-{3,}$", r"**\1**\n", text, flags=re.MULTILINE)
    # In Markdown a backquote is enough for code.
    text = text.replace("``", "`")
    lines, inside = [], False
    for line in text.splitlines():
        if line.startswith(">>> ") and not inside:
            lines.append("```pycon")
            inside = True
        if inside and not line:
            lines.append("```")
            inside = False
        found = re.match(r"^(\*{0,2}[A-Za-z_][\w, *]*) : (.*)$", line)
        if found and not inside:
            lines.append(f"- `{found[1]}`: {found[2]}  ")
        else:
            lines.append(line if inside else re.sub(r"^    ", "  ", line))
    return "\n".join([*lines, "```"] if inside else lines)


def members(kind: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties that a class has by itself or from a class of ours, in the order of the code."""
    seen: set[str] = set()
    special = {"__getitem__", "__delitem__", "__contains__", "__iter__", "__len__", "__array__"}
    for base in kind.__mro__:
        if not base.__module__.startswith("hyperslab"):
            continue
        # Those of compiled classes are in no order that would mean anything.
        own = vars(base).items() if base.__module__ != "hyperslab._core" else sorted(vars(base).items())
        for name, what in own:
            wanted = (not name.startswith("_") or name in special) and name not in seen
            plain = isinstance(what, (classmethod, staticmethod, property)) or inspect.isfunction(what)
            described = plain or inspect.isgetsetdescriptor(what) or inspect.ismethoddescriptor(what)
            if wanted and described:
                seen.add(name)
                yield name, what


def page(name: str, what: Any) -> str:
    """The page of a class or function."""
    lines = [NOTE, f"# hyperslab.{name}\n"]
    if inspect.isclass(what):
        lines += [section(what), ""]
        for member, found in members(what):
            inner = found.__func__ if isinstance(found, (classmethod, staticmethod)) else found
            called = member if isinstance(found, property) or not callable(inner) else signature(member, inner)
            lines += [f"## {member}\n", f"```text\n{called}\n```\n", section(inner), ""]
    else:
        lines += [f"```text\n{signature(name, what)}\n```\n", section(what), ""]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


def summary(what: Any) -> str:
    """The first sentence of a docstring."""
    first = (inspect.getdoc(what) or "").partition("\n\n")[0]
    return " ".join(first.split()).replace("``", "`")


def pages() -> dict[str, str]:
    """All pages, by the names of their files."""
    public = [name for name in hyperslab.__all__ if not name.startswith("_") and name != "trace"]
    grouped = {name for names in GROUPS.values() for name in names}
    groups = {**GROUPS, "Others": tuple(name for name in public if name not in grouped)}
    made: dict[str, str] = {}
    index = [NOTE, "# Reference\n", "Every public name of the Python package. `import hyperslab as hs`.\n"]
    for title, names in groups.items():
        known = [name for name in names if name in public]
        if not known:
            continue
        index += [f"## {title}\n", "| name | |", "| --- | --- |"]
        for name in known:
            what = getattr(hyperslab, name)
            file = f"{name}.md"
            made[file] = page(name, what)
            index.append(f"| [{name}]({file}) | {summary(what)} |")
        index.append("")
    made["README.md"] = "\n".join(index).rstrip() + "\n"
    return made


def main() -> None:
    """Write all pages, and remove those of names that are gone."""
    FOLDER.mkdir(exist_ok=True)
    made = pages()
    for path in FOLDER.glob("*.md"):
        if path.name not in made:
            path.unlink()
    for name, text in made.items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
