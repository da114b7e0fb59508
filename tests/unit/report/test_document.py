from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from hwprof.analysis import flop_check
from hwprof.errors import HwprofError, UsageError
from hwprof.hardware.metrics import facts
from hwprof.report.document import builder
from hwprof.report.document.dram import Dram
from hwprof.report.document.energy import Energy
from hwprof.report.document.layers import Layers
from hwprof.report.document.operators import Operators
from hwprof.report.document.overhead import Overhead
from hwprof.report.document.stages import Stages
from hwprof.report.json import codec
from hwprof.report.text import columns, topdown
from hwprof.run.details import CountingDetail, as_json
from hwprof.run.manifest import CollectorRecord, CoreKind, IterationRecord
from hwprof.run.notes import Note, NoteKind
from hwprof.run.roles import Role
from hwprof.unavailable import Unavailable
from tests.support import synthetic_variants as runs
from tests.support.document_parts import layer_rows, part, unattributed
from tests.support.document_parts import whole as whole_of
from tests.support.requirements import require_module
from tests.support.rounded import is_same
from tests.support.synthetic_run import build

BUILDERS = [
    build,
    runs.without_pmu,
    runs.multiplexed,
    runs.with_cache_events,
    runs.zen,
    runs.xeon,
    runs.hybrid,
    runs.without_passes,
]


@pytest.mark.parametrize("make", BUILDERS)
def test_the_json_document_round_trips_and_fulfils_its_schema(make: runs.Builder, tmp_path: Path) -> None:
    built = builder.build(make(tmp_path), 3)
    data = codec.encode(built)
    assert is_same(codec.decode(data), built) and codec.encode(codec.decode(data)) == data
    found = msgspec.json.decode(data)
    assert found["schema_version"] == 3
    require_module("jsonschema").Draft202012Validator(codec.json_schema()).validate(found)


def test_the_schema_refuses_what_is_no_document(tmp_path: Path) -> None:
    jsonschema = require_module("jsonschema")
    found = msgspec.json.decode(codec.encode(builder.build(build(tmp_path))))
    del found["layers"]["rows"][0]["path"]
    with pytest.raises(jsonschema.ValidationError, match="path"):
        jsonschema.Draft202012Validator(codec.json_schema()).validate(found)


