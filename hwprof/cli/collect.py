"""``hwprof collect``: measure a model and show what came out."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hwprof.cli.model_options import check_model, model_options, workload_spec
from hwprof.collector import registry
from hwprof.errors import FullDiskError, HwprofError, UsageError, is_full_disk

if TYPE_CHECKING:
    from hwprof.cli.progress import Bars
    from hwprof.run.directory import RunDirectory
    from hwprof.session.plan import PassPlan
    from hwprof.workload.spec import WorkloadSpec


def _names(text: str, what: str) -> list[str]:
    names = [name.strip().replace("-", "_") for name in text.split(",") if name.strip()]
    if not names:
        raise UsageError(f"{what} names nothing")
    return names


def _collector_switches(function: Any) -> Any:
    """``--no-NAME`` for every registered collector."""
    for name in reversed(registry.names()):
        flag = f"--no-{name.replace('_', '-')}"
        function = click.option(flag, f"no_{name}", is_flag=True, help=f"Leave the collector {name} out.")(function)
    return function


@click.command("collect")
@model_options
@click.option(
    "--iterations",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="Of the measure pass; the trace pass does at most 5.",
)
@click.option("--warmup", type=click.IntRange(min=0), default=2, show_default=True, help="Iterations before that.")
@click.option("--passes", default="measure,trace", show_default=True, metavar="LIST", help="Which passes, in order.")
@click.option("--collectors", metavar="LIST", help="Only these collectors. Default: all that work here.")
@_collector_switches
@click.option(
    "--events",
    metavar="LIST",
    help="What to count: groups (cache, flops, topdown, …), metrics, events, perf's raw syntax. See hwprof events.",
)
@click.option(
    "--counters",
    default="auto",
    show_default=True,
    metavar="LIST",
    help="Who counts: perf, papi, or both side by side (perf,papi). Beside them, in passes of their own: instrumented"
    " (counts executed code, needs no PMU), callgrind (valgrind, SSE4.1, one thread). auto: perf, and instrumented"
    " where there is no PMU.",
)
@click.option("--cache-sim", is_flag=True, help="callgrind also simulates this machine's caches: several times slower.")
@click.option(
    "--frequency",
    type=click.IntRange(min=1),
    metavar="HZ",
    help="How often the sampler looks at each thread, in a second of its processor time. Default: 999.",
)
@click.option(
    "--sample-passes",
    metavar="LIST",
    help="In which passes the sampler runs. Default: trace; measure,trace shows what sampling costs.",
)
@click.option(
    "--cache-model",
    is_flag=True,
    help="Simulate this machine's caches: every memory access of the instrumented code (counter instrumented) goes"
    " through a model, by layer and kernel. 10 to 25 times slower than the code itself, for two iterations.",
)
@click.option(
    "--cache",
    metavar="LIST",
    help="The same with other caches, what if this ran on that processor: l1=48K/12,l2=2M/16,llc=32M/16 (size and ways;"
    " levels left out are this machine's).",
)
@click.option("--user-only", is_flag=True, help="Hardware events count user code only, not the kernel's.")
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("results"),
    show_default=True,
    metavar="DIR",
    help="Where runs are kept, each in a folder of its own.",
)
@click.option("--top", type=click.IntRange(min=1), default=15, show_default=True, help="Rows of the hottest layers.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="What is printed at the end.",
)
def collect_command(
    iterations: int,
    warmup: int,
    passes: str,
    collectors: str | None,
    events: str | None,
    counters: str,
    cache_sim: bool,
    frequency: int | None,
    sample_passes: str | None,
    cache_model: bool,
    cache: str | None,
    user_only: bool,
    output: Path,
    top: int,
    form: str,
    **options: Any,
) -> None:
    """Measure a model's inference, layer by layer, and print the report.

    \b
    Examples:
      hwprof collect --model yolov7
      hwprof collect --model yolov8n --source photos/ --imgsz 320 --threads 1
      hwprof collect --model package.module:factory --input-shape 1,3,224,224
      hwprof collect --model yolov7 --weights yolov7.pt --passes measure
      hwprof collect --model yolov7 --events cpi,cache,topdown
      hwprof collect --model yolov8n --events cycles,r20c7:u,cpu/event=0xc7,umask=0x80/u
      hwprof collect --model yolov8n --imgsz 320 --counters callgrind --cache-sim
      hwprof collect --model yolov8n --cache l2=2M/16,llc=64M/16

    A run is kept in a folder of its own: tables (Parquet, CSV), annotated images, and trace.pftrace for
    ui.perfetto.dev (hwprof open).
    """
    from hwprof.cli.progress import Bars
    from hwprof.hardware.syntax import parse
    from hwprof.session.counters import Counting
    from hwprof.session.planner import plan_passes

    off = {name for name in registry.names() if options.pop(f"no_{name}")}
    spec = workload_spec(**options)
    check_model(spec)
    chosen = _names(collectors, "--collectors") if collectors is not None else None
    further: dict[str, dict[str, Any]] = {"callgrind": {"cache_sim": True}} if cache_sim else {}
    counters_named = _names(counters, "--counters")
    if cache_model or cache is not None:
        counters_named.append("instrumented")
        further["instrumented"] = {"cache_model": True, "cache": [] if cache is None else [cache]}
    counting = Counting(
        counters=counters_named,
        events=parse(events) if events is not None else None,
        user_only=user_only,
        further=further,
    )
    plans = plan_passes(
        registry.survey(chosen),
        _names(passes, "--passes"),
        iterations=iterations,
        warmup=warmup,
        off=off,
        named=chosen or (),
        counting=counting,
        options={"sampler": {"frequency": frequency}} if frequency is not None else {},
        passes_of={"sampler": _names(sample_passes, "--sample-passes")} if sample_passes is not None else {},
    )
    run = _create(output, spec)
    with Bars() as bars:
        failure = _measure(run, spec, plans, bars)
        traced = ""
        if run.completed_passes():
            traced, unwritten = _write_products(run, bars)
            failure = unwritten or failure
    _show(run, form, top, traced)
    if failure is not None:
        raise failure


def _create(output: Path, spec: WorkloadSpec) -> RunDirectory:
    """The run's directory with its first manifest."""
    import re
    from datetime import datetime

    from hwprof import __version__
    from hwprof.collector import clocks
    from hwprof.hardware import machine
    from hwprof.run.directory import RunDirectory
    from hwprof.run.manifest import Manifest

    now = datetime.now().astimezone()
    label = re.sub(r"[^\w.]+", "-", spec.model).strip("-.")
    manifest = Manifest(
        hwprof_version=__version__,
        name=f"{now:%Y%m%d-%H%M%S}-{label}",
        created=now.isoformat(timespec="seconds"),
        command=["hwprof", *sys.argv[1:]],
        machine=machine.describe(),
        clock=clocks.snapshot(),
    )
    return RunDirectory.create(output, manifest)


