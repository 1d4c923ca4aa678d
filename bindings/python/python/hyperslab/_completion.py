"""``hyperslab completion``: scripts by which shells complete verbs, options and their values."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Iterator
from typing import Any, Protocol

__all__ = ["add_verb"]


class _Verbs(Protocol):
    def add_parser(self, name: str, **options: Any) -> argparse.ArgumentParser: ...


def add_verb(verbs: _Verbs, parser: Callable[[], argparse.ArgumentParser]) -> None:
    """Add the command to the others, of which `parser` has all."""
    command = verbs.add_parser(
        "completion",
        help="print a script that completes the command in a shell",
        description="Print a script that completes verbs, options and their values. For bash: "
        'eval "$(hyperslab completion bash)"; fish: hyperslab completion fish | source.',
    )
    command.add_argument("shell", choices=tuple(_SHELLS))

    def run(args: argparse.Namespace) -> int:
        print(_SHELLS[args.shell](parser()), end="")
        return 0

    command.set_defaults(run=run)


def _commands(parser: argparse.ArgumentParser, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """All verbs, by their words, and the parser of each."""
    yield path, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, below in action.choices.items():
                yield from _commands(below, (*path, name))


def _words(parser: argparse.ArgumentParser) -> list[str]:
    """What may follow a verb: options, verbs below it, and values of arguments."""
    words: list[str] = []
    for action in parser._actions:
        words += [option for option in action.option_strings if option.startswith("--")]
        if not action.option_strings and action.choices:
            words += map(str, action.choices)
    return words


def _choices(parser: argparse.ArgumentParser) -> dict[str, list[str]]:
    """Options with a fixed choice of values."""
    return {
        option: list(map(str, action.choices))
        for action in parser._actions
        for option in action.option_strings
        if option.startswith("--") and action.choices
    }


def _bash(parser: argparse.ArgumentParser) -> str:
    commands, values = [], []
    for path, below in _commands(parser):
        commands.append(f"        {shlex.quote(' '.join(path))}) words={shlex.quote(' '.join(_words(below)))} ;;")
        for option, choices in _choices(below).items():
            key = shlex.quote(" ".join((*path, option)))
            values.append(f"        {key}) words={shlex.quote(' '.join(choices))}; only=1 ;;")
    verbs = [shlex.quote(" ".join(path)) for path, _ in _commands(parser) if path]
    return f"""_hyperslab() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} verb= word words= only=
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        case "${{verb:+$verb }}$word" in {"|".join(verbs)}) verb=${{verb:+$verb }}$word ;; esac
    done
    case $verb in
{chr(10).join(commands)}
    esac
    case "${{verb:+$verb }}$previous" in
{chr(10).join(values)}
    esac
    COMPREPLY=($(compgen -W "$words" -- "$current"))
    if [ -z "$only" ] && [ "${{current#-}}" = "$current" ]; then
        COMPREPLY+=($(compgen -f -- "$current"))
    fi
}}
complete -o filenames -F _hyperslab hyperslab
"""


def _zsh(parser: argparse.ArgumentParser) -> str:
    return "autoload -U +X bashcompinit && bashcompinit\n" + _bash(parser)


def _fish(parser: argparse.ArgumentParser) -> str:
    lines = []
    for path, below in _commands(parser):
        verbs = [
            name
            for action in below._actions
            if isinstance(action, argparse._SubParsersAction)
            for name in action.choices
        ]
        seen = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in path)
        when = f"'{seen}'" if path else "__fish_use_subcommand"
        if verbs:
            lines.append(f"complete -c hyperslab -f -n {when} -a '{' '.join(verbs)}'")
        for action in below._actions:
            if not action.option_strings and action.choices and path and not verbs:
                lines.append(f"complete -c hyperslab -f -n {when} -a '{' '.join(map(str, action.choices))}'")
            for option in action.option_strings:
                if option.startswith("--") and path:
                    told = (action.help or "").replace("'", "").replace("%%", "%")
                    values = f" -xa '{' '.join(map(str, action.choices))}'" if action.choices else ""
                    lines.append(f"complete -c hyperslab -n {when} -l {option[2:]}{values} -d '{told}'")
    return "\n".join(lines) + "\n"


_SHELLS: dict[str, Callable[[argparse.ArgumentParser], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
