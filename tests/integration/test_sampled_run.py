"""Samples in a run: ``hwprof collect`` with the sampler beside a small model."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from collectors.shared.symbols.jit import PERF_MAP, read_perf_map
from hwprof.run.directory import RunDirectory
from tests.support.bounds import RESTART_S, STOLEN_TICK_S, TICK_S, with_missed
from tests.support.command import collect, hwprof
from tests.support.requirements import missing, require_module, require_sampler

pytestmark = pytest.mark.alone

SMALL = ("--model", "yolov8n", "--imgsz", "320", "--iterations", "4", "--warmup", "1", "--threads", "2")
FREQUENCY_HZ = 2003


@pytest.fixture(scope="module", autouse=True)
def _needs() -> None:
    require_module("torch")
    require_module("ultralytics")
    require_sampler()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    place = tmp_path_factory.mktemp("sampled")
    return collect(place, *SMALL, "--collectors", "sampler", "--frequency", str(FREQUENCY_HZ))


def iterations(run: RunDirectory) -> pl.DataFrame:
    spans = run.read("spans").filter((pl.col("pass") == "trace") & (pl.col("kind") == "iteration"))
    return spans.select("iteration", "warmup", "begin_ns", "end_ns").sort("begin_ns")


def test_only_the_trace_pass_is_sampled(run: RunDirectory) -> None:
    assert run.read("samples")["pass"].unique().to_list() == ["trace"]
    measure, trace = run.manifest.passes
    assert [record.name for record in measure.collectors] == []
    (record,) = trace.collectors
    assert (record.name, record.state) == ("sampler", "ran")
    assert (record.detail["lost"], record.detail["torn_bytes"]) == (0, 0)
    assert record.detail["frequency_hz"] == FREQUENCY_HZ
    assert record.detail["samples"] == run.read("samples").height


def test_an_iterations_samples_stand_for_its_processor_time(run: RunDirectory) -> None:
    """Of all threads, by the kernel's own account of the whole process: hwprof's clock and the samples' are one."""
    table = iterations(run)
    samples = within(run.read("samples"), "time_ns", table)
    samples = with_missed(samples, run.read("switches"))
    switches = within(run.read("switches").drop_nulls("out_ns"), "out_ns", table)
    sampled = dict(samples.group_by("iteration").agg(pl.col("cpu_ns").sum()).iter_rows())
    restarts = dict(switches.group_by("iteration").len().iter_rows())
    cpu = run.read("counts").filter((pl.col("event") == "process-cpu-time") & (pl.col("pass") == "trace"))
    assert cpu.height == 4
    (_, trace) = run.manifest.passes
    # the sampling clock runs on while the hypervisor has the processor, and that is told in ticks
    stolen_ns = (trace.stolen_ns or 0) + 2e9 * STOLEN_TICK_S * bool(trace.stolen_ns)
    assert samples["missed_ns"].sum() < cpu["value"].sum() / 4, "then the bounds below would show little"
    for iteration, cpu_ns in cpu.select("iteration", "value").iter_rows():
        threads = samples.filter(iteration=iteration)["tid"].n_unique()
        cut_ns = 2 * threads * 1e9 / FREQUENCY_HZ  # the first and the last period of each
        charged_ns = (threads - 1) * 1e9 * TICK_S  # one that runs elsewhere is charged up to a tick later
        off_ns = cut_ns + charged_ns + 1e9 * RESTART_S * restarts.get(iteration, 0)
        missed_ns = samples.filter(iteration=iteration)["missed_ns"].sum()
        least_ns = cpu_ns - off_ns - missed_ns
        assert least_ns <= sampled[iteration] <= cpu_ns + off_ns + stolen_ns, iteration
    assert samples["tid"].n_unique() >= 2


def within(events: pl.DataFrame, time: str, table: pl.DataFrame) -> pl.DataFrame:
    """The events that lie in an iteration, with its number."""
    placed = events.sort(time).join_asof(table, left_on=time, right_on="begin_ns", strategy="backward")
    return placed.filter(pl.col(time) < pl.col("end_ns"))


def test_warm_up_is_sampled_and_what_comes_before_is_not(run: RunDirectory) -> None:
    first = iterations(run).row(0, named=True)
    assert first["warmup"]
    samples = run.read("samples")
    assert samples.filter(pl.col("time_ns").is_between(first["begin_ns"], first["end_ns"])).height > 10
    preparing = run.read("spans").filter((pl.col("pass") == "trace") & (pl.col("path") == "prepare"))
    assert samples.filter(pl.col("time_ns") < preparing["end_ns"][0]).is_empty()


def test_kernels_that_one_dnn_generated_can_be_named(run: RunDirectory) -> None:
    """Samples in memory without a file lie in code that the library's own map names."""
    kept = run.path / "raw/trace/sampler" / PERF_MAP
    if not kept.exists():
        missing("a oneDNN that generates code")
    kernels = [(known.start, known.end) for known in read_perf_map(kept.read_text())]
    anonymous = run.read("mappings").filter(pl.col("file") == "//anon")
    pieces = [(row["address"], row["address"] + row["size_bytes"]) for row in anonymous.iter_rows(named=True)]
    in_pieces = [
        address
        for address in run.read("samples").filter(pl.col("domain") == "user")["address"]
        if any(begin <= address < end for begin, end in pieces)
    ]
    named = [address for address in in_pieces if any(begin <= address < end for begin, end in kernels)]
    assert len(named) > 10
    assert len(named) >= 0.95 * len(in_pieces)


def test_the_measure_pass_is_sampled_where_that_is_wanted(tmp_path: Path) -> None:
    run = collect(tmp_path, *SMALL, "--collectors", "sampler", "--passes", "measure", "--sample-passes", "measure")
    samples = run.read("samples")
    assert samples["pass"].unique().to_list() == ["measure"]


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("--frequency", "50000000"), 1, "kernel.perf_event_max_sample_rate is"),
        (("--no-sampler", "--frequency", "99"), 2, "the collector sampler does not run"),
        (("--sample-passes", "mesure"), 2, "sampler cannot run in pass mesure"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_runs(
    tmp_path: Path, arguments: tuple[str, ...], code: int, says: str
) -> None:
    done = hwprof("collect", *SMALL, *arguments, cwd=tmp_path)
    assert done.returncode == code
    assert says in " ".join(done.stderr.split())
    assert not (tmp_path / "results").exists()
