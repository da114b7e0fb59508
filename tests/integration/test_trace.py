"""Traces of synthetic runs in the real trace processor: every span and value of the tables, and nothing else."""

from __future__ import annotations

import bisect
import functools
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from hwprof.errors import HwprofError
from hwprof.run.process_events import WHOLE_PROCESS_TID
from hwprof.trace import pass_writer
from hwprof.trace.time_windows import windows
from hwprof.trace.writer import write_trace
from tests.support import synthetic_model, synthetic_run, synthetic_variants
from tests.support.traced import COUNTERS, FLOWS, Traced, argument, argument_names, needs_no_quotation_marks


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Traced]:
    root = tmp_path_factory.mktemp("run")
    yield Traced(synthetic_run.build(root, iterations=4, threads=3), root / "trace.pftrace")


def test_the_import_has_nothing_to_complain_of(traced: Traced) -> None:
    assert traced.processor.complaints() == []


def test_every_span_is_a_slice_with_its_own_times(traced: Traced) -> None:
    assert traced.found() == traced.expected()
    assert traced.summary.slices == traced.expected().total()


def test_layers_nest_as_in_the_tree(traced: Traced) -> None:
    spans = {(row["pass"], row["span"]): row for row in traced.run.read("spans").iter_rows(named=True)}
    for (name, span), row in traced.by_span().items():
        depth, parent = 0, spans[name, span]["parent"]
        while parent is not None and spans[name, parent]["kind"] == row["category"]:
            depth, parent = depth + 1, spans[name, parent]["parent"]
        assert row["depth"] == depth


def test_every_count_is_an_annotation_with_the_same_number(traced: Traced) -> None:
    slices = traced.by_span()
    sums: Counter[tuple[str, int, str]] = Counter()
    workers: Counter[tuple[str, int, str]] = Counter()
    for row in traced.run.read("counts").iter_rows(named=True):
        name, span, tid, event, value = (row[key] for key in ("pass", "span", "tid", "event", "value"))
        args, event = slices[name, span]["args"], argument(event)
        sums[name, span, event] += value
        assert args[f"provenance.{event}"] == row["provenance"]
        if tid == synthetic_run.PIDS[name]:
            assert args[f"main.{event}"] == value
        elif tid != WHOLE_PROCESS_TID:
            assert args[f"worker.{event}.tid_{tid}"] == value
            workers[name, span, event] += value
    assert len(sums) > 300
    for (name, span, event), total in sums.items():
        assert slices[name, span]["args"][f"counts.{event}"] == total
    for (name, span, event), total in workers.items():
        assert slices[name, span]["args"][f"workers.{event}"] == total
    shown = sum(key.startswith("counts.") for row in slices.values() for key in row["args"])
    assert shown == len(sums), "no count that is not in the table"


def test_layers_say_what_they_are_and_what_follows(traced: Traced) -> None:
    layers = {row["path"]: row for row in traced.run.read("layers").iter_rows(named=True)}
    for row in traced.by_span().values():
        if row["category"] != "layer":
            continue
        layer, args = layers[row["name"]], row["args"]
        for column in ("type", "input_shapes", "output_shapes", "parameters", "macs", "calls"):
            assert args[f"layer.{column}"] == layer[column]
        assert args["layer.layout_index"] == layer["index"]
        if layer["macs"]:
            assert args["gflops"] == pytest.approx(2 * layer["macs"] / row["dur"])
            assert args["metric_provenance.gflops"] == "modelled"
        if "counts.cycles" in args:
            assert args["cpi"] == pytest.approx(args["counts.cycles"] / args["counts.instructions"])


def test_operators_have_their_shapes_and_threads(traced: Traced) -> None:
    args = traced.args()
    operators = [row for row in traced.slices() if row["category"] == "op"]
    assert {row["track"] for row in operators} == {"operators of python 4200 (trace)"}
    table = traced.run.read("spans").filter(kind="op")
    assert Counter(args[row["arg_set_id"]]["input_shapes"] for row in operators) == Counter(table["input_shapes"])
    assert {row["depth"] for row in operators} == {0, 1, 2}


