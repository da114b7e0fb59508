"""The options that collectors declare, as options of ``hwprof collect``, grouped by collector in its help."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import click

from hwprof.cli.given import given
from hwprof.collector import registry
from hwprof.collector.declaration import Declaration, Option, OptionType
from hwprof.errors import UsageError
from hwprof.run.roles import Role

LARGEST: Final = 1_000_000_000
"""Of a number that a collector is given; what it means is the collector's to check."""

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass
class Chosen:
    """What the user gave: options by collector, the passes of those that shall run elsewhere, and those asked for."""

    options: dict[str, dict[str, Any]] = field(default_factory=dict)
    passes_of: dict[str, list[str]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def add_full(self, off: Collection[str]) -> None:
        """All that is part of a full run and works here, but for those that are ``off``; what was given holds."""
        for found in registry.survey():
            full = found.declaration.full
            if full is not None and found.availability.ok and found.name not in off:
                self.asked.append(found.name)
                self.options[found.name] = {**dict(full), **self.options.get(found.name, {})}

    @property
    def asked_counters(self) -> list[str]:
        """Of those asked for, the counters."""
        return [name for name in self.asked if registry.declaration(name).role is Role.COUNTER]


class GroupedCommand(click.Command):
    """A command whose help shows the collectors' options in a section each."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The command's own options, then those of each collector."""
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        for parameter in self.get_params(ctx):
            title = f"Collector {parameter.collector}" if isinstance(parameter, _CollectorOption) else "Options"
            record = parameter.get_help_record(ctx)
            if record is not None:
                sections.setdefault(title, []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


class _CollectorOption(click.Option):
    collector = ""


def switches(function: Function) -> Function:
    """``--no-NAME`` for every registered collector."""
    for name in reversed(registry.names()):
        flag = f"--no-{name.replace('_', '-')}"
        function = click.option(flag, f"no_{name}", is_flag=True, help=f"Leave the collector {name} out.")(function)
    return function


def declared(function: Function) -> Function:
    """Every option that a collector declares."""
    return _declared(function, list(_all(_taken(function))))


def declared_by(role: Role) -> Callable[[Function], Function]:
    """Those that the collectors of a role declare."""

    def add(function: Function) -> Function:
        return _declared(function, [one for one in _all(_taken(function)) if one[1].role is role])

    return add


def _declared(function: Function, options: Sequence[tuple[str, Declaration, Option]]) -> Function:
    for key, declaration, option in reversed(options):
        function = click.option(_flag(key), key, cls=_class_of(declaration), **_form(option))(function)
    return function


def switched_off(values: dict[str, Any]) -> set[str]:
    """Takes the switches out of the command's values: who is to be left out."""
    return {name for name in registry.names() if values.pop(f"no_{name}")}


def chosen(values: dict[str, Any], names: Callable[[str, str], list[str]]) -> Chosen:
    """Takes the collectors' options out of the command's values. ``names`` splits a list of them."""
    found = Chosen()
    for key, declaration, option in _all([name for name in values if name not in _keys()]):
        value = values.pop(key, None)
        if value is None or value is False or not given(key):  # a default is for a collector that runs
            continue
        if isinstance(value, int) and abs(value) > LARGEST:
            raise UsageError(f"{_flag(key)} {value}: at most {LARGEST}")
        if option.type is OptionType.PASSES:
            found.passes_of[declaration.name] = names(value, _flag(key))
        else:
            found.options.setdefault(declaration.name, {})[option.name] = value
        if option.asks:
            found.asked.append(declaration.name)
    return found


def flags_of(options: Mapping[str, Mapping[str, Any]]) -> str:
    """How a user types them, of any that there are."""
    known = [(key, options.get(declaration.name, {}).get(option.name)) for key, declaration, option in _all([])]
    return " ".join(f"{_flag(key)} {shlex.quote(str(value))}" for key, value in known if value is not None)


def is_collectors(option: click.Parameter) -> bool:
    """Whether a collector has declared it."""
    return isinstance(option, _CollectorOption)


def _keys() -> set[str]:
    plain = {
        (declaration.name, option.name) for declaration in registry.declarations() for option in declaration.options
    }
    return {option for _, option in plain} | {f"{name}_{option}" for name, option in plain}


def _all(taken: list[str]) -> Iterator[tuple[str, Declaration, Option]]:
    """Every option with its key among the command's values: its name, with the collector's before it where something
    else has that name already."""
    used = set(taken)
    for declaration in registry.declarations():
        for option in declaration.options:
            key = option.name if option.name not in used else f"{declaration.name}_{option.name}"
            if key not in used:
                used.add(key)
                yield key, declaration, option


def _taken(function: Any) -> list[str]:
    """The names of the options that a function has already."""
    return [parameter.name for parameter in getattr(function, "__click_params__", ())]


def _flag(key: str) -> str:
    return f"--{key.replace('_', '-')}"


def _class_of(declaration: Declaration) -> type[click.Option]:
    return type("CollectorOption", (_CollectorOption,), {"collector": declaration.name})


def _form(option: Option) -> dict[str, Any]:
    form: dict[str, Any] = {"help": option.help, "metavar": option.metavar, "default": option.default}
    if option.default is not None:
        form["show_default"] = True
    if option.type is OptionType.FLAG:
        return {"help": option.help, "is_flag": True}
    if option.choices:
        return form | {"type": click.Choice(option.choices)}
    if option.type is OptionType.INTEGER:
        return form | {"type": click.IntRange(min=option.minimum) if option.minimum is not None else int}
    return form
