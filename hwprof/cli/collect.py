"""``hwprof collect``: measure a model and show what came out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from hwprof.cli import collection, collector_options, products, thread_numbers
from hwprof.cli.folders import Folder
from hwprof.cli.model_options import check_model, model_options, workload_spec
from hwprof.cli.numbers import TRY_S, RealRange
from hwprof.cli.room import require_room_to_measure
from hwprof.cli.text_width import width_option
from hwprof.cli.trace_options import trace_limit
from hwprof.cli.variants import check_variant, of_names, variant_option
from hwprof.collector import registry
from hwprof.errors import UsageError
from hwprof.run.roles import Role
from hwprof.trace.limits import SLICES

if TYPE_CHECKING:
    from hwprof.run.peaks import Peaks
    from hwprof.session.counters import Counting
    from hwprof.session.fork_server import ForkServer
    from hwprof.session.plan import PassPlan
    from hwprof.workload.spec import WorkloadSpec


MOST: Final = 1_000_000
"""Iterations of a pass, or rows of a table, that somebody can mean."""

WAIT_S: Final = 300
LONGEST_S: Final = 86_400
"""Seconds that --wait-quiet waits, and that it or --time may be told."""


def _names(text: str, what: str) -> list[str]:
    names = [name.strip().replace("-", "_") for name in text.split(",") if name.strip()]
    if not names:
        raise UsageError(f"{what} names nothing", f"name one, or leave {what} out")
    return names


def _counters_help() -> str:
    """Who there is to count, by what the collectors declare."""
    counters = [declared for declared in registry.declarations() if declared.role is Role.COUNTER]
    sharing = [declared.name for declared in counters if not declared.own_passes]
    alone = [declared.name for declared in counters if declared.own_passes]
    auto = ", ".join(declared.name for declared in counters if declared.preferred)
    fallback = "".join(f", and {declared.name} where there is no PMU" for declared in counters if declared.fallback)
    return (
        f"Who counts: {', '.join(sharing)}, several side by side. In passes of their own: {', '.join(alone) or 'none'}."
        f" auto: {auto}{fallback}."
    )


@click.command("collect", cls=collector_options.GroupedCommand)
@collector_options.declared
@model_options
@variant_option
@click.option(
    "--iterations",
    type=click.IntRange(1, MOST),
    help="Of the measure pass. Default: 20 (8 at least, where these take more than 20 s), and as many more, up to 200 "
    "in 20 s, as it takes to know each layer with half a percent of the time to within 2%, if that is in reach. The "
    "trace pass does at most 5 (in 10 s), and 3 more for oneDNN's own report.",
)
@click.option(
    "--time",
    "time_s",
    type=RealRange(min=0, min_open=True, max=LONGEST_S),
    metavar="SECONDS",
    help="In the place of --iterations: for so long the measure pass iterates, 3 times at least, 100,000 at most. Of "
    "very many iterations some watch their layers, evenly spread.",
)
@click.option(
    "--precision",
    "precision_percent",
    type=RealRange(min=0, min_open=True, max=100),
    metavar="PERCENT",
    help="The measure pass ends when the median time of each layer with half a percent of the time is known to within "
    "so much (half of its 95% interval), or after --time, which is 20 s here; the report says where it is not.",
)
@click.option("--warmup", type=click.IntRange(0, MOST), default=2, show_default=True, help="Iterations before that.")
@click.option(
    "--wait-quiet",
    "wait_quiet_s",
    type=RealRange(min=0, min_open=True, max=LONGEST_S),
    is_flag=False,
    flag_value=WAIT_S,
    metavar="[SECONDS]",
    help=f"Before each timed pass, wait until other programs let the processors alone; at most {WAIT_S} s, or SECONDS.",
)
@click.option(
    "--peaks/--no-peaks",
    "with_peaks",
    default=True,
    show_default=True,
    envvar="HWPROF_PEAKS",
    help="Measure this machine's peaks first, where they are not known yet (8 s); see hwprof peaks.",
)
@click.option(
    "--try",
    "try_s",
    type=RealRange(min=0, min_open=True, max=LONGEST_S),
    is_flag=False,
    flag_value=TRY_S,
    metavar="[SECONDS]",
    help=f"Then try the remedies of what is found, for {TRY_S:.0f} s, or SECONDS, or as long as three processes of each"
    " take; see hwprof try.",
)
@click.option("--passes", default="measure,trace", show_default=True, metavar="LIST", help="Which passes, in order.")
@click.option(
    "--full",
    is_flag=True,
    help="All that works here together: the cache model, and line by line Scalene and cProfile too. Takes minutes.",
)
@click.option("--collectors", metavar="LIST", help="Only these collectors. Default: all that work here.")
@collector_options.switches
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
    help=_counters_help(),
)
@click.option("--user-only", is_flag=True, help="Hardware events count user code only, not the kernel's.")
@click.option(
    "--output",
    type=Folder(),
    default=Path("results"),
    show_default=True,
    metavar="DIR",
    help="Where runs are kept, each in a folder of its own.",
)
@click.option(
    "--keep-raw",
    is_flag=True,
    help="Keep the tools' own files (raw/) however large they are; else the largest go until 200 MB are left.",
)
@trace_limit(default=SLICES)
@click.option("--top", type=click.IntRange(1, MOST), default=8, show_default=True, help="Rows of the hottest layers.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="What is printed at the end.",
)
@width_option
def collect_command(
    iterations: int | None,
    time_s: float | None,
    precision_percent: float | None,
    warmup: int,
    wait_quiet_s: float | None,
    with_peaks: bool,
    try_s: float | None,
    passes: str,
    collectors: str | None,
    full: bool,
    events: str | None,
    counters: str,
    user_only: bool,
    output: Path,
    keep_raw: bool,
    trace_limit: int,
    top: int,
    form: str,
    width: int | None,
    variants: tuple[str, ...],
    **options: Any,
) -> None:
    """Measure a model layer by layer, and print the report.

    \b
    Examples:
      hwprof collect --model yolov7
      hwprof collect --model yolov8n --source photos/ --imgsz 320 --threads 1
      hwprof collect --model package.module:factory --input-shape 1,3,224,224
      hwprof collect --model yolov7 --weights yolov7.pt --passes measure
      hwprof collect --model yolov8n --variant channels_last,threads=2
      hwprof collect --model yolov7 --try
      hwprof collect --model yolov8n --time 60 --precision 1
      hwprof collect --model yolov7 --events cpi,cache,topdown
      hwprof collect --model yolov8n --events cycles,r20c7:u,cpu/event=0xc7,umask=0x80/u
      hwprof collect --model yolov8n --imgsz 320 --counters callgrind --cache-sim
      hwprof collect --model yolov8n --cache l2=2M/16,llc=64M/16

    A run is kept in a folder of its own: tables (Parquet, CSV), annotated images, and trace.pftrace for
    ui.perfetto.dev (hwprof open).
    """
    off = collector_options.switched_off(options)
    theirs = collector_options.chosen(options, _names)
    if full:
        theirs.add_full(off)
    variant = of_names(variants)
    names = [one.name for one in variant.ready]
    thread_numbers.check_told_once(options["threads"], names)
    thread_numbers.check_names(names, oversubscribe=options["oversubscribe"])
    spec = variant.of(workload_spec(**options))
    check_model(spec)
    check_variant(spec)
    require_room_to_measure(spec.threads)
    peaks = _peaks(spec) if with_peaks else None  # before anything else runs here
    server = _fork_server(spec.model)
    chosen = _names(collectors, "--collectors") if collectors is not None else None
    plans = _plan(
        chosen,
        _names(passes, "--passes"),
        _counting([*_names(counters, "--counters"), *theirs.asked_counters], events, user_only=user_only),
        asked=theirs.asked,
        iterations=iterations,
        time_s=time_s,
        precision=precision_percent / 100 if precision_percent is not None else None,
        warmup=warmup,
        off=off,
        options=theirs.options,
        passes_of=theirs.passes_of,
        wait_quiet_s=wait_quiet_s or 0.0,
    )
    plans = [msgspec.structs.replace(one, environment=variant.environment | one.environment) for one in plans]
    shown = products.Shown(form, top, width, trace_limit)
    failure = collection.carry_out(output, spec, plans, server, shown, peaks, try_s, keep_raw=keep_raw)
    if failure is not None:
        raise failure


def _peaks(spec: WorkloadSpec) -> Peaks:
    """Those of an earlier time, with as many threads as the workload has, or new ones."""
    from hwprof.cli.progress import Bars
    from hwprof.hardware import machine
    from hwprof.session import peaks

    of = machine.describe()
    threads = peaks.usual_threads(of)
    if spec.threads is not None and spec.threads <= max(threads):  # more have no core of their own
        threads = sorted({1, spec.threads})
    found = peaks.kept(of, threads)
    if found is not None:
        return found
    with Bars() as bars:
        return peaks.measure(of, threads, lambda what: bars.phase("peaks", what, None))


def _fork_server(model: str) -> ForkServer:
    """It imports torch while the passes are planned, so it is the first thing that is started; it ends with the
    command."""
    from hwprof.session.fork_server import ForkServer

    return click.get_current_context().with_resource(ForkServer(model))


def _counting(counters: Sequence[str], events: str | None, *, user_only: bool) -> Counting:
    from hwprof.hardware.syntax import parse
    from hwprof.session.counters import Counting

    return Counting(counters=list(counters), events=parse(events) if events is not None else None, user_only=user_only)


def _plan(
    chosen: Sequence[str] | None, passes: Sequence[str], counting: Counting, *, asked: Sequence[str], **further: Any
) -> Sequence[PassPlan]:
    """``chosen``: the only collectors that the user wants, if not all; ``asked``: those that options ask for;
    ``further``: see ``plan_passes``."""
    from hwprof.session.planner import plan_passes

    named = chosen or ()
    return plan_passes(registry.survey(chosen), passes, named=named, asked=asked, counting=counting, **further)