def test_each_layer_points_to_the_operators_it_starts(traced: Traced) -> None:
    flows = traced.processor.query(
        """select a.name as layer, a.category as source, a.ts as since, a.ts + a.dur as until, b.ts as at, b.category
           as target, b.depth from flow f join slice a on f.slice_out = a.id join slice b on f.slice_in = b.id"""
    )
    leaves = {module.path for module in synthetic_model.MODULES if synthetic_model.is_leaf(module.path)}
    (record,) = [record for record in traced.run.manifest.passes if record.name == "trace"]
    profiled = sum(not iteration.warmup for iteration in record.iterations)  # the profiler starts after warm-up
    assert Counter(flow["layer"] for flow in flows) == dict.fromkeys(leaves, profiled)
    for flow in flows:
        assert (flow["source"], flow["target"], flow["depth"]) == ("layer", "op", 0)
        assert flow["since"] <= flow["at"] < flow["until"]
    assert traced.summary.flows == len(flows)


def test_series_have_their_values_and_units(traced: Traced) -> None:
    found = Counter((row["track"], row["unit"], row["ts"], row["value"]) for row in traced.processor.query(COUNTERS))
    series = traced.run.read("series")
    for row in series.iter_rows(named=True):
        key = (f"{row['name']} ({row['pass']})", row["unit"], row["time_ns"] + traced.to_boottime, row["value"])
        assert found[key] == 1
    assert traced.summary.values == len(series)


def test_watts_are_the_slope_of_joules(traced: Traced) -> None:
    found = [row for row in traced.processor.query(COUNTERS) if row["track"] == "power/package-0 (measure)"]
    joules = traced.run.read("series").filter((pl.col("pass") == "measure") & (pl.col("unit") == "J"))
    times, values = joules["time_ns"].to_list(), joules["value"].to_list()
    assert {row["unit"] for row in found} == {"W"}
    assert [row["ts"] - traced.to_boottime for row in found] == times
    slopes = [(values[k + 1] - values[k]) / (times[k + 1] - times[k]) * 1e9 for k in range(len(times) - 1)]
    assert [row["value"] for row in found] == pytest.approx([*slopes, 0.0])


@pytest.fixture(scope="module")
def xeon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Traced]:
    """Every metric of a processor, in event sets by turns."""
    root = tmp_path_factory.mktemp("xeon")
    yield Traced(synthetic_run.build(root, hardware="intel-sapphire-rapids"), root / "trace.pftrace")


def test_counted_layers_carry_the_metrics_of_their_event_set(xeon: Traced) -> None:
    assert xeon.processor.complaints() == []
    names = {metric.name for metric in xeon.run.manifest.passes[0].metrics}
    seen: Counter[str] = Counter()
    for row in xeon.by_span().values():
        args = row["args"]
        if row["category"] == "layer" and "counts.cycles" in args:
            seen.update(args.keys() & names)
            if "counts.slots" in args:
                kinds = ("retiring", "bad_speculation", "frontend", "backend")
                slots = [args[f"topdown_{kind}"] for kind in kinds]
                assert sum(slots) == pytest.approx(100, abs=1)
    assert set(seen) == names


def test_every_argument_is_a_column_without_quotation_marks(traced: Traced, xeon: Traced) -> None:
    for processor in (traced.processor, xeon.processor):
        names = argument_names(processor)
        assert {"cpi", "counts.cycles", "layer.macs"} <= names
        assert needs_no_quotation_marks(processor, names)
        (row,) = processor.query("select cpi, counts_cycles, layer_macs from facts where cpi > 0 order by cpi limit 1")
        assert row["cpi"] > 0 and row["counts_cycles"] > 0


def test_iterations_that_no_figure_is_of_say_so(tmp_path: Path) -> None:
    """Warm-up and what others disturbed, by name and by argument; the slices in them have it, too."""
    run = synthetic_variants.disturbed(tmp_path)
    traced = Traced(run, tmp_path / "trace.pftrace")
    rows = [row for (name, _), row in traced.by_span().items() if name == "measure" and row["category"] == "iteration"]
    names = {row["args"]["iteration"]: row["name"] for row in rows}
    remarks = {0: " (warm-up)", 2: " (disturbed)", 8: " (disturbed)"}
    assert names == {number: f"iteration {number}{remarks.get(number, '')}" for number in range(13)}
    for row in rows:
        args, number = row["args"], row["args"]["iteration"]
        hit = number in (2, 8)
        assert (args["warmup"], args["disturbed"], args["left_out_of_medians"]) == (number == 0, hit, hit)
        assert (args["preemptions"], args["waited_ms"]) == ((9, 36.0) if hit else (1, 0.05))
    query = """select count(*) from slice where category = 'layer' and extract_arg(arg_set_id, 'debug.warmup') = 0
               and extract_arg(arg_set_id, 'debug.disturbed') = 0"""
    layers = run.read("spans").filter((pl.col("kind") == "layer") & ~pl.col("warmup"))
    left = layers.filter((pl.col("pass") != "measure") | ~pl.col("iteration").is_in([2, 8]))
    assert traced.processor.value(query) == len(left) < len(layers)