def _measure(run: RunDirectory, spec: WorkloadSpec, plans: Sequence[PassPlan], bars: Bars) -> BaseException | None:
    """Carries the passes out. A failure is returned where there is something to report all the same, else raised:
    then nothing is left that looks like a run, unless its log says more than the message."""
    from hwprof.session.supervisor import PassError, carry_out

    try:
        carry_out(run, spec, plans, bars)
    except (PassError, KeyboardInterrupt) as error:
        if run.completed_passes():
            return error
        if isinstance(error, KeyboardInterrupt) or error.foreseen:
            run.remove()
        raise
    return None


def _write_products(run: RunDirectory, bars: Bars) -> tuple[str, HwprofError | None]:
    """The files made from the tables: the trace and the CSV tables. What the trace holds is returned, and a failure:
    the report can be shown all the same."""
    from polars.exceptions import PolarsError

    from hwprof.report.csv.files import write_csv_files
    from hwprof.report.document.document import build
    from hwprof.report.document.kept import keep
    from hwprof.trace.writer import write_trace

    bars.phase("", "writing trace.pftrace", None)
    contents = ""
    try:
        contents = write_trace(run, run.path / "trace.pftrace", bars.reached).contents()
        bars.phase("", "writing tables", None)
        document = build(run)
        write_csv_files(run, document)
        keep(run, document)
    except (HwprofError, OSError, PolarsError) as error:
        if is_full_disk(error):
            return contents, FullDiskError(str(run.path))
        failure = error if isinstance(error, HwprofError) else HwprofError(f"cannot write to {run.path}: {error}")
        return contents, failure
    return contents, None


def _show(run: RunDirectory, form: str, top: int, traced: str) -> None:
    """``traced``: what the trace holds; empty where there is none."""
    from hwprof.cli.report import show

    show(run, form=form, top=top)
    if form == "text":
        name = shlex.quote(str(run.path))
        click.echo(f"\nkept in {name}: tables (Parquet, CSV), images, trace.pftrace")
        click.echo(f"  hwprof open {name}      the trace in ui.perfetto.dev{f': {traced}' if traced else ''}")
        click.echo(f"  hwprof report {name}    this report again")
