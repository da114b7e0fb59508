"""``hwprof bench``: models, variants, sizes, batches and threads side by side."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from hwprof.cli import thread_numbers
from hwprof.cli.collector_options import GroupedCommand, chosen, declared_by, is_collectors
from hwprof.cli.folders import Folder, FolderOrUrl
from hwprof.cli.given import given
from hwprof.cli.model_options import bench_options, check_model, workload_spec
from hwprof.cli.numbers import RealRange
from hwprof.cli.room import require_room_to_measure
from hwprof.cli.text_width import width_option
from hwprof.cli.variants import check_variant, of_names
from hwprof.collector import registry
from hwprof.errors import HwprofError, UsageError
from hwprof.remedies import catalogue
from hwprof.run.roles import Role

if TYPE_CHECKING:
    from hwprof.bench.matrix import Case
    from hwprof.bench.store import Store

ROOT: Final = Path("results")
SIZES: Final = (32, 16384)
BATCHES: Final = (1, 4096)
WITH_RESUME: Final = frozenset({"resume", "address", "form", "width", "debug"})


def _list(text: str, what: str) -> list[str]:
    found = list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not found:
        raise UsageError(f"{what} names nothing", f"leave {what} out, or name one")
    return found


def _numbers(text: str, what: str, least: int, most: int) -> list[int]:
    found = []
    for part in _list(text, what):
        if not (part.isascii() and part.isdigit() and least <= int(part[:9]) <= most and len(part) < 9):
            raise UsageError(f"{what} {part}: whole numbers from {least} to {most:,}, by comma", f"{what} {least}")
        found.append(int(part))
    return list(dict.fromkeys(found))


@click.command("bench", cls=GroupedCommand)
@click.option("--models", metavar="LIST", help="By comma, as --model of hwprof collect takes them.  [default: yolov7]")
@click.option(
    "--variants",
    metavar="LIST",
    default="eager",
    show_default=True,
    help=f"By comma; several together with +: eager, {', '.join(catalogue.names())}.",
)
@click.option("--imgsz", "sizes", metavar="LIST", help="Longer sides, pixels. Default: 640; of classifiers 224.")
@click.option("--batch", "batches", metavar="LIST", default="1", show_default=True, help="Images a forward.")
@click.option("--threads", metavar="LIST", help="Intra-op threads. Default: torch's own choice.")
@bench_options
@click.option("--processes", type=click.IntRange(1, 1000), default=3, show_default=True, help="Of each case.")
@click.option("--values", type=click.IntRange(1, 10_000), default=10, show_default=True, help="Of each process.")
@click.option("--warmups", type=click.IntRange(0, 1000), default=1, show_default=True, help="Values before these.")
@click.option(
    "--min-time",
    "min_time_s",
    type=RealRange(min=0, min_open=True, max=3600),
    default=0.1,
    show_default=True,
    metavar="SECONDS",
    help="Of a value: it is of as many iterations as take so long.",
)
@click.option(
    "--timeout",
    "timeout_s",
    type=click.IntRange(1, 1_000_000),
    default=1800,
    show_default=True,
    metavar="SECONDS",
    help="A process that takes longer is given up.",
)
@click.option("--peaks / --no-peaks", "with_peaks", default=True, show_default=True, help="As in hwprof collect.")
@click.option(
    "--resume",
    type=FolderOrUrl(),
    metavar="FOLDER",
    help="Go on with a bench that was ended, or with the copy of one (URL/bench-DATE-TIME-DIGITS, as it is named below"
    " --store): the cases that are not done. Of a copy, a power meter is given again, if it had one.",
)
@click.option(
    "--on",
    "address",
    metavar="ADDRESS",
    help="Of a Ray cluster: auto, HOST:PORT or ray://HOST:PORT. Its machines with the resource hwprof do one case at a"
    " time each. Default: this machine.",
)
@click.option(
    "--store",
    "url",
    metavar="URL",
    help="A copy of all of it is kept below a URL that fsspec knows, each case when it is done: s3://bucket/benches,"
    " file:///mnt/benches.",
)
@click.option("--output", type=Folder(), default=ROOT, show_default=True, metavar="DIR", help="Where it is kept.")
@click.option(
    "--format", "form", type=click.Choice(["text", "json", "csv", "markdown"]), default="text", show_default=True
)
@declared_by(Role.ENERGY)
@width_option
def bench_command(
    models: str | None,
    variants: str,
    sizes: str | None,
    batches: str,
    threads: str | None,
    processes: int,
    values: int,
    warmups: int,
    min_time_s: float,
    timeout_s: int,
    with_peaks: bool,
    resume: Path | str | None,
    url: str | None,
    address: str | None,
    output: Path,
    form: str,
    width: int | None,
    **options: Any,
) -> None:
    """Compare models, variants, sizes, batches and threads: latency, throughput, size, share of the machine's peak.

    Every combination is a case. pyperf measures each in fresh processes, with calibration and warm-up; its own files
    are kept. One that is ended goes on with --resume. Exit code 0 if at least one could be measured, or else 1;
    failure in --format json says why one could not.

    \b
    Examples:
      hwprof bench --models yolov5n,yolov5s,yolov5m,yolov5l,yolov5x
      hwprof bench --models yolov8n --variants eager,channels_last,compile,channels_last+bfloat16
      hwprof bench --models yolov8n --batch 1,2,4,8 --threads 1,2
      hwprof bench --models package.module:factory --variants eager,torchscript --format markdown
      hwprof bench --resume results/bench-20261129-120000
      hwprof bench --models yolov5n,yolov5s --on auto
      python -m pyperf compare_to results/bench-A/pyperf.json results/bench-B/pyperf.json --table
    """
    from hwprof.bench.cluster import require_reachable
    from hwprof.bench.mirror import check as check_url
    from hwprof.bench.process import require_pyperf
    from hwprof.bench.store import Settings
    from hwprof.cli import bench_session

    require_pyperf()
    if address is not None:
        require_reachable(address)
    if resume is not None:
        _refuse_others(of_copy=isinstance(resume, str))
        store = bench_session.opened(resume, output, _power(options), here=address is None)
    else:
        if url is not None:
            check_url(url)
        power = _power(options)
        cases = _cases(models, variants, sizes, batches, threads, options)
        if address is None:  # a cluster's machines may have more processors
            _check_threads(cases)
        settings = Settings(
            processes=processes,
            values=values,
            warmups=warmups,
            min_time_s=min_time_s,
            timeout_s=timeout_s,
            peaks=with_peaks,
            power=power,
        )
        store = _new(output, cases, settings, url, with_peaks=with_peaks and address is None)
    try:
        bench_session.carry_out(store, form, width, address)
    except HwprofError:
        bench_session.discard_unbegun(store)
        raise


def _power(options: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Takes the options of those that read energy out of the command's. Raises ``UsageError``."""
    found = chosen(options, _list).options
    for name, theirs in found.items():
        registry.create(name).check_options(theirs)
    return found


