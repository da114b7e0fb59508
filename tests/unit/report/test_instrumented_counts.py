"""Counts of followed code in the tables of the pass that did the same work: CPI where there is no PMU."""

from __future__ import annotations

import io
from pathlib import Path

import msgspec
import polars as pl
import pytest
from rich.console import Console

from hwprof.analysis import instrumented as followed
from hwprof.report.document import builder
from hwprof.report.document.instrumented import Instrumented
from hwprof.report.document.layer_types import LayerTypes
from hwprof.report.document.layers import Layers
from hwprof.report.document.stages import Stages
from hwprof.report.text import choice, report
from hwprof.run.directory import RunDirectory, write_table
from hwprof.run.manifest import EventInfo, MetricDefinition, PassRecord
from tests.support.document_parts import layer_rows, part, replaced, unattributed
from tests.support.document_parts import whole as whole_of
from tests.support.synthetic_model import MODULES, is_leaf
from tests.support.synthetic_run import build

INSTRUCTIONS, CRITICAL = "instrumented.instructions", "instrumented.critical-instructions"
GHZ = 2.5
FINGERPRINT = {"inputs": "1234", "threads": "2"}
LEAVES = [module.path for module in MODULES if is_leaf(module.path)]
CPI = MetricDefinition(
    name="cpi", title="CPI", unit="cycles/instruction", digits=2, formula=f'{GHZ} * "time" / "{CRITICAL}"', meaning="",
)  # fmt: skip
FRAMEWORK = MetricDefinition(
    name="framework_share", title="framework %", unit="%", digits=1, formula=f'"{INSTRUCTIONS}" / 1', meaning="",
)  # fmt: skip
RATIO = MetricDefinition(
    name="instruction_ratio", title="hw/~", unit="1", digits=3, formula=f'"instructions@main" / "{INSTRUCTIONS}@main"',
    meaning="",
)  # fmt: skip
BUSIEST, OTHER = 3_000_000, 1_000_000


def rows(spans: pl.DataFrame, main_tid: int, worker: int) -> pl.DataFrame:
    """Every leaf: 3 million on the main thread and 1 million on a worker; the inference beside them: a thousand."""
    made = []
    for span, path, kind in spans.select("span", "path", "kind").iter_rows():
        number = 1 if kind == "layer" and path in LEAVES else len(LEAVES) if path == "inference" else 0
        rest = 1000 if path == "inference" else 0
        if number:
            made += [
                (span, main_tid, INSTRUCTIONS, BUSIEST * number + rest),
                (span, worker, INSTRUCTIONS, OTHER * number),
                (span, main_tid, CRITICAL, BUSIEST * number + rest),
            ]
    return pl.DataFrame(made, schema=["span", "tid", "event", "value"], orient="row")


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    made = build(tmp_path, iterations=4)
    measure = made.manifest.passes[0]
    measure.fingerprint = FINGERPRINT
    assert measure.main_tid is not None
    spans = made.read("spans").filter(pl.col("pass") == "measure")
    last = spans["iteration"].max()
    own = spans.filter(pl.col("iteration") == last).with_columns(pl.lit("followed").alias("pass"))
    write_table(made.path / "spans.parquet", "spans", pl.concat([made.read("spans"), own]))
    before = made.read("counts")
    fixed = {"pass": "followed", "iteration": last, "provenance": "instrumented", "enabled_ns": 0, "running_ns": 0}
    counts = rows(own, measure.main_tid, measure.main_tid + 1).with_columns(
        **{name: pl.lit(value) for name, value in fixed.items()}
    )
    both = pl.concat([before, counts.select(before.columns).cast(before.schema)])
    write_table(made.path / "counts.parquet", "counts", both)
    made.manifest.passes.append(
        PassRecord(
            name="followed", status="completed", pid=measure.pid, main_tid=measure.main_tid, fingerprint=FINGERPRINT,
            times_from="measure", metrics=[CPI, FRAMEWORK, RATIO], event_sets=[[INSTRUCTIONS, CRITICAL]],
            events=[EventInfo(name, "made up", "1", "software") for name in (INSTRUCTIONS, CRITICAL)],
            iterations=[entry for entry in measure.iterations if entry.index == last],
        )
    )  # fmt: skip
    for entry in made.manifest.passes[-1].iterations:
        made.manifest.passes[-1].iterations = [
            type(entry)(index=entry.index, warmup=False, event_set=0, layers_counted=True)
        ]
    made.save_manifest()
    return made


def without_hardware(run: RunDirectory) -> None:
    """What the measure pass of a machine without a PMU holds."""
    record = run.manifest.passes[0]
    kept = {event.name for event in record.events if event.kind == "software"}
    record.events = [event for event in record.events if event.kind == "software"]
    record.event_sets = [[name for name in names if name in kept] for names in record.event_sets]
    counts = run.read("counts")
    named = pl.col("event").is_in([*kept, INSTRUCTIONS, CRITICAL]) | pl.col("event").str.starts_with("hwprof")
    write_table(run.path / "counts.parquet", "counts", counts.filter(named))


def test_cpi_is_the_unfollowed_time_over_the_busiest_threads_instructions(run: RunDirectory) -> None:
    without_hardware(run)
    found = builder.build(run)
    cpi = next(metric for metric in found.metrics if metric.name == "cpi")
    assert cpi.missing is None
    assert cpi.sources == ["instrumented", "measured"]
    assert cpi.same_iterations, "the counts belong to every iteration"
    counters = part(found, Layers).counters
    assert counters.events[INSTRUCTIONS].provenance == "instrumented"
    for layer in layer_rows(found):
        assert layer.time is not None
        assert layer.metrics["cpi"] == pytest.approx(GHZ * layer.time.median_ns / BUSIEST)
        assert counters.values(INSTRUCTIONS)[layer.path] == BUSIEST + OTHER
        assert counters.values(INSTRUCTIONS, "workers")[layer.path] == OTHER


