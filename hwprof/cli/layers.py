"""``hwprof layers``: the layers of a model with what each does and how long it takes, without a run directory."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from hwprof import processes
from hwprof.cli.model_options import check_model, model_options, workload_spec
from hwprof.cli.streams import print_csv, print_json
from hwprof.cli.text_width import width_option
from hwprof.printable import printable
from hwprof.run.manifest import PassRecord, WorkloadRecord
from hwprof.session.copy_of_process import HowFar, Tell, answer_of
from hwprof.session.messages import Phase, PhaseBegins
from hwprof.workload.spec import WorkloadSpec

if TYPE_CHECKING:
    import polars as pl

    from hwprof.cli.progress import Bars

NAME: Final = "layers"
MOST: Final = 10_000
"""Runs."""


class _Timed(msgspec.Struct):
    """What was measured of it."""

    record: PassRecord
    spans: bytes  # as Arrow has them
    unseen: list[str]  # paths of modules of which not all calls were seen


class _Described(msgspec.Struct):
    """What the copy that has built the model tells of it."""

    record: WorkloadRecord
    table: bytes  # ``layers``, as Arrow has it
    timed: _Timed | None


@click.command(NAME)
@model_options
@click.option(
    "--runs",
    type=click.IntRange(0, MOST),
    default=10,
    show_default=True,
    help="Forwards of which each layer's mean time is, after 2 to warm up; of a slow model fewer, 3 at least, in 20 s."
    " 0: nothing is measured.",
)
@click.option("--all", "everything", is_flag=True, help="All modules instead, each with what is in it.")
@click.option("--format", "form", type=click.Choice(["text", "json", "csv"]), default="text", show_default=True)
@width_option
def layers_command(runs: int, everything: bool, form: str, width: int | None, **options: Any) -> None:
    """Show a model's layers, their MACs, and their mean times.

    Index (of models that are one list of modules), type, time, parameters,
    MACs and shapes, of the first input: of leaf layers, and of other modules'
    own code.

    \b
    Examples:
      hwprof layers --model yolov7
      hwprof layers --model yolov7 --runs 0
      hwprof layers --model yolov8n --imgsz 320 --format csv > layers.csv
    """
    spec = workload_spec(**options)
    check_model(spec)
    from hwprof.cli.progress import Bars

    bars = Bars()
    bars.phase(NAME, f"building {printable(spec.model)} and calling it", None)
    answer = answer_of(lambda tell: _described(spec, runs, tell), bars.pass_on, lambda said: _show(said, bars), bars)

    from hwprof.analysis.forward_times import forward_times, with_small_together
    from hwprof.analysis.layers import static_rows

    found = msgspec.json.decode(answer, type=_Described)
    table = _table(found.table)
    times = forward_times(table, _table(found.timed.spans), found.timed.record) if found.timed is not None else None
    if times is not None:
        shown = times.modules if everything else times.rows
    else:
        shown = table if everything else static_rows(table)
    if form == "csv":
        from hwprof.report.csv.table import without_points

        print_csv(without_points(shown).write_csv())
    elif form == "json":
        print_json(shown.write_json())
    else:
        from hwprof.report.text import layer_times, static_layers
        from hwprof.report.text.console import make_console

        console = make_console(width)
        notes: list[str] = []
        if times is not None and found.timed is not None:
            shown = shown if everything else with_small_together(shown)
            notes = layer_times.notes(times, runs, found.timed.unseen, console)
        static_layers.show(table, shown, found.record, console, notes)


def _show(said: HowFar, bars: Bars) -> None:
    if isinstance(said, PhaseBegins):
        bars.phase(NAME, said.phase.value, said.total)
    else:
        bars.step()


def _table(written: bytes) -> pl.DataFrame:
    import polars as pl

    return pl.read_ipc(io.BytesIO(written))


def _described(spec: WorkloadSpec, runs: int, tell: Tell) -> bytes:
    """The model, by itself: in a process of its own."""
    from hwprof.workload import factory

    original = os.getpid()
    workload = factory.build(spec)
    record = workload.prepare(values=runs > 0)
    processes.end_copy(original)
    timed = None
    if runs:
        from hwprof.session.layer_times import LayerTimes

        times = LayerTimes(workload)
        unseen = times.measure(runs, tell)
        timed = _Timed(times.record, _written(times.recorder.table(original)), unseen)
    tell(PhaseBegins(Phase.DESCRIBING))
    from hwprof.workload.layer_tables import layer_tables  # it brings threads

    table, _ = layer_tables(workload, first_only=True)
    return msgspec.json.encode(_Described(record, _written(table), timed))


def _written(table: pl.DataFrame) -> bytes:
    written = io.BytesIO()
    table.write_ipc(written)
    return written.getvalue()