def _cases(
    models: str | None, variants: str, sizes: str | None, batches: str, threads: str | None, options: dict[str, Any]
) -> list[Case]:
    from hwprof.bench.matrix import Case, cases
    from hwprof.workload.spec import WorkloadSpec

    several = [of_names([name.replace("+", ",")]) for name in _list(variants, "--variants")]
    plain = WorkloadSpec(model="")
    ways = [Case(workload=one.of(plain), environment=one.environment) for one in several]
    numbers = [None] if threads is None else _numbers(threads, "--threads", 1, thread_numbers.MOST)
    lengths = [None] if sizes is None else _numbers(sizes, "--imgsz", *SIZES)
    bases = []
    for model in _list(models, "--models") if models is not None else ["yolov7"]:
        base = workload_spec(model=model, imgsz=None, batch=1, threads=None, oversubscribe=False, **options)
        check_model(base)
        bases.append(base)
    own = [base.model for base in bases if ":" in base.model]
    if len(own) == len(bases) and (given("sizes") or given("batches")):
        unheeded = "--imgsz" if given("sizes") else "--batch"
        raise UsageError(f"{unheeded}: only for YOLO pipelines", "a model of yours gets --input-shape or --input")
    found = cases(bases, ways, lengths, _numbers(batches, "--batch", *BATCHES), numbers)
    for case in found:
        check_variant(case.workload)
    return found


def _check_threads(cases: Sequence[Case]) -> None:
    """Raises ``UsageError`` for more threads than this machine has a use for, ``HwprofError`` where it has no room."""
    for case in cases:
        thread_numbers.check_names(case.workload.variants)
    for threads in dict.fromkeys(case.workload.threads for case in cases):
        if threads is not None:
            thread_numbers.check_threads(threads)
        require_room_to_measure(threads)


def _new(output: Path, cases: Sequence[Case], settings: Any, url: str | None, *, with_peaks: bool) -> Store:
    from hwprof.bench.store import Plan, Store
    from hwprof.cli.progress import Bars
    from hwprof.hardware import machine
    from hwprof.session import peaks

    of = machine.describe()
    found = None
    if with_peaks:
        known = peaks.usual_threads(of)
        asked = {case.workload.threads or max(known) for case in cases}
        wanted = sorted({1, *(min(number, max(known)) for number in asked)})
        found = peaks.kept(of, wanted)
        if found is None:
            with Bars() as bars:
                found = peaks.measure(of, wanted, lambda what: bars.phase("peaks", what, None))
    plan = Plan(
        created=datetime.now().astimezone().isoformat(timespec="seconds"),
        command=["hwprof", *sys.argv[1:]],
        folder=str(Path.cwd()),
        machine=of,
        peaks=found,
        settings=settings,
        store=url,
        cases=list(cases),
    )
    return Store.create(output, plan)


def _refuse_others(*, of_copy: bool) -> None:
    """Raises ``UsageError`` for options beside ``--resume`` that the bench has had from its start. Of a copy the user
    says where it is kept from now on, and which meter is read: it may be a stranger's."""
    context = click.get_current_context()
    asked = [one for one in context.command.params if one.name is not None and given(one.name)]
    of_copies = [one for one in asked if of_copy and (one.name == "output" or is_collectors(one))]
    others = [one.opts[-1] for one in asked if one.name not in WITH_RESUME and one not in of_copies]
    if others:
        raise UsageError(f"{', '.join(others)}: a bench that goes on has those of its start", "--resume FOLDER alone")
