"""Threads and waiting in the report: who waited, for whom, and what could not have gone on without."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import msgspec
import polars as pl
import pytest
from rich.cells import cell_len
from rich.console import Console

from hwprof.analysis.owners import WHOLE
from hwprof.report.csv import threads as waiting_table
from hwprof.report.document import builder
from hwprof.report.document.document import Document
from hwprof.report.document.kernels import Kernels
from hwprof.report.document.layers import Layers
from hwprof.report.document.threads import Threads, ThreadTimes
from hwprof.report.json import codec
from hwprof.report.text import layer_rows
from hwprof.report.text import layers as layers_view
from hwprof.report.text import threads as waiting_view
from hwprof.report.text.columns import metric_columns
from hwprof.report.text.page import Page
from hwprof.run.directory import RunDirectory, write_table
from tests.support import synthetic_variants as runs
from tests.support.document_parts import csv_frames, part, replaced
from tests.support.document_parts import layer_rows as rows_of
from tests.support.rounded import is_same
from tests.support.sampled_report import printed as printed_layer
from tests.support.snapshots import assert_snapshot
from tests.support.synthetic_samples import BARRIER, JIT, MAIN, PERIOD_NS, WORKER

CONV = "model.1.cv1.conv"
READ_NS = 40_000


def waits(root: Path, *, reasons: bool = True) -> RunDirectory:
    """In convolutions the calling thread waits for the worker from the middle on; everywhere else it reads a file for
    a while. ``reasons``: whether it is known what threads wait for."""
    run = runs.sampled(root)
    calls = run.read("spans").filter((pl.col("pass") == "trace") & (pl.col("kind") == "layer"))
    convs = calls.filter(pl.col("path").str.ends_with(".conv")).sort("begin_ns")
    samples = run.read("samples").sort("time_ns")
    middle = convs.select("begin_ns", "end_ns", middle_ns=(pl.col("begin_ns") + pl.col("end_ns")) // 2)
    placed = samples.join_asof(middle, left_on="time_ns", right_on="begin_ns", strategy="backward")
    in_conv, late = pl.col("time_ns") < pl.col("end_ns"), pl.col("time_ns") >= pl.col("middle_ns")
    calling = pl.col("tid") == MAIN
    kernel = pl.when(in_conv & calling & late).then(BARRIER).when(in_conv & ~calling).then(JIT).otherwise("kernel")
    write_table(run.path / "samples.parquet", "samples", placed.with_columns(kernel=kernel).select(samples.columns))
    acts = calls.filter(pl.col("path").str.ends_with(".act"))
    read = acts.select(
        "pass",
        "pid",
        "tid",
        out_ns="begin_ns",
        in_ns=pl.col("begin_ns") + READ_NS,
        out_cpu=pl.lit(0, pl.Int32),
        in_cpu=pl.lit(0, pl.Int32),
        preempted=pl.lit(False),
        reason=pl.lit("I/O"),
        function=pl.lit("read"),
    )
    switches = pl.concat(
        [run.read("switches").cast({"reason": pl.String, "function": pl.String}), read], how="diagonal"
    )
    if not reasons:
        switches = switches.with_columns(reason=pl.lit(None, pl.String), function=pl.lit(None, pl.String))
        run.manifest.passes[1].collectors[-1].detail["reasons"] = False
        run.save_manifest()
    write_table(run.path / "switches.parquet", "switches", switches)
    return run


def of(built: Document) -> Threads:
    return part(built, Threads)


def printed(built: Document, width: int) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False, markup=False, emoji=False)
    waiting_view.show(Page(built, console))
    assert isinstance(console.file, io.StringIO)
    return "".join(f"{line.rstrip()}\n" for line in console.file.getvalue().splitlines())


def test_the_path_lies_on_the_worker_where_the_calling_thread_waits(tmp_path: Path) -> None:
    waiting = of(builder.build(waits(tmp_path)))
    calling, worker = waiting.threads
    assert (calling.tid, calling.role, worker.tid, worker.role) == (MAIN, "calling", WORKER, "team")
    assert calling.waiting_ns > 0.2 * waiting.elapsed_ns
    assert worker.path_ns == pytest.approx(calling.waiting_ns, rel=0.01)
    assert calling.path_ns + worker.path_ns == pytest.approx(waiting.elapsed_ns)
    (layer,) = [layer for layer in waiting.layers if layer.path == CONV]
    shares = {(one.tid, one.state): one.share for one in layer.critical_path}
    assert shares == pytest.approx({(MAIN, "busy"): 0.5, (WORKER, "busy"): 0.5}, abs=0.03)
    for one in layer.critical_path:
        assert one.share_low < one.share < one.share_high


def test_times_are_exact_where_switches_tell_them(tmp_path: Path) -> None:
    run = waits(tmp_path)
    waiting = of(builder.build(run))
    acts = run.read("spans").filter((pl.col("pass") == "trace") & pl.col("path").str.ends_with(".act"))
    last = acts.filter(pl.col("iteration") == acts["iteration"].max())
    assert waiting.threads[0].blocked_ns == {"I/O": last.height * READ_NS}
    assert [one.ns for one in waiting.critical_path if one.state == "I/O"] == [last.height * READ_NS]


def test_every_threads_time_adds_up_in_json_and_csv(tmp_path: Path) -> None:
    built = builder.build(waits(tmp_path))
    assert is_same(codec.decode(codec.encode(built)).part(Threads), built.part(Threads))
    waiting = of(built)
    for one in waiting.threads:
        assert sum(waiting_table.states(one).values()) == pytest.approx(waiting.elapsed_ns)
    frame = csv_frames(built)[waiting_table.FILE]
    whole = frame.filter(pl.col("iteration").is_null() & pl.col("layer").is_null())
    sums = whole.group_by("what", "tid").agg(pl.col("time_ns").sum(), pl.col("share_ratio").sum())
    by_what = dict(sums.group_by("what").agg(pl.col("share_ratio").sum()).iter_rows())
    assert by_what == pytest.approx({"thread": len(waiting.threads), "path": 1})
    for (number,), rows in frame.drop_nulls("iteration").group_by(["iteration"]):
        (iteration,) = [one for one in waiting.by_iteration if one.iteration == number]
        assert rows["time_ns"].sum() == pytest.approx(iteration.elapsed_ns)


def test_the_path_may_lead_to_a_thread_that_no_sample_hit(tmp_path: Path) -> None:
    """It has no row among the threads."""
    built = builder.build(waits(tmp_path))
    unsampled = msgspec.structs.replace(of(built).critical_path[0], tid=4711)
    built = replaced(built, msgspec.structs.replace(of(built), critical_path=[unsampled]))
    (row,) = csv_frames(built)[waiting_table.FILE].filter(tid=4711).to_dicts()
    assert (row["what"], row["thread"], row["role"], row["time_ns"]) == ("path", None, None, unsampled.ns)
    assert "other thread" in printed(built, 120)


def test_waits_are_said_to_be_of_the_threads_that_they_are_of(tmp_path: Path) -> None:
    """Those of threads without a sample, which have no row, are on a line of their own."""
    built = builder.build(waits(tmp_path))
    threads = of(built)
    assert (threads.unsampled_threads, threads.unsampled_blocked_ns) == (0, {})
    more = {"I/O": 0.5 * threads.elapsed_ns, "blocked": 0.2 * threads.elapsed_ns}
    built = replaced(built, msgspec.structs.replace(threads, unsampled_threads=3, unsampled_blocked_ns=more))
    sampled, others = (line.strip() for line in printed(built, 160).splitlines() if line.startswith("  blocked, "))
    assert sampled.startswith("blocked, 2 sampled threads: ")
    whose, _, what = others.partition(": ")
    assert whose == "blocked, 3 threads without samples"
    assert [one.split()[0] for one in what.split(", ")] == ["I/O", "unknown"]


def test_what_nobody_could_know_is_said_with_its_remedy(tmp_path: Path) -> None:
    built = builder.build(waits(tmp_path, reasons=False))
    missing = of(built).reasons_missing
    assert missing is not None and missing.remedy == "sudo sysctl kernel.perf_event_paranoid=1"
    assert f"not available: {missing.reason}. Try: {missing.remedy}" in " ".join(printed(built, 160).split())
    assert of(builder.build(waits(tmp_path / "known"))).reasons_missing is None


def test_without_samples_there_is_no_section(tmp_path: Path) -> None:
    built = builder.build(runs.xeon(tmp_path))
    assert built.part(Threads) is None
    assert printed(built, 80) == ""


def test_without_enough_samples_no_layer_is_judged(tmp_path: Path) -> None:
    run = waits(tmp_path)
    samples = run.read("samples").sort("tid", "time_ns")
    few = samples.gather_every(14).with_columns(cpu_ns=pl.lit(14 * PERIOD_NS, pl.Int64))
    write_table(run.path / "samples.parquet", "samples", few)
    built = builder.build(run)
    assert of(built).layers == []
    text = printed(built, 80)
    assert "Threads in the hottest layers" not in text
    assert len([line for line in text.splitlines() if "under 10 samples" in line]) == 1


def without_the_calling_thread(run: RunDirectory, *, off: bool) -> RunDirectory:
    """In ``CONV`` the worker alone is sampled, while the calling thread waits for a lock (``off``) or runs unseen."""
    calls = run.read("spans").filter((pl.col("pass") == "trace") & (pl.col("path") == CONV))
    samples, begins = run.read("samples").sort("time_ns"), calls.select("begin_ns", "end_ns").sort("begin_ns")
    placed = samples.join_asof(begins, left_on="time_ns", right_on="begin_ns", strategy="backward")
    in_conv = (pl.col("time_ns") < pl.col("end_ns")).fill_null(False)
    left = placed.filter(~in_conv | (pl.col("tid") != MAIN)).select(samples.columns)
    write_table(run.path / "samples.parquet", "samples", left)
    if off:
        away = run.read("switches").head(1).with_columns(tid=pl.lit(MAIN, pl.Int32), reason=pl.lit("lock"))
        locked = calls.select(out_ns="begin_ns", in_ns="end_ns").join(away.drop("out_ns", "in_ns"), how="cross")
        table = pl.concat([run.read("switches"), locked.with_columns(preempted=pl.lit(False))], how="diagonal_relaxed")
        write_table(run.path / "switches.parquet", "switches", table)
    return run


@pytest.mark.parametrize("off", [True, False])
def test_a_layer_is_judged_by_the_samples_of_all_its_threads(tmp_path: Path, off: bool) -> None:
    """As that of a pool, for which the calling thread only waits: exactly known. What it did unseen nobody knows."""
    built = builder.build(without_the_calling_thread(runs.sampled(tmp_path), off=off))
    (sampled,) = [layer for layer in part(built, Kernels).layers if layer.path == CONV]
    assert [thread.samples for thread in sampled.threads if thread.tid == MAIN] in ([], [0])
    (layer,) = [layer for layer in of(built).layers if layer.path == CONV]
    assert layer.samples == 0 and sampled.samples >= of(built).few_samples
    assert {one.tid for one in layer.critical_path} == ({WORKER} if off else set())
    assert {one.cause for one in layer.critical_path} == ({"lock"} if off else set())
    listed = [line for line in printed(built, 120).splitlines() if line.startswith(CONV)]
    assert len(listed) == 1


def test_threads_of_equal_roles_are_told_apart(tmp_path: Path) -> None:
    built = builder.build(waits(tmp_path))
    calling, worker = of(built).threads
    third = msgspec.structs.replace(worker, tid=4202, name=None)
    twice = replaced(built, msgspec.structs.replace(of(built), threads=[calling, worker, third]))
    assert f"worker {WORKER} at work" in " ".join(printed(twice, 120).split())


def test_a_thread_that_was_not_there_in_all_iterations_says_so(tmp_path: Path) -> None:
    built = builder.build(waits(tmp_path))
    calling, worker = of(built).threads
    assert "iterations: in which" not in printed(built, 120)
    always = msgspec.structs.replace(calling, iterations=5)
    once = msgspec.structs.replace(worker, iterations=1)
    threads = msgspec.structs.replace(of(built), iterations=5, threads=[always, once])
    lines = printed(replaced(built, threads), 120).splitlines()
    assert [line for line in lines if "5 of 5" in line and line.startswith("calling")]
    (rare,) = [line for line in lines if "1 of 5" in line]
    assert rare.startswith("worker")


def test_a_crowded_machine_is_told(tmp_path: Path) -> None:
    built = builder.build(waits(tmp_path))
    assert "\n  preempted " not in printed(built, 120)
    calling, worker = of(built).threads
    assert calling.shares_work and worker.shares_work
    quarter = msgspec.structs.replace(calling, preempted_ns=of(built).elapsed_ns / 4)
    others = msgspec.structs.replace(worker, preempted_ns=of(built).elapsed_ns / 2)

    def crowded(*threads: ThreadTimes) -> str:
        return printed(replaced(built, msgspec.structs.replace(of(built), threads=list(threads))), 120)

    assert "\n  preempted 37.5% of 2 threads" in crowded(quarter, others)
    idle = msgspec.structs.replace(others, shares_work=False)
    assert "\n  preempted 25.0% of the calling thread" in crowded(quarter, idle)
    pool = msgspec.structs.replace(others, role="other")
    assert "\n  preempted 37.5% of 2 threads" in crowded(quarter, pool), "the threads that efficiency is of"


def test_hardwares_figures_of_layers_that_wait_are_marked(tmp_path: Path) -> None:
    """And those of layers that work are not, nor is what does not rest on instructions."""
    built = builder.build(waits(tmp_path))
    assert set(of(built).contaminated_layers) == {"model.0.conv", CONV, WHOLE}
    page = Page(built, Console(width=200))
    columns = {column.key: column.cells for column in metric_columns(rows_of(built), page)}
    marked = {layer.path for layer, cell in zip(rows_of(built), columns["cpi"], strict=True) if cell.endswith("w")}
    assert marked == {"model.0.conv", CONV}
    assert not any(cell.endswith("w") for cell in columns["frequency"])


@pytest.mark.parametrize("make", [runs.without_pmu, runs.sampled_without_pmu])
def test_a_layers_name_is_no_mark(tmp_path: Path, make: Callable[[Path], RunDirectory]) -> None:
    """A name that ends in "w" says nothing of spinning, with samples and without."""
    built = builder.build(make(tmp_path))
    rows = [msgspec.structs.replace(layer, path=f"{layer.path}.fc_w") for layer in rows_of(built)]
    layers = msgspec.structs.replace(part(built, Layers), rows=rows)
    hottest = msgspec.structs.replace(built.hottest, layers=[layer.path for layer in rows])
    renamed = msgspec.structs.replace(replaced(built, layers), hottest=hottest)
    console = Console(file=io.StringIO(), width=120)
    layers_view.show(Page(renamed, console))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "fc_w" in text
    assert "contaminated" not in text


def test_more_busy_threads_than_asked_for_share_the_work(tmp_path: Path) -> None:
    """As a pool that the model made for itself: never more than all of the time, and off it only those that share."""
    run = waits(tmp_path)
    assert run.manifest.workload is not None
    run.manifest.workload.threads = 1
    for record in run.manifest.passes:
        record.threads = 1
    run.save_manifest()
    built = builder.build(run)
    assert (of(built).threads_asked, of(built).threads_sharing) == (1, 2)
    assert 0 < (of(built).efficiency or 0) <= 1
    for layer in part(built, Kernels).layers:
        assert layer.imbalance is None or layer.imbalance >= 0
    assert "busy / (2 threads x elapsed time, 1 asked for)" in printed(built, 120)


def test_layers_that_were_never_called_are_not_among_those_that_could_be_listed(tmp_path: Path) -> None:
    """As on an encoder's fast path: "2 of 19" asked for more samples of 16 layers that never ran."""
    built = builder.build(waits(tmp_path))
    layers = part(built, Layers)
    uncalled = [
        msgspec.structs.replace(row, path=f"never.{number}", calls=None, time=None)
        for number, row in enumerate(layers.rows)
    ]
    more = replaced(built, msgspec.structs.replace(layers, rows=[*layers.rows, *uncalled]))
    (title,) = [line for line in printed(built, 120).splitlines() if line.startswith("Threads in the hottest layers")]
    assert title in printed(more, 120).splitlines()


