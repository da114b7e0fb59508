"""Counts of a followed pass with the times of its companion: joined, refused, cut short, and shown."""

from __future__ import annotations

import io
from pathlib import Path

import msgspec
import polars as pl
import pytest
from rich.console import Console

from hwprof.analysis import instrumented_pass
from hwprof.analysis.run_analysis import RunAnalysis
from hwprof.report.document import builder
from hwprof.report.document.document import Document
from hwprof.report.document.instrumented import Instrumented, Pass, layers_of
from hwprof.report.document.layers import Layers
from hwprof.report.json import codec
from hwprof.report.text import instrumented as instrumented_view
from hwprof.report.text import report
from hwprof.report.text.console import make_console
from hwprof.report.text.footnotes import MOST
from hwprof.report.text.grid import Column
from hwprof.report.text.page import Page
from hwprof.run.directory import RunDirectory, write_table
from hwprof.run.manifest import EventInfo, MetricDefinition, PassRecord
from hwprof.run.process_events import COUNTED_CPU_TIME, UNCOUNTED_CPU_TIME, WHOLE_PROCESS_TID
from tests.support.document_parts import csv_frames, layer_rows, part
from tests.support.rounded import is_same
from tests.support.small_tables import MS
from tests.support.snapshots import assert_snapshot
from tests.support.synthetic_model import MODULES, is_leaf
from tests.support.synthetic_run import build

INSTRUCTIONS, MISSES = "engine.instructions", "engine.l1d-misses"
PER_NS = MetricDefinition(
    name="engine_per_ns", title="ins/ns", unit="instructions/ns", digits=2, formula=f'"{INSTRUCTIONS}" / "time"',
    meaning="made up",
)  # fmt: skip
LEAVES = [module.path for module in MODULES if is_leaf(module.path)]
REST = 1000  # instructions of the inference outside of layers
ENVIRONMENT = {"ISA": "OLD"}
FINGERPRINT = {"inputs": "1234", "instruction set": "OLD"}


