"""What somebody may mean who types an option that a command does not have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from typing import Final

import click

LIKENESS: Final = 0.75
"""Of two names that may be one misspelt: --modle and --model; --json and --conf are at 0.67."""

LONG_ENOUGH: Final = len("--abc")
"""Of a name that is the beginning of another's."""

MOST: Final = 3


def meant(name: str, ctx: click.Context) -> list[str]:
    """What to type in its place, the likeliest first: an option's value (``--format json`` for ``--json``), another
    command's option of that name, or the command's own of a similar one. Empty where nothing is near."""
    own = _options(ctx.command)
    word = name.lstrip("-")
    as_value = _with_value(own, word)
    if as_value is not None:
        return [as_value]
    others = [(f"hwprof {command.name}", _options(command)) for command in _commands(ctx) if command is not ctx.command]
    elsewhere = next((f"{path} {name}" for path, options in others if name in _names(options)), None)
    if elsewhere is not None:
        return [elsewhere]
    return _similar(name, _names(own))


def _commands(ctx: click.Context) -> Iterator[click.Command]:
    root = ctx.find_root()
    if isinstance(root.command, click.Group):
        for name in root.command.list_commands(root):
            command = root.command.get_command(root, name)
            if command is not None:
                yield command


def _options(command: click.Command) -> list[click.Option]:
    return [one for one in command.params if isinstance(one, click.Option) and not one.hidden]


def _names(options: Iterable[click.Option]) -> list[str]:
    """The long ones."""
    return [name for one in options for name in (*one.opts, *one.secondary_opts) if name.startswith("--")]


def _with_value(options: Iterable[click.Option], word: str) -> str | None:
    """``--format json``: of the option that takes that word."""
    taking = (one for one in options if isinstance(one.type, click.Choice) and word in one.type.choices)
    return next((f"{_names([one])[0]} {word}" for one in taking), None)


def _similar(name: str, known: Iterable[str]) -> list[str]:
    """Cut short, or longer than it is, else misspelt."""
    if not name.startswith("--"):
        return []
    ratios = {one: SequenceMatcher(None, one, name).ratio() for one in known}
    near = [one for one in ratios if _begins(one, name) or _begins(name, one)]
    near = near or [one for one, ratio in ratios.items() if ratio >= LIKENESS]
    return sorted(near, key=lambda one: -ratios[one])[:MOST]


def _begins(name: str, beginning: str) -> bool:
    return len(beginning) >= LONG_ENOUGH and name.startswith(beginning)
