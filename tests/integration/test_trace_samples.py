"""Samples in the real trace processor: every sample with its call stack, and what ran as slices below the layers."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from hwprof.analysis.samples import attribute_samples
from hwprof.run.directory import RunDirectory
from hwprof.trace import pass_writer, sample_tracks
from hwprof.trace.time_windows import windows
from hwprof.trace.writer import write_trace
from tests.support import machine_peaks, perfetto, synthetic_model, synthetic_run, synthetic_samples
from tests.support.command import collect
from tests.support.requirements import require_module, require_sampler
from tests.support.synthetic_samples import KERNELS, MAIN, PERIOD_NS, WORKER
from tests.support.traced import ROOTED, argument_names, needs_no_quotation_marks

pytestmark = pytest.mark.alone

if TYPE_CHECKING:
    from tests.support.perfetto.trace_processor import TraceProcessor

STACKS = """select s.ts, t.tid, s.cpu, c.depth, f.name, o.name as caller, m.name as file, f.rel_pc from perf_sample s
            join thread t using (utid) join stack_profile_callsite c on s.callsite_id = c.id
            join stack_profile_frame f on c.frame_id = f.id join stack_profile_mapping m on f.mapping = m.id
            left join stack_profile_callsite p on c.parent_id = p.id left join stack_profile_frame o
            on p.frame_id = o.id"""
SLICES = """select s.ts, s.dur, s.depth, s.name, s.category, t.name as track,
            extract_arg(arg_set_id, 'debug.samples') n, extract_arg(arg_set_id, 'debug.cpu_ms') cpu_ms,
            extract_arg(arg_set_id, 'debug.cpi') cpi, extract_arg(arg_set_id, 'debug.llc_misses') misses,
            extract_arg(arg_set_id, 'debug.library') library, extract_arg(arg_set_id, 'debug.function') function
            from slice s join track t on s.track_id = t.id where t.name glob 'kernels*' order by s.ts, t.name, s.id"""
ROOTS = r"(?:/\[unmeasured\] (\S+) > )?/\[layer\] (\S+(?: \(own\))?) > (?:/\[operator\] (\S+) > )?/(?!\[operator)"
FLOWS = """select a.name as layer, a.ts, b.ts as target_ts, b.dur, b.name from flow f
           join slice a on f.slice_out = a.id join slice b on f.slice_in = b.id join track t
           on b.track_id = t.id where t.name glob 'kernels*' order by 2"""


class Traced:
    def __init__(self, run: RunDirectory, target: Path) -> None:
        self.run, self.path = run, target
        self.summary = write_trace(run, target)
        self.processor: TraceProcessor = perfetto.load(target)
        self.to_boottime = run.manifest.clock.boottime_ns - run.manifest.clock.monotonic_ns
        self.samples = run.read("samples")

    def slices(self, tid: int) -> list[dict[str, Any]]:
        track = "kernels (trace)" if tid == MAIN else f"kernels of omp-1 {tid} (trace)"
        return [row for row in self.processor.query(SLICES) if row["track"] == track]


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Traced]:
    root = tmp_path_factory.mktemp("samples")
    run = synthetic_run.build(root)
    synthetic_samples.add(run)
    synthetic_samples.add_primitives(run)
    run.manifest.peaks = machine_peaks.FOUND
    run.save_manifest()
    yield Traced(run, root / "trace.pftrace")


def test_every_sample_is_there_with_its_thread_and_kernel(traced: Traced) -> None:
    assert traced.processor.complaints() == []
    found = Counter((row["ts"] - traced.to_boottime, row["tid"], row["cpu"], row["name"]) for row in samples_of(traced))
    assert found == Counter(
        (time_ns, tid, cpu, KERNELS[kernel][2] or KERNELS[kernel][1])
        for time_ns, tid, cpu, kernel in traced.samples.select("time_ns", "tid", "cpu", "kernel").iter_rows()
    )


def samples_of(traced: Traced) -> list[dict[str, Any]]:
    return traced.processor.query(STACKS)


def test_a_stack_stands_on_its_callers_and_a_frame_in_its_file(traced: Traced) -> None:
    rows = {row["name"]: row for row in samples_of(traced)}
    conv = rows["jit_conv_fwd"]
    assert (conv["depth"], conv["caller"]) == (4, "at::native::silu_kernel")
    silu = rows["at::native::silu_kernel"]
    assert (silu["depth"], silu["caller"]) == (2, "aten::silu_")
    assert (silu["file"], silu["rel_pc"]) == ("/lib/libtorch_cpu.so", 0x100)


def test_flame_graphs_stand_on_the_reports_layers_and_their_operators(traced: Traced) -> None:
    """Every sample's roots are those that the report gives it; of warm-up there is no layer among the measured ones."""
    found = Counter(re.match(ROOTS, row["frames"]).groups() for row in traced.processor.query(ROOTED))  # type: ignore[union-attr]
    record = traced.run.manifest.passes[1]
    spans = traced.run.read("spans").filter(pl.col("pass") == record.name)
    placed = attribute_samples(traced.samples, spans, traced.run.read("layers"))
    rows = placed.select("iteration", pl.col("layer", "operator").cast(pl.String)).iter_rows()
    expected = Counter(("warm-up" if iteration == 0 else None, layer, operator) for iteration, layer, operator in rows)
    assert found == expected
    assert {layer for warm_up, layer, operator in found if operator and not warm_up} >= {"model.0.conv", "model.0.act"}
    assert sum(number for (warm_up, _, _), number in found.items() if warm_up) > 10


