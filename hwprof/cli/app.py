"""The command line's frame: finds commands, and turns every failure into one line and an exit code."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

import click

from hwprof import __version__
from hwprof.cli import room, streams
from hwprof.errors import NO_MEMORY, HwprofError, UsageError, is_out_of_memory, of_system
from hwprof.interrupts import unwrapped
from hwprof.printable import as_written, is_text, one_line, printable
from hwprof.session.interruption import InterruptionError

COMMANDS: Final = {
    "collect": "Measure a model layer by layer, and print the report.",
    "report": "Show what a run measured: where its time goes, what to do.",
    "try": "Try remedies: the run's workload with and without each.",
    "bench": "Compare models, variants, sizes, batches and threads.",
    "open": "Open a run's trace in the Perfetto UI.",
    "layers": "Show a model's layers, their MACs, and their mean times.",
    "models": "List the models that --model takes by name.",
    "events": "Show what this processor's counters count.",
    "peaks": "Measure what this machine can do at most.",
    "explain": "Explain a word of the report: formula, provenance, source.",
    "doctor": "Check what this machine can measure, and say how to get the rest.",
}
"""In the order of ``--help``, with its line: each is the function of that name in the module of that name."""

MODULES: Final = {"try": "try_remedies"}
"""Of those that cannot have a module of their name."""

INTERRUPTED: Final = 130

_NO_ARGUMENTS: Final[tuple[type[click.UsageError], ...]] = tuple(
    kind for kind in (getattr(click.exceptions, "NoArgsIsHelpError", None),) if kind is not None
)
"""Newer versions of click raise it with the whole help as its message; older ones print that themselves."""

_NO_DEFECTS: Final = (KeyboardInterrupt, InterruptionError, click.Abort, *_NO_ARGUMENTS)
"""Of which nobody needs to know where they came from."""


@contextmanager
def _interruptions_named() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt as interrupt:
        raise InterruptionError(interrupt) from interrupt


class Commands(click.Group):
    """Imports a command's module when it is used, so that start-up stays short."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order that a user meets them."""
        return list(COMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """As click does it, which would import all modules for their first sentences."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does it, with the near match for a mistyped command."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            import difflib

            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else f" There are {', '.join(COMMANDS)}."
            raise click.UsageError(f"No such command {args[0]!r}.{hint}", ctx) from error

    def make_context(self, *arguments: Any, **keywords: Any) -> click.Context:
        """As ``invoke``."""
        with _interruptions_named():
            return super().make_context(*arguments, **keywords)

    def invoke(self, ctx: click.Context) -> Any:
        """As click does it, which would answer Ctrl-C with an empty line, and forget which signal it was."""
        with _interruptions_named():
            room.require_room()
            return super().invoke(ctx)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, or None for an unknown name; each command takes --debug as well."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"hwprof.cli.{MODULES.get(cmd_name, cmd_name)}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        if not any(parameter.name == "debug" for parameter in command.params):
            command.params.append(_debug_option())
        return command


def _set_debug(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        ctx.find_root().obj["debug"] = True


def _debug_option() -> click.Option:
    return click.Option(
        ["--debug"], is_flag=True, expose_value=False, is_eager=True, callback=_set_debug, help="Show tracebacks."
    )


@click.command(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    params=[_debug_option()],
)
@click.version_option(__version__, prog_name="hwprof")
def app() -> None:
    """Which layers of a neural network waste the processor, why, and in which kernel.

    \b
    Examples:
      hwprof collect --model yolov7          measure, and print the report
      hwprof report                          the latest run's report again
      hwprof try                             what the remedies of its findings bring
      hwprof open                            its trace in ui.perfetto.dev
      hwprof events cache                    what its counters count, and what that tells
      hwprof peaks                           what this machine can do at most
      hwprof explain cpi                     what a word of the report means
      hwprof doctor                          what this machine can measure
    """


def run(arguments: Sequence[str]) -> int:
    """Runs the command line; the exit code: 0, 1 (failed), 2 (bad usage), 130 (interrupted), 128 + a signal's number.
    It is the same with --debug, which only shows where a failure came from."""
    state: dict[str, Any] = {"debug": bool(os.environ.get("HWPROF_DEBUG"))}
    try:
        _forget_odd_sizes()
        _refuse_foreign_bytes(arguments)
        result = app.main(args=list(arguments), prog_name="hwprof", standalone_mode=False, obj=state)
        sys.stdout.flush()
    except streams.ReaderGoneError:
        streams.give_up_output()
        return 0
    except BaseException as error:  # a panic of a library's is no Exception
        if isinstance(error, SystemExit):
            raise
        streams.settle()
        error = unwrapped(error)
        message, code = _told(error)
        with suppress(OSError):  # a terminal that is gone
            if state["debug"] and not isinstance(error, _NO_DEFECTS):
                print(_traceback(error), file=sys.stderr)
            print(message, file=sys.stderr)
        return code
    return result if isinstance(result, int) else 0


def _forget_odd_sizes() -> None:
    """rich takes what ``str.isdigit`` calls a number ("²") for one."""
    for name in ("COLUMNS", "LINES"):
        if not os.environ.get(name, "0").isdecimal():
            del os.environ[name]


def _told(error: BaseException) -> tuple[str, int]:
    """What the user reads of a failure, and the exit code."""
    if isinstance(error, _NO_ARGUMENTS):
        return error.format_message(), error.exit_code  # the help
    if isinstance(error, KeyboardInterrupt):
        error = InterruptionError(error)
    if isinstance(error, click.Abort):
        return "hwprof: interrupted", INTERRUPTED
    if isinstance(error, click.ClickException):
        hint = f" (see: {error.ctx.command_path} --help)" if isinstance(error, click.UsageError) and error.ctx else ""
        return f"hwprof: {one_line(_message(error) + hint)}", error.exit_code
    if isinstance(error, HwprofError):
        return f"hwprof: {one_line(str(error))}", error.exit_code
    if isinstance(error, OSError) and (said := of_system(error)):
        return f"hwprof: {one_line(said)} (--debug shows where)", 1
    if is_out_of_memory(error):
        return f"hwprof: {NO_MEMORY} (--debug shows where)", 1
    what = f"{type(error).__name__}: {error} (this is a defect of hwprof; --debug shows where)"
    return f"hwprof: {one_line(what)}", 1


def _message(error: click.ClickException) -> str:
    """As click has it; for an option that there is not, which click likens to any, what is meant most likely."""
    if not isinstance(error, click.NoSuchOption):
        return error.format_message()
    likely: list[str] = []
    with suppress(OSError):  # no descriptor is left to read the module
        from hwprof.cli.near_options import meant

        likely = meant(error.option_name, error.ctx) if error.ctx is not None else []
    return f"{error.message} Did you mean {' or '.join(likely)}?" if likely else error.message


def _traceback(error: BaseException) -> str:
    """Where an error came from, in the process of the model first; names from outside may stand in it."""
    import traceback

    there = (error.trace or "") if isinstance(error, HwprofError) else ""
    here = "".join(traceback.format_exception(error))
    text = f"{there.rstrip()}\n\nThe process that measured gave up so; hwprof itself:\n\n{here}" if there else here
    return "\n".join(map(printable, text.splitlines()))


def _refuse_foreign_bytes(arguments: Sequence[str]) -> None:
    """What is not UTF-8 can be kept in no file of a run."""
    for argument in arguments:
        if not is_text(argument):
            raise UsageError(f"the argument {as_written(argument)} is not UTF-8", "rename the file")
