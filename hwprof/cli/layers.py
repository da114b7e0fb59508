"""``hwprof layers``: the static layer table, without measuring."""

from __future__ import annotations

import io
import os
from typing import Any

import click
import msgspec

from hwprof import processes
from hwprof.cli.model_options import check_model, model_options, workload_spec
from hwprof.cli.streams import print_csv, print_json
from hwprof.cli.text_width import width_option
from hwprof.printable import printable
from hwprof.run.manifest import WorkloadRecord
from hwprof.session.copy_of_process import answer_of
from hwprof.workload.spec import WorkloadSpec


class _Described(msgspec.Struct):
    """What the copy that has built the model tells of it."""

    record: WorkloadRecord
    table: bytes  # ``layers``, as Arrow has it


@click.command("layers")
@model_options
@click.option("--all", "everything", is_flag=True, help="All modules instead, each with what is in it.")
@click.option("--format", "form", type=click.Choice(["text", "json", "csv"]), default="text", show_default=True)
@width_option
def layers_command(everything: bool, form: str, width: int | None, **options: Any) -> None:
    """Show a model's layers and their MACs, without measuring.

    Index (of models that are one list of modules), type, parameters, MACs and
    shapes, of the first input: of leaf layers, and the MACs of other modules'
    own code.

    \b
    Examples:
      hwprof layers --model yolov7
      hwprof layers --model yolov8n --imgsz 320 --format csv > layers.csv
    """
    spec = workload_spec(**options)
    check_model(spec)
    from hwprof.cli.progress import Bars

    bars = Bars()
    bars.phase("layers", f"building {printable(spec.model)} and calling it", None)
    answer = answer_of(lambda: _described(spec), bars.pass_on, bars)

    import polars as pl

    from hwprof.analysis.layers import static_rows

    found = msgspec.json.decode(answer, type=_Described)
    table = pl.read_ipc(io.BytesIO(found.table))
    shown = table if everything else static_rows(table)
    if form == "csv":
        print_csv(shown.write_csv())
    elif form == "json":
        print_json(shown.write_json())
    else:
        from hwprof.report.text import static_layers
        from hwprof.report.text.console import make_console

        static_layers.show(table, shown, found.record, make_console(width))


def _described(spec: WorkloadSpec) -> bytes:
    """The model, by itself: in a process of its own."""
    from hwprof.workload import factory

    original = os.getpid()
    workload = factory.build(spec)
    record = workload.prepare(values=False)
    processes.end_copy(original)
    from hwprof.workload.layer_tables import layer_tables  # it brings threads

    table, _ = layer_tables(workload, first_only=True)
    written = io.BytesIO()
    table.write_ipc(written)
    return msgspec.json.encode(_Described(record, written.getvalue()))