def test_counts_grow_by_what_each_sample_stands_for(traced: Traced) -> None:
    rows = traced.processor.query(
        "select t.name, t.cpu, max(c.value) as total, count(*) as n from counter c join perf_counter_track t"
        " on c.track_id = t.id group by 1, 2"
    )
    found = {(row["name"], row["cpu"]): (row["total"], row["n"]) for row in rows}
    columns = {"cycles": "period", "instructions": "instructions", "llc-misses": "llc_misses"}
    for name, column in columns.items():
        for (cpu,), mine in traced.samples.group_by("cpu"):
            assert found[name, cpu] == (mine[column].sum(), len(mine))
    assert len(found) == len(columns) * 2


def test_slices_hold_every_sample_once_and_stay_in_their_layers(traced: Traced) -> None:
    layers = traced.run.read("spans").filter((pl.col("pass") == "trace") & (pl.col("kind") == "layer"))
    leaves = [row for row in layers.iter_rows(named=True) if synthetic_model.is_leaf(row["path"])]
    for tid in (MAIN, WORKER):
        ran = [row for row in traced.slices(tid) if row["category"] != "off-cpu"]
        mine = traced.samples.filter(tid=tid)
        assert sum(row["n"] for row in ran) == len(mine)
        assert sum(row["cpu_ms"] for row in ran) == pytest.approx(int(mine["cpu_ns"].sum()) / 1e6)
        assert sum(row["misses"] for row in ran) == mine["llc_misses"].sum()
        for row in ran[:-1] if tid == MAIN else ran:
            end = row["ts"] + row["dur"] - traced.to_boottime
            (layer,) = [leaf for leaf in leaves if leaf["begin_ns"] <= end < leaf["end_ns"]]
            assert layer["begin_ns"] < row["ts"] - traced.to_boottime
        assert {row["depth"] for row in traced.slices(tid)} == {0}
    convolutions = sum(leaf["path"].endswith(".conv") for leaf in leaves)
    assert len([row for row in traced.slices(MAIN) if row["name"] == "jit_conv_fwd"]) == convolutions


def test_cycles_per_instruction_are_those_of_the_samples(traced: Traced) -> None:
    found = {row["name"]: row["cpi"] for row in traced.slices(MAIN)}
    assert found["at::native::silu_kernel"] == pytest.approx(2.8)
    assert found["jit_conv_fwd"] == pytest.approx(280_001 / 200_000)