def test_figures_of_the_synthetic_run(tmp_path: Path) -> None:
    """Iterations 2 and 4 only time, 1 and 3 count; durations from the synthetic model's jitter."""
    built = builder.build(build(tmp_path, iterations=4), 2)
    assert built.figures_from == "measure"
    assert built.hottest.layers == ["model.1.cv1.conv", "model.0.conv"]
    conv = layer_rows(built)[0]
    assert conv.path == "model.0.conv"
    jitter = {index: 1 + 0.01 * ((index * 7 + len("model.0.conv")) % 5) for index in range(5)}
    timed = sorted(int(400_000 * jitter[index]) for index in (2, 4))
    counted = sorted(int(400_000 * jitter[index]) for index in (1, 3))
    assert conv.time is not None
    assert (conv.time.repetitions, conv.time.min_ns, conv.time.max_ns) == (2, *timed)
    assert conv.time.median_ns == sum(timed) / 2
    busy = [(duration, duration * 9 // 10) for duration in counted]
    counters = part(built, Layers).counters
    assert counters.values("task-clock")[conv.path] == sum(map(sum, busy)) / 2
    assert counters.values("task-clock", "workers")[conv.path] == sum(worker for _, worker in busy) / 2
    assert conv.metrics["gflops"] == pytest.approx(2 * 11_059_200 / (sum(timed) / 2))
    assert conv.metrics["cpi"] == pytest.approx(1.4, rel=1e-4)
    assert conv.counting_ratio == pytest.approx(sum(counted) / sum(timed))
    assert conv.trace_ratio == pytest.approx(1.3, rel=0.02)
    shares = [layer.share for layer in [*layer_rows(built), unattributed(built)]]
    assert sum(share for share in shares if share) == pytest.approx(1)
    assert [event.name for event in built.events][:2] == ["task-clock", "page-faults"]
    counting = part(built, Overhead).counting
    assert counting is not None and counting.observed_iterations == 2
    assert [stage.name for stage in part(built, Stages).rows if stage.inside is None][:3] == [
        "load",
        "preprocess",
        "inference",
    ]
    assert part(built, Operators).rows[0].name == "aten::mkldnn_convolution"
    assert {row.stage for row in part(built, Energy).rows} >= {"inference", "iteration"}


def test_what_could_not_be_counted_has_a_reason_and_a_remedy_and_no_value(tmp_path: Path) -> None:
    built = builder.build(runs.without_pmu(tmp_path))
    assert not any("cpi" in layer.metrics for layer in layer_rows(built))
    cpi = next(metric for metric in built.metrics if metric.name == "cpi")
    assert cpi.missing is not None
    assert (cpi.missing.what, cpi.missing.reason, cpi.missing.remedy) == ("cycles", runs.REASON, runs.REMEDY)
    gap = built.not_measured[0]
    assert (gap.what, gap.reason, gap.passes) == ("cycles, instructions", runs.REASON, ["measure", "trace"])
    assert gap.lost == ["CPI", "IPC", "GHz", "MPKI", "br MPKI", "worker ins %"], "what is made of them"
    assert not any("not counted" in note for note in built.notes)


def test_what_the_user_listed_comes_first_and_metrics_that_nobody_asked_for_are_not_lost(tmp_path: Path) -> None:
    """By the words of the list (in its order), even where many other events are missing for the same reason."""
    run = runs.without_pmu(tmp_path)
    why = Unavailable(runs.REASON, runs.REMEDY)
    asked = ["r20c7:u", "cycles", "llc_mpki", *(f"cpu/event={number:#x}/" for number in range(8))]
    for record in run.manifest.passes:
        perf = record.collectors[0]
        perf.options = {"events": [*asked, "cpi"]}
        record.metrics = [facts()["cpi"].defined('"cycles" / "instructions"'), facts()["ipc"].defined('"instructions"')]
        perf.detail = as_json(CountingDetail(unavailable=dict.fromkeys(["instructions", *reversed(asked)], why)))
    run.save_manifest()
    built = builder.build(run)
    gap = built.not_measured[0]
    assert gap.asked == ["r20c7:u", "cycles", "LLC MPKI", *asked[3:]]
    assert gap.lost == [*gap.asked, "CPI", "IPC"]


def test_a_reason_that_stands_above_the_notes_is_not_repeated_in_them(tmp_path: Path) -> None:
    run = runs.without_pmu(tmp_path)
    said = "samples by cpu-clock, without cycles"
    notes = [
        Note(NoteKind.METHOD, f"{said}: {runs.REASON}", remedy=runs.REMEDY),
        Note(NoteKind.METHOD, f"{said}: another reason", remedy=runs.REMEDY),
    ]
    sampler = CollectorRecord(name="sampler", role=Role.SAMPLER, state="ran", notes=notes)
    run.manifest.passes[1].collectors.append(sampler)
    run.save_manifest()
    found = [note for note in builder.build(run).notes if note.startswith("sampler: ")]
    assert found == [f"sampler: {said}", f"sampler: {notes[1]}"]


def test_multiplexed_values_are_scaled_and_say_so(tmp_path: Path) -> None:
    whole = builder.build(build(tmp_path / "whole", iterations=4))
    half = builder.build(runs.multiplexed(tmp_path / "half"))
    full, scaled = part(whole, Layers).counters, part(half, Layers).counters
    shares = scaled.values("cycles", "running_share")
    assert list(shares) == full.of and all(share == pytest.approx(0.5, abs=1e-4) for share in shares.values())
    assert scaled.values("cycles") == pytest.approx(full.values("cycles"), rel=1e-3)
    assert not any(full.column("cycles", "running_share")), "1 is not said"
    assert next(metric for metric in half.metrics if metric.name == "cpi").running_share < 0.51
    assert next(metric for metric in half.metrics if metric.name == "cpus_used").running_share == 1


def test_provenance_stays_with_metrics(tmp_path: Path) -> None:
    built = builder.build(runs.with_cache_events(tmp_path))
    metrics = {metric.name: metric for metric in built.metrics}
    assert metrics["cache_mpki"].sources == ["measured", "simulated"]
    assert (metrics["gflops"].provenance, metrics["cpi"].provenance) == ("modelled", "derived")


def test_without_a_measure_pass_the_document_says_where_figures_are_from(tmp_path: Path) -> None:
    run = build(tmp_path, iterations=4)
    run.manifest.passes[0].status = "failed"
    built = builder.build(run)
    assert built.figures_from == "trace"
    assert len(built.notes) == 1 and "pass trace" in built.notes[0]
    assert part(built, Overhead).trace is None
    assert layer_rows(built)[0].time is not None and part(built, Operators).rows


def test_a_run_without_a_completed_pass(tmp_path: Path) -> None:
    built = builder.build(runs.without_passes(tmp_path))
    assert built.figures_from is None
    assert not built.parts
    assert built.absent["layers"].reason == built.absent["stages"].reason == "no pass was completed"
    assert built.passes[0].reason == "out of memory"


def test_sorting(tmp_path: Path) -> None:
    run = build(tmp_path)
    assert builder.build(run, None, "macs").hottest.layers[0] == "model.1.cv1.conv"
    assert builder.build(run, None, "gflops").hottest.layers[0] == "model.2"  # the slowest first, those without last
    assert builder.build(run, None, "cycles").hottest.layers[0] == "model.1.cv1.conv"
    assert builder.build(run, 1, "order").hottest.layers == ["model.0.conv"]
    assert len(builder.build(run, None, "gflops").hottest.layers) == 5


def test_metrics_that_the_report_names_exist() -> None:
    named = {columns.CPI, topdown.OPTIONAL, flop_check.COUNTED, *flop_check.HINTS}
    assert named - facts().keys() == set()


def test_a_column_s_title_is_a_sort_key(tmp_path: Path) -> None:
    built = builder.build(build(tmp_path))
    metric = next(one for one in built.metrics if one.missing is None and one.title != one.name)
    by_name, by_title = (builder.ranked(built, 3, key).hottest for key in (metric.name, f" {metric.title.upper()}"))
    assert by_title == by_name and by_name.sort == metric.name


def test_an_unknown_sort_key_is_refused_with_the_list(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"'speed'\. Try: .*time, macs, .*a metric or event"):
        builder.build(build(tmp_path), None, "speed")


def test_sorting_by_what_was_not_measured_says_why(tmp_path: Path) -> None:
    with pytest.raises(HwprofError, match="cannot sort by cpi: cycles was not counted: the hypervisor") as caught:
        builder.build(runs.without_pmu(tmp_path), None, "cpi")
    assert caught.value.exit_code == 1
    assert caught.value.remedy == runs.REMEDY


def test_notes_of_a_collector_name_the_pass_where_its_passes_differ(tmp_path: Path) -> None:
    run = build(tmp_path, iterations=4)
    words = {"measure": ["common", "1.4%"], "trace": ["common", "1.3%"]}
    for record in run.manifest.passes:
        notes = [Note(NoteKind.OVERHEAD, text) for text in words[record.name]]
        record.collectors.append(CollectorRecord(name="sampler", state="ran", notes=notes))
        alone = [Note(NoteKind.METHOD, "in one pass")]
        if record.name == "trace":
            record.collectors.append(CollectorRecord(name="other", state="ran", notes=alone))
    assert builder.build(run).notes == [
        "sampler: common", "sampler (pass measure): 1.4%", "sampler (pass trace): 1.3%", "other: in one pass"
    ]  # fmt: skip


def test_stolen_time_is_noted_where_it_matters(tmp_path: Path) -> None:
    run = build(tmp_path, iterations=4)
    record = run.manifest.passes[0]
    record.measured_ns, record.stolen_ns = 1_000_000_000, 20_000_000
    assert run.manifest.workload is not None and run.manifest.workload.threads is not None
    # of idle processors nothing is stolen
    processors = min(run.manifest.machine.logical_processors, run.manifest.workload.threads)
    (note,) = builder.build(run).notes
    assert note.startswith(f"stolen time {2 / processors:.1f}%")
    record.stolen_ns = processors * 4_000_000
    assert builder.build(run).notes == []


@pytest.mark.parametrize("make", [runs.zen, runs.xeon])
def test_every_metric_of_a_processor(make: runs.Builder, tmp_path: Path) -> None:
    """Figures that the synthetic processor was made with, through event sets, medians and the catalogue's formulas."""
    built = builder.build(make(tmp_path))
    missing = {metric.name: metric.missing.reason for metric in built.metrics if metric.missing is not None}
    assert set(missing) <= {"cache_mpki"}, missing
    assert all(metric.same_iterations for metric in built.metrics)
    conv = next(layer for layer in layer_rows(built) if layer.path == "model.1.cv1.conv")
    assert conv.metrics["cpi"] == pytest.approx(2.8 * 1.9 / (2 + 0.9), rel=1e-3)
    assert conv.by_thread["cpi"].main == pytest.approx(1.4, rel=1e-3)
    assert conv.by_thread["cpi"].workers == pytest.approx(2.8, rel=1e-3)
    assert conv.metrics["worker_instructions"] == pytest.approx(100 * 0.9 / 2.9, rel=1e-3)
    slots = ("retiring", "bad_speculation", "frontend", "backend", "smt")
    assert sum(conv.metrics.get(f"topdown_{name}") or 0 for name in slots) == pytest.approx(100, abs=0.1)
    assert conv.metrics["counted_flops"] == pytest.approx(0.46 * 2 * 353_894_400, rel=1e-3)
    assert conv.flops is not None and conv.flops.verdict == "winograd"
    assert conv.flops.ratio == pytest.approx(0.46, rel=1e-3)
    silu = next(layer for layer in layer_rows(built) if layer.type == "SiLU")
    assert silu.flops is not None and (silu.flops.verdict, silu.flops.ratio) == ("no_macs", None)
    flops = whole_of(built).flops
    assert flops is not None and flops.analytic == 2 * (353_894_400 + 11_059_200 + 4_915_200)


def test_traffic_is_the_machine_s_and_only_told_where_it_is_resolved(tmp_path: Path) -> None:
    built = builder.build(runs.zen(tmp_path))
    metric = next(metric for metric in built.metrics if metric.name == "uncore_dram_gbytes")
    assert (metric.scope, metric.sources, metric.missing) == ("machine", ["measured"], None)
    assert whole_of(built) is not None
    assert whole_of(built).metrics["uncore_dram_gbytes"] == pytest.approx(17)
    assert "uncore_dram_gbytes" not in layer_rows(built)[-1].metrics
    rows = {(row.kind, row.owner): row for row in part(built, Dram).rows if row.series == "uncore/dram-read"}
    assert rows["stage", "inference"].gbytes_per_s == pytest.approx(12)
    assert rows["stage", "load"].gbytes_per_s is None and rows["stage", "load"].bytes > 0


def test_kinds_of_core_are_summed_and_their_mix_is_told(tmp_path: Path) -> None:
    built = builder.build(runs.hybrid(tmp_path))
    assert [(kind.pmu, kind.name, kind.cpus) for kind in built.cores] == [
        ("cpu_core", "Intel Golden Cove / Raptor Cove", [0, 1]),
        ("cpu_atom", "Intel Gracemont", [2, 3]),
    ]
    for layer in layer_rows(built):
        assert layer.metrics["cpi"] == pytest.approx(1.4, rel=1e-3)
        assert layer.metrics["efficiency_core_share"] == pytest.approx(50, rel=1e-3)
        assert layer.metrics["worker_instructions"] == pytest.approx(100 * 9 / 19, rel=1e-3)
    ran = part(built, Layers).counters.column("cpu_core/cycles/", "running_share")
    assert all(share is None or share == pytest.approx(1, abs=1e-3) for share in ran)


def test_a_processor_that_this_version_s_catalogue_lacks_keeps_its_id(tmp_path: Path) -> None:
    run = runs.hybrid(tmp_path)
    machine = run.manifest.machine
    run.manifest.machine = msgspec.structs.replace(machine, cores=(CoreKind("cpu", "acme-anvil", (0,)),))
    assert builder.build(run).cores[0].name == "acme-anvil"


def test_an_iteration_for_one_collector_alone_is_no_warm_up(tmp_path: Path) -> None:
    run = build(tmp_path, iterations=2)
    trace = run.manifest.passes[1]
    trace.iterations.append(IterationRecord(len(trace.iterations), True, None, False, alone_for="onednn_verbose"))
    before, after = (builder.build(each).passes[1] for each in (build(tmp_path / "other", iterations=2), run))
    assert (after.warmup, after.timed, after.counted) == (before.warmup, before.timed, before.counted)
    assert (before.alone, after.alone) == ([], ["onednn_verbose"])
