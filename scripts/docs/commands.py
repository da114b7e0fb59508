"""The commands of hwprof as their own ``--help`` tells them."""

from __future__ import annotations

from collections.abc import Callable

import click
from click.testing import CliRunner

from hwprof.cli.app import app

WIDTH = 100


def names() -> list[str]:
    """The commands, in the order of ``hwprof --help``."""
    return app.list_commands(click.Context(app))


def command(name: str) -> click.Command:
    """One command; raises ``KeyError`` where there is none of that name."""
    found = app.get_command(click.Context(app), name)
    if found is None:
        raise KeyError(name)
    return found


def options_of(name: str) -> Callable[[], str]:
    """What ``hwprof NAME --help`` prints, as a block of text."""

    def block() -> str:
        return f"```text\n{command(name).get_help(context(name)).rstrip()}\n```"

    return block


def index() -> str:
    """A list of all commands' pages."""
    return "\n".join(
        f"- [`hwprof {name}`](commands/{name}.md): {command(name).get_short_help_str(limit=200)}" for name in names()
    )


def context(name: str) -> click.Context:
    """The context in which click tells a command's help, in a width that does not depend on a terminal."""
    parent = click.Context(app, info_name="hwprof", terminal_width=WIDTH, help_option_names=["-h", "--help"])
    return click.Context(command(name), info_name=name, parent=parent)


def glossary() -> str:
    """The glossary's page, as ``hwprof explain`` makes it."""
    return output("explain", "--list", "--format", "markdown")


def output(*arguments: str) -> str:
    """What a command prints; raises what it raises."""
    return CliRunner().invoke(app, arguments, obj={"debug": False}, catch_exceptions=False).stdout