def test_waiting_and_time_off_the_processor_are_drawn_as_such(traced: Traced) -> None:
    rows = traced.slices(WORKER)
    assert {(row["name"], row["category"], row["library"], row["function"]) for row in rows} == {
        ("jit_conv_fwd", "jit", "jit", None),
        ("waiting (OpenMP)", "waiting", "libgomp.so.1", None),
        ("off-CPU, blocked", "off-cpu", None, None),
        ("off-CPU: barrier", "off-cpu", None, "gomp_team_barrier_wait_end"),
    }
    off = [(row["ts"] - traced.to_boottime, row["dur"]) for row in rows if row["category"] == "off-cpu"]
    whole = traced.run.read("switches").drop_nulls(["out_ns", "in_ns"])
    assert off == [(out, back - out) for out, back in whole.select("out_ns", "in_ns").iter_rows()]


def test_primitives_stand_below_their_layers(traced: Traced) -> None:
    query = """select s.ts, s.dur, s.name, s.category, extract_arg(arg_set_id, 'debug.implementation') implementation,
               extract_arg(arg_set_id, 'debug.problem') problem from slice s join track t on s.track_id = t.id
               where t.name = 'oneDNN primitives (trace)' order by 1"""
    expected = [
        (row["begin_ns"], row["time_ns"], f"{row['primitive']} {row['implementation']}", row["primitive"],
         row["implementation"], row["problem"])
        for row in traced.run.read("primitives").iter_rows(named=True)
    ]  # fmt: skip
    found = [(row.pop("ts") - traced.to_boottime, *row.values()) for row in traced.processor.query(query)]
    assert found == expected and traced.summary.primitives == len(expected) > 0


def test_every_slice_of_a_layer_tells_what_it_executes(traced: Traced) -> None:
    query = """select s.name, t.name as track, extract_arg(arg_set_id, 'debug.layer.onednn[0]') first,
               extract_arg(arg_set_id, 'debug.layer.onednn[1]') second from slice s join track t on s.track_id = t.id
               where t.name glob 'layers*'"""
    rows = traced.processor.query(query)
    convolutions = [row for row in rows if row["name"].endswith(".conv")]
    assert {row["track"] for row in convolutions} == {"layers (measure)", "layers (trace)"}
    for row in convolutions:
        told = {text.split(",")[0] for text in (row["first"], row["second"])}
        assert told == {"reorder jit:uni", "convolution brg_conv_fwd:avx512_core"}
        assert row["first"].endswith(" ms")
    assert all(row["first"] is None for row in rows if row["name"].endswith(".act"))


def test_arguments_of_kernels_and_primitives_need_no_quotation_marks(traced: Traced) -> None:
    names = argument_names(traced.processor)
    assert {"cpi", "cpu_ms", "function", "implementation", "layer.onednn"} <= names
    assert needs_no_quotation_marks(traced.processor, names)