def test_sums_stages_and_types_have_theirs(run: RunDirectory) -> None:
    without_hardware(run)
    found = builder.build(run)
    time = whole_of(found).time
    assert time is not None
    whole = BUSIEST * len(LEAVES) + 1000
    assert whole_of(found).metrics["cpi"] == pytest.approx(GHZ * time.median_ns / whole)
    assert part(found, Layers).counters.values(CRITICAL)[unattributed(found).path] == 1000
    assert part(found, Stages).counters.values(CRITICAL)["inference"] == whole
    by_type = part(found, LayerTypes).counters.values(CRITICAL)
    for kind in part(found, LayerTypes).rows:
        layers = [layer for layer in layer_rows(found) if layer.type == kind.type]
        if layers:
            assert by_type[kind.type] == BUSIEST * len(layers)


def test_hardware_counters_come_first(run: RunDirectory) -> None:
    """Both are there: the tables of layers show what the hardware counted, the pass's own section the other."""
    found = builder.build(run)
    cpi = next(metric for metric in found.metrics if metric.name == "cpi")
    assert cpi.formula != CPI.formula
    assert cpi.sources == ["measured"]
    ratios = [layer.metrics["instruction_ratio"] for layer in layer_rows(found)]
    for layer, ratio in zip(layer_rows(found), ratios, strict=True):
        main = part(found, Layers).counters.values("instructions", "main")
        assert ratio == pytest.approx(main[layer.path] / BUSIEST)
    (followed,) = part(found, Instrumented).passes
    assert followed.layers is not None, "others than those of the hardware"
    first = followed.layers.rows[0]
    assert first.time is not None
    assert first.metrics["cpi"] == pytest.approx(GHZ * first.time.median_ns / BUSIEST)


def test_both_stand_beside_each_other(run: RunDirectory) -> None:
    out = io.StringIO()
    report.render(builder.build(run), Console(file=out, width=160, highlight=False, markup=False, emoji=False))
    section = out.getvalue()[out.getvalue().index("Layers by instructions, pass followed") :]
    assert "CPI~" in section and "CPI, hardware" in section and "instr., hw/~" in section


def test_other_work_is_not_joined(run: RunDirectory) -> None:
    without_hardware(run)
    run.manifest.passes[-1].fingerprint = FINGERPRINT | {"inputs": "4321"}
    found = builder.build(run)
    assert next(metric for metric in found.metrics if metric.name == "cpi").missing is not None
    assert not any("cpi" in layer.metrics for layer in layer_rows(found))
    assert "inputs" in (part(found, Instrumented).passes[0].not_comparable or "")


def test_usual_tables_show_what_hardware_would_tell_and_no_more(run: RunDirectory) -> None:
    without_hardware(run)
    shown = [metric.name for metric, _ in choice.choose(builder.build(run), None)]
    assert "cpi" in shown
    assert "framework_share" not in shown
    assert [metric.name for metric, _ in choice.choose(builder.build(run), ["framework_share"])] == ["framework_share"]


def test_of_a_cut_short_pass_whole_layers_are_joined(run: RunDirectory) -> None:
    without_hardware(run)
    record = run.manifest.passes[-1]
    record.status, record.kept, record.reason = "interrupted", True, "interrupted by the user"
    mine = pl.col("pass") == "followed"
    late = mine & (pl.col("kind") == "layer") & pl.col("path").is_in(LEAVES[2:])
    write_table(run.path / "spans.parquet", "spans", run.read("spans").filter(~late))
    found = builder.build(run)
    assert [layer.path for layer in layer_rows(found) if "cpi" in layer.metrics] == LEAVES[:2]
    assert "cpi" not in whole_of(found).metrics


def test_single_calls_keep_their_own_counts(run: RunDirectory) -> None:
    mine = pl.col("pass") == "followed"
    found = followed.by_call(run.read("spans").filter(mine), run.read("counts").filter(mine))
    assert sorted(found["path"].unique()) == sorted(LEAVES)
    assert found.select("path", "call").is_unique().all()
    assert set(found[CRITICAL]) == {BUSIEST}
    assert set(found[f"{INSTRUCTIONS}@workers"]) == {OTHER}


@pytest.mark.parametrize(
    ("integers", "floats", "expected"), [(3.0, 0.1, "int8_gops"), (0.1, 3.0, "counted_gflops"), (None, None, None)]
)
def test_of_counted_operations_the_kind_is_shown_that_there_is_more_of(
    run: RunDirectory, integers: float | None, floats: float | None, expected: str | None
) -> None:
    without_hardware(run)
    found = builder.build(run)
    values = {"int8_gops": integers, "counted_gflops": floats}
    known = next(metric for metric in found.metrics if metric.missing is None)
    others = [metric for metric in found.metrics if metric.name not in values]
    made = [
        msgspec.structs.replace(known, name=name, sources=["instrumented"])
        for name, value in values.items()
        if value is not None
    ]
    layers = part(found, Layers)
    of_whole = msgspec.structs.replace(whole_of(found), metrics=whole_of(found).metrics | values)
    document = msgspec.structs.replace(
        replaced(found, msgspec.structs.replace(layers, whole=of_whole)), metrics=[*others, *made]
    )
    shown = [metric.name for metric, _ in choice.choose(document, None)]
    assert [name for name in shown if name in values] == ([expected] if expected is not None else [])
    if expected is not None:
        assert shown.index(expected) == shown.index("gflops") + 1