@pytest.mark.parametrize("width", [80, 120])
def test_text_snapshots(tmp_path: Path, width: int) -> None:
    text = printed(builder.build(waits(tmp_path)), width)
    assert max(map(cell_len, text.splitlines())) <= width
    assert_snapshot(f"threads-{width}", text)


@pytest.mark.parametrize(("of_all", "idle"), [(1.0, True), (0.9, False)])
def test_a_thread_that_did_nothing_has_no_waits_to_tell(tmp_path: Path, of_all: float, idle: bool) -> None:
    built = builder.build(waits(tmp_path))
    threads = of(built)
    blocked = {"condition": 2 * of_all * threads.elapsed_ns}
    built = replaced(built, msgspec.structs.replace(threads, unsampled_threads=2, unsampled_blocked_ns=blocked))
    text = printed(built, 160)
    assert ("idle throughout: 2 threads (condition)" in text) is idle
    assert ("blocked, 2 threads without samples: condition" in text) is not idle


def test_more_than_all_of_the_time_is_all_of_it(tmp_path: Path) -> None:
    """Busy time is of samples, elapsed time of the clock."""
    built = builder.build(waits(tmp_path))
    kernels = part(built, Kernels)
    over = [msgspec.structs.replace(layer, efficiency=1.04) for layer in kernels.layers]
    built = replaced(built, msgspec.structs.replace(kernels, layers=over))
    text = printed(replaced(built, msgspec.structs.replace(of(built), efficiency=1.02)), 160)
    assert "parallel efficiency 100.0% =" in text
    assert "104%" not in text and "100%" in text


@pytest.mark.parametrize("ratio", [1 / 1.4, 1.4, 2.5, 0.4])
def test_layers_that_the_trace_pass_saw_at_other_work_are_named(tmp_path: Path, ratio: float) -> None:
    built = builder.build(waits(tmp_path))
    found = part(built, Layers)
    medians_ns = {row.path: row.time.median_ns for row in found.rows if row.time is not None}
    threads = part(built, Threads)
    met = [
        msgspec.structs.replace(row, elapsed_ns=medians_ns.get(row.path, 1) * (ratio if row.path == CONV else 1.0))
        for row in threads.layers
    ]
    built = replaced(built, msgspec.structs.replace(threads, layers=met))
    apart = not 1 / layer_rows.APART < ratio < layer_rows.APART
    words = f"pass trace took another time than the tables of layers have: {CONV} ×{ratio:.2f}"
    assert (words[:-1] in " ".join(printed(built, 160).split())) is apart
    assert ("in pass trace, which kernels and threads are of" in printed_layer(built, 160, CONV)) is apart
    sampled = msgspec.structs.replace(part(built, Kernels), pass_name="measure")
    assert "pass trace" not in printed(replaced(built, sampled), 160).partition("Threads in the hottest layers")[2]
