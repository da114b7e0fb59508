"""``hwprof layers``: the static layer table, without measuring."""

from __future__ import annotations

import os
from typing import Any

import click

from hwprof import processes
from hwprof.cli import watched
from hwprof.cli.model_options import check_model, model_options, workload_spec
from hwprof.cli.streams import others_write_to_stderr, print_csv, print_json
from hwprof.errors import HwprofError, described


@click.command("layers")
@model_options
@click.option("--all", "everything", is_flag=True, help="All modules instead, each with what is in it.")
@click.option("--format", "form", type=click.Choice(["text", "json", "csv"]), default="text", show_default=True)
@click.option(
    "--width", type=click.IntRange(min=40, max=1000), help="Columns of the text. Default: the terminal's, 80 in a pipe."
)
def layers_command(everything: bool, form: str, width: int | None, **options: Any) -> int | None:
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
    if (status := watched.in_copy()) is not None:
        return status

    from hwprof.analysis.layers import static_rows
    from hwprof.workload import factory
    from hwprof.workload.layer_tables import layer_tables

    original = os.getpid()
    try:
        with others_write_to_stderr():
            workload = factory.build(spec)
            record = workload.prepare(values=False)
            table, _ = layer_tables(workload, first_only=True)
    except SystemExit as error:  # in silence, and with any code
        raise HwprofError(f"the model's code ended the process ({described(error)})") from error
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as error:  # one of theirs, or one that Python ends a generator with
        raise HwprofError(f"the model's code raised {described(error)}") from error
    processes.end_copy(original)
    shown = table if everything else static_rows(table)
    if form == "csv":
        print_csv(shown.write_csv())
    elif form == "json":
        print_json(shown.write_json())
    else:
        from hwprof.report.text import static_layers
        from hwprof.report.text.console import make_console

        static_layers.show(table, shown, record, make_console(width))
    return None