def followed(root: Path) -> RunDirectory:
    """A run whose measure pass has been done again as companion, and again by an engine: layer n has n million."""
    run = build(root, iterations=4)
    measure = run.manifest.passes[0]
    spans = run.read("spans").filter(pl.col("pass") == "measure")
    last = spans["iteration"].max()
    copies = [spans.with_columns(pl.lit(name).alias("pass")) for name in ("again", "engine")]
    copies[1] = copies[1].filter(pl.col("iteration") == last).with_columns(end_ns=pl.col("end_ns") + 10**9)
    write_table(run.path / "spans.parquet", "spans", pl.concat([run.read("spans"), *copies]))
    amounts = {path: (1 + number) * 1_000_000 for number, path in enumerate(LEAVES)}
    whole = sum(amounts.values()) + REST
    mine = spans.filter(pl.col("iteration") == last)
    rows, kernels = [], []
    for span, path, kind in mine.select("span", "path", "kind").iter_rows():
        amount = amounts.get(path) if kind == "layer" else whole if path == "inference" else None
        if amount is None:
            continue
        rows += [(span, INSTRUCTIONS, amount, "instrumented"), (span, MISSES, amount // 100, "simulated")]
        parts = (amount * 3 // 4, amount - amount * 3 // 4)
        kernels += [(span, number, INSTRUCTIONS, value, "instrumented") for number, value in enumerate(parts)]
    fixed = {"pass": "engine", "iteration": last, "tid": measure.main_tid}
    counts = pl.DataFrame(rows, schema=["span", "event", "value", "provenance"], orient="row").with_columns(
        **{name: pl.lit(value) for name, value in fixed.items()}, enabled_ns=pl.lit(0), running_ns=pl.lit(0)
    )
    names = ["span", "kernel", "event", "value", "provenance"]
    table = pl.DataFrame(kernels, schema=names, orient="row").with_columns(
        **{name: pl.lit(value) for name, value in fixed.items()}
    )
    before = run.read("counts")
    write_table(
        run.path / "counts.parquet", "counts", pl.concat([before, counts.select(before.columns).cast(before.schema)])
    )
    write_table(run.path / "kernel_counts.parquet", "kernel_counts", table)
    known = pl.DataFrame({"kernel": [0, 1], "domain": "torch", "library": "lib.so", "name": ["gemm", None]})
    write_table(run.path / "kernels.parquet", "kernels", known.with_columns(pl.lit("engine").alias("pass")))
    companion = msgspec.structs.replace(
        measure, name="again", environment=ENVIRONMENT, fingerprint=FINGERPRINT, threads=1
    )
    companion.collectors = []
    own = PassRecord(
        name="engine", status="completed", pid=measure.pid, main_tid=measure.main_tid, threads=1,
        environment=ENVIRONMENT, fingerprint=FINGERPRINT, instruction_set="Old", times_from="again", metrics=[PER_NS],
        events=[EventInfo(INSTRUCTIONS, "made up", "1", "software"), EventInfo(MISSES, "made up", "1", "software")],
        event_sets=[[INSTRUCTIONS, MISSES]],
        iterations=[
            msgspec.structs.replace(entry, event_set=0, layers_counted=True)
            for entry in measure.iterations
            if entry.index == last
        ],
    )  # fmt: skip
    run.manifest.passes += [companion, own]
    run.save_manifest()
    return run


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return followed(tmp_path)


def printed(run: RunDirectory, width: int = 140) -> str:
    return text_of(builder.build(run), width)


def own_layers(of: Pass, document: Document) -> Layers:
    """Of a run whose tables are whole."""
    found = layers_of(of, document)
    assert found is not None
    return found


def text_of(found: Document, width: int) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False, markup=False, emoji=False)
    report.render(found, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_counts_are_joined_with_the_times_of_the_companion(run: RunDirectory) -> None:
    found = builder.build(run)
    (pass_,) = part(found, Instrumented).passes
    by_path = {layer.path: layer for layer in layer_rows(found)}
    layers = own_layers(pass_, found)
    counted = layers.counters.values(INSTRUCTIONS)
    for number, path in enumerate(LEAVES):
        layer = next(layer for layer in layers.rows if layer.path == path)
        assert counted[path] == (1 + number) * 1_000_000
        assert layer.time == by_path[path].time, "the companion's, which is a copy of the measure pass"
        assert layer.time is not None
        assert layer.metrics["engine_per_ns"] == pytest.approx((1 + number) * 1_000_000 / layer.time.median_ns)
    assert counted["unattributed"] == REST
    assert {event.name: event.provenance for event in pass_.events} == {
        INSTRUCTIONS: "instrumented",
        MISSES: "simulated",
    }


def test_the_other_figures_do_not_know_of_them(run: RunDirectory, tmp_path: Path) -> None:
    without = builder.build(build(tmp_path / "plain", iterations=4))
    found = builder.build(run)
    assert layer_rows(found) == layer_rows(without)
    assert found.events == without.events
    assert found.metrics == without.metrics
    assert found.figures_from == "measure"


def test_kernels_are_ranked_in_the_whole_and_in_every_layer(run: RunDirectory) -> None:
    (pass_,) = part(builder.build(run), Instrumented).passes
    whole = [kernel for kernel in pass_.kernels if kernel.layer is None]
    assert [kernel.kernel for kernel in whole] == ["gemm", "(unnamed)"]
    assert sum(kernel.share or 0 for kernel in whole) == pytest.approx(1)
    assert sum(kernel.instructions for kernel in whole) == sum((1 + n) * 1_000_000 for n in range(len(LEAVES))) + REST
    rest = [kernel.instructions for kernel in pass_.kernels if kernel.layer == "unattributed"]
    assert sum(rest) == REST
    first = [kernel for kernel in pass_.kernels if kernel.layer == LEAVES[0]]
    assert [(kernel.kernel, kernel.instructions, kernel.share) for kernel in first] == [
        ("gemm", 750_000, 0.75),
        ("(unnamed)", 250_000, 0.25),
    ]


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("fingerprint", FINGERPRINT | {"inputs": "4321"}, "pass again differs in inputs"),
        ("status", "failed", "was not completed"),
    ],
)
def test_times_of_other_work_are_not_joined(run: RunDirectory, field: str, value: object, says: str) -> None:
    companion = next(record for record in run.manifest.passes if record.name == "again")
    setattr(companion, field, value)
    found = builder.build(run)
    (pass_,) = part(found, Instrumented).passes
    assert says in (pass_.not_comparable or "")
    layers = own_layers(pass_, found)
    assert all(layer.time is None and "engine_per_ns" not in layer.metrics for layer in layers.rows)
    assert layers.counters.values(INSTRUCTIONS)[layers.rows[0].path] == 1_000_000
    assert says in printed(run)


def test_what_uninstrumented_threads_did_is_no_zero(run: RunDirectory) -> None:
    """Two of three milliseconds of a layer's CPU time: a dash, why, and how long; of the whole it is little."""
    spans = run.read("spans").filter(pl.col("pass") == "engine", pl.col("path").is_in([LEAVES[0], "inference"]))
    counts = run.read("counts")
    times_ns = {LEAVES[0]: (MS, 2 * MS), "inference": (1000 * MS, 2 * MS)}
    told = pl.DataFrame(
        [
            {"pass": "engine", "iteration": iteration, "span": span, "tid": WHOLE_PROCESS_TID, "event": event}
            | {"value": value, "enabled_ns": 0, "running_ns": 0, "provenance": "measured"}
            for iteration, span, path in spans.select("iteration", "span", "path").iter_rows()
            for event, value in zip((COUNTED_CPU_TIME, UNCOUNTED_CPU_TIME), times_ns[path], strict=True)
        ],
        schema=counts.schema,
    )
    write_table(run.path / "counts.parquet", "counts", pl.concat([counts, told]))
    found = builder.build(run)
    (pass_,) = part(found, Instrumented).passes
    layers = own_layers(pass_, found)
    counted = layers.counters.values(INSTRUCTIONS)
    lacking, other = layers.rows[:2]
    assert (lacking.path, counted.get(lacking.path), lacking.uncounted_ns) == (LEAVES[0], None, 2 * MS)
    assert counted[other.path] == 2_000_000 and other.uncounted_ns is None
    assert layers.whole is not None and layers.whole.path in counted
    assert "engine_per_ns" not in lacking.metrics
    assert csv_frames(found)["layers_engine.csv"]["uncounted_ns"].to_list()[:2] == [2 * MS, None]
    assert not {LEAVES[0]} & {kernel.layer for kernel in pass_.kernels}
    assert f"counts of {LEAVES[0]}: code that is not counted ran there (2.00 ms" in printed(run)


def test_of_an_interrupted_pass_whole_layers_are_shown_and_no_sums(run: RunDirectory) -> None:
    record = run.manifest.passes[-1]
    record.status, record.kept, record.reason = "interrupted", True, "interrupted by the user after 3 of 5 calls"
    keep = ~((pl.col("pass") == "engine") & (pl.col("kind") == "layer") & pl.col("path").is_in(LEAVES[3:]))
    write_table(run.path / "spans.parquet", "spans", run.read("spans").filter(keep))
    found = builder.build(run)
    (pass_,) = part(found, Instrumented).passes
    assert list(own_layers(pass_, found).counters.values(INSTRUCTIONS)) == LEAVES[:3], "neither the rest nor the whole"
    (note,) = pass_.notes
    assert note.startswith("interrupted by the user after 3 of 5 calls: ") and "3 complete layers" in note
    text = printed(run)
    assert note in text
    assert "unattributed" not in text[text.index("Layers by instructions, pass engine") :], "no sums, not even zeros"
    record.kept = False
    assert builder.build(run).part(Instrumented) is None


@pytest.mark.parametrize("width", [80, 120])
def test_snapshot(width: int, run: RunDirectory) -> None:
    text = printed(run, width)
    lines = [line.rstrip() for line in text[text.index("Layers by instructions") :].splitlines()]
    assert_snapshot(f"instrumented-{width}", "\n".join(lines) + "\n")


def test_the_section_names_the_instruction_set_and_the_provenance(run: RunDirectory) -> None:
    text = printed(run)
    assert "Layers by instructions, pass engine, restricted to Old (5 of 5)" in text
    assert "\n  ~ instrumented: instructions; simulated: l1d-misses" in text
    assert "\n  time: pass again" in text
    assert "Kernels by instructions, pass engine" in text
    assert max(map(len, printed(run, 80).splitlines())) <= 80


def test_simulated_metrics_without_a_column_are_to_be_had(run: RunDirectory) -> None:
    """Somebody asked for them when the run was made."""
    found = builder.build(run)
    known = next(metric for metric in found.metrics if metric.missing is None)
    simulated = msgspec.structs.replace(known, name="l2_mpki", group="cache", sources=["simulated"])
    text = text_of(msgspec.structs.replace(found, metrics=[*found.metrics, simulated]), 80)
    assert "simulated: 1 event (--metrics cache)" in " ".join(text.split())


def test_times_are_explained_where_they_are_shown(run: RunDirectory) -> None:
    seen = set()
    for width in (40, 60, 80, 140):
        text = printed(run, width).partition("Layers by instructions")[2]
        shown = "time ms" in text.split("\n")[1]
        seen.add(shown)
        assert ("time: pass again, uninstrumented" in text) is shown, width
    assert seen == {True, False}


def test_json_and_csv_hold_it(run: RunDirectory) -> None:
    found = builder.build(run)
    assert is_same(codec.decode(codec.encode(found)), found)
    frames = csv_frames(found)
    layers = frames["layers_engine.csv"]
    assert layers.filter(path=LEAVES[1])[INSTRUCTIONS].item() == 2_000_000
    assert set(layers["engine.l1d_misses_provenance"].drop_nulls()) == {"simulated"}
    kernels = frames["kernels_engine.csv"]
    assert kernels.filter(layer=LEAVES[0], kernel="gemm")[INSTRUCTIONS].item() == 750_000
    assert kernels["layer"].null_count() == 2


def test_shown_columns_have_a_legend_once(run: RunDirectory) -> None:
    page = Page(builder.build(run), make_console(120))
    keys = ("vector_512", "vector_256", "requested_intensity", "framework_share", "openmp_share", "worker_share")
    columns = [Column(key, ["1.0"], key=key) for key in keys]
    lines = instrumented_view.legend(columns, page)
    assert all(any(key in line for line in lines) for key in keys)
    assert lines[0].startswith("vector_512, vector_256: "), "what holds of several stands once"
    assert max(map(len, lines)) <= MOST
    assert instrumented_view.legend(columns, page) == [], "a table above has said it"


@pytest.mark.filterwarnings("error")
def test_without_instructions_no_kernel_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The order is theirs."""
    run = followed(tmp_path)
    assert RunAnalysis(run).instrumented[0].listed()
    monkeypatch.setattr(instrumented_pass, "INSTRUCTIONS", ".events-of-that-name")
    assert RunAnalysis(run).instrumented[0].listed() == []


def test_without_the_documents_layers_the_kernels_of_a_pass_stand(run: RunDirectory) -> None:
    """A damaged table may cost the figures of layers, among which those of the pass are."""
    found = builder.build(run)
    instrumented = part(found, Instrumented)
    (pass_,) = instrumented.passes
    lacking = msgspec.structs.replace(instrumented, passes=[msgspec.structs.replace(pass_, layers=None)])
    parts = {name: one for name, one in found.parts.items() if not isinstance(one, Layers)}
    parts["instrumented"] = lacking
    hottest = msgspec.structs.replace(found.hottest, layers=[])
    left = msgspec.structs.replace(found, parts=parts, hottest=hottest)
    assert layers_of(lacking.passes[0], left) is None
    assert "kernels_engine.csv" in csv_frames(left) and "layers_engine.csv" not in csv_frames(left)
    assert "Kernels by instructions, pass engine" in text_of(left, 140)