def test_the_documentations_queries_find_something(traced: Traced) -> None:
    page = Path(__file__).parents[2] / "docs" / "trace.md"
    queries = re.findall(r"```sql\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert len(queries) == 3
    for query in queries:
        first, *_ = traced.processor.query(query)
        assert None not in first.values()


def test_the_summary_counts_what_was_written(traced: Traced) -> None:
    summary = traced.summary
    assert summary.samples == len(traced.samples)
    assert summary.kernel_slices == len(traced.processor.query(SLICES))
    (row,) = traced.processor.query("select count(*) as n from slice")
    assert summary.contents() == f"{row['n']:,} slices, {len(traced.samples):,} samples"


def test_flows_lead_from_a_layer_to_its_first_work_on_another_thread(traced: Traced) -> None:
    arrows = traced.processor.query(FLOWS)
    layers = traced.run.read("spans").filter((pl.col("pass") == "trace") & pl.col("path").str.ends_with(".conv"))
    assert [(row["layer"], row["ts"] - traced.to_boottime) for row in arrows] == list(
        layers.sort("begin_ns").select("path", "begin_ns").iter_rows()
    )
    assert {row["name"] for row in arrows} == {"jit_conv_fwd"}
    assert all(row["ts"] < row["target_ts"] < row["ts"] + PERIOD_NS for row in arrows)


def test_windows_of_any_size_make_the_same_slices(
    traced: Traced, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (pass_writer, sample_tracks):
        monkeypatch.setattr(module, "windows", functools.partial(windows, rows=9))
    again = Traced(traced.run, tmp_path / "again.pftrace")
    assert again.processor.complaints() == []
    assert again.processor.query(SLICES) == traced.processor.query(SLICES)
    assert again.processor.query(FLOWS) == traced.processor.query(FLOWS)
    for rows in (samples_of, lambda run: run.processor.query(ROOTED)):
        assert Counter(tuple(row.values()) for row in rows(again)) == Counter(
            tuple(row.values()) for row in rows(traced)
        )


def test_without_names_there_are_files_and_addresses(tmp_path: Path) -> None:
    run = synthetic_run.build(tmp_path)
    synthetic_samples.add(run, names=False)
    traced = Traced(run, tmp_path / "trace.pftrace")
    assert traced.processor.complaints() == []
    found = Counter(row["name"] for row in samples_of(traced))
    kernels = Counter(traced.samples["address"].to_list())
    assert found == {
        "libtorch_cpu.so+0x104": kernels[0x1104],
        "[anonymous memory]+0x4": kernels[0x9004],
        "libgomp.so.1+0x4": kernels[0x3004],
        "0x200004": 1,
    }
    names = {row["name"] for row in traced.slices(MAIN)}
    assert names == {"libtorch_cpu.so", "[anonymous memory]", "[unknown]"}


def test_lost_records_are_told(tmp_path: Path) -> None:
    run = synthetic_run.build(tmp_path)
    synthetic_samples.add(run, lost=17)
    traced = Traced(run, tmp_path / "trace.pftrace")
    assert [(row["name"], row["value"]) for row in traced.processor.complaints()] == [("perf_cpu_lost_records", 17)]


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Traced]:
    """A model as a user samples it."""
    require_module("torch")
    require_module("ultralytics")
    require_sampler()
    place = tmp_path_factory.mktemp("real")
    arguments = ("--model", "yolov8n", "--imgsz", "320", "--iterations", "3", "--threads", "2")
    run = collect(place, *arguments, "--collectors", "sampler", "--passes", "trace")
    yield Traced(run, place / "trace.pftrace")


def test_a_real_models_samples_are_shared_out_as_in_the_tables(real: Traced) -> None:
    lost = real.run.manifest.passes[0].collectors[0].detail["lost"]
    assert {row["name"] for row in real.processor.complaints()} == ({"perf_cpu_lost_records"} if lost else set())
    kernels = real.run.read("kernels").select("kernel", label=pl.coalesce("name", "library"))
    named = real.samples.join(kernels, on="kernel")
    assert len(named) == len(real.samples) > 100
    assert Counter(row["name"] for row in samples_of(real)) == Counter(named["label"].to_list())
    assert Counter(row["tid"] for row in samples_of(real)) == Counter(real.samples["tid"].to_list())


def test_a_real_models_convolutions_are_slices_below_their_layers(real: Traced) -> None:
    rows = real.processor.query(SLICES)
    assert sum(row["n"] or 0 for row in rows) == len(real.samples)
    assert any(row["category"] == "jit" for row in rows)
    assert any(row["category"] == "waiting" for row in rows)
    switched = real.run.read("switches").drop_nulls(["out_ns", "in_ns"])
    assert sum(row["category"] == "off-cpu" for row in rows) == len(switched)
    assert {row["depth"] for row in rows} == {0}
    assert len(real.processor.query(FLOWS)) > 0