def test_memory_traffic_is_a_rate(xeon: Traced) -> None:
    rows = [row for row in xeon.processor.query(COUNTERS) if row["track"] == "traffic/dram-read (measure)"]
    assert {row["unit"] for row in rows} == {"GB/s"}
    assert [row["value"] for row in rows] == pytest.approx([12.0] * (len(rows) - 1) + [0.0])


@pytest.mark.parametrize(
    ("event", "track", "unit", "per_ns"),
    [("instructions", "instructions/s", "instructions/s", 1e9), ("task-clock", "CPUs busy", "CPUs", 1.0)],
)
def test_rates_are_those_of_the_leaf_layers(traced: Traced, event: str, track: str, unit: str, per_ns: float) -> None:
    leaves = [module.path for module in synthetic_model.MODULES if synthetic_model.is_leaf(module.path)]
    spans = traced.run.read("spans").filter((pl.col("pass") == "measure") & pl.col("path").is_in(leaves))
    counts = traced.run.read("counts").filter((pl.col("pass") == "measure") & (pl.col("event") == event))
    sums = counts.group_by("span").agg(pl.col("value").sum()).join(spans, on="span").sort("begin_ns")
    rows = [row for row in traced.processor.query(COUNTERS) if row["track"] == f"{track} (measure)"]
    assert {row["unit"] for row in rows} == {unit}
    times, values = [row["ts"] - traced.to_boottime for row in rows], [row["value"] for row in rows]
    for row in sums.iter_rows(named=True):
        place = bisect.bisect_right(times, row["begin_ns"]) - 1
        assert times[place] == row["begin_ns"]
        assert values[place] == pytest.approx(row["value"] / (row["end_ns"] - row["begin_ns"]) * per_ns)
    iterations = sum(record.layers_counted for record in traced.run.manifest.passes[0].iterations)
    assert len(rows) == len(sums) + iterations, "a zero after each counted iteration, and nothing else"
    assert values.count(0.0) == iterations


def test_a_pass_is_a_process_with_its_threads(traced: Traced) -> None:
    rows = traced.processor.query(
        "select p.pid, p.name, t.tid, t.name as thread from thread t join process p using (upid) where p.pid > 0"
    )
    names = {4100: "measure pass - synthetic (pid 4100)", 4200: "trace pass - synthetic (pid 4200)"}
    assert {(row["pid"], row["name"]) for row in rows} == set(names.items())
    threads = traced.run.read("threads")
    assert {(row["pid"], row["tid"], row["thread"]) for row in rows} == set(
        threads.select("pid", "tid", "name").iter_rows()
    )


def test_windows_of_any_size_make_the_same_trace(
    traced: Traced, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pass_writer, "windows", functools.partial(windows, rows=9))
    again = Traced(traced.run, tmp_path / "again.pftrace")
    assert again.processor.complaints() == []
    assert again.found() == traced.found()
    assert Counter(tuple(row.values()) for row in again.processor.query(COUNTERS)) == Counter(
        tuple(row.values()) for row in traced.processor.query(COUNTERS)
    )
    assert again.processor.query(FLOWS) == traced.processor.query(FLOWS)
    assert sorted((row["name"], row["ts"], row["depth"]) for row in again.slices()) == sorted(
        (row["name"], row["ts"], row["depth"]) for row in traced.slices()
    )


def test_a_run_without_a_completed_pass_is_refused_and_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    run = synthetic_run.build(tmp_path)
    with pytest.raises(HwprofError, match="cannot write"):
        write_trace(run, tmp_path / "nowhere" / "trace.pftrace")

    def interrupted(done: int, total: int) -> None:
        raise KeyboardInterrupt

    before = set(run.path.iterdir())
    with pytest.raises(KeyboardInterrupt):
        write_trace(run, run.path / "trace.pftrace", interrupted)
    assert set(run.path.iterdir()) == before
    for record in run.manifest.passes:
        record.status = "failed"
    with pytest.raises(HwprofError, match="no completed pass"):
        write_trace(run, run.path / "trace.pftrace")


def test_progress_reaches_the_number_of_rows(tmp_path: Path) -> None:
    run = synthetic_run.build(tmp_path)
    reached: list[tuple[int, int]] = []
    write_trace(run, tmp_path / "trace.pftrace", lambda done, total: reached.append((done, total)))
    rows = len(run.read("spans")) + len(run.read("series"))
    assert reached[-1] == (rows, rows)
    assert [done for done, _ in reached] == sorted(done for done, _ in reached)
