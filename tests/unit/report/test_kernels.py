"""Samples in the report: figures by layer and kernel, what they rest on, and the parts that one can ask for."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import msgspec
import polars as pl
import pytest
from rich.cells import cell_len
from rich.console import Console

from hwprof.cli import app
from hwprof.errors import UsageError
from hwprof.report.document import builder
from hwprof.report.document.document import Document
from hwprof.report.document.hot_kernels import hot_kernels as hot_kernels_of
from hwprof.report.document.kernels import Kernels, SampledKernel
from hwprof.report.document.layers import Layers, Module
from hwprof.report.document.one_layer import one_layer as one_layer_of
from hwprof.report.json import codec
from hwprof.report.text import hot_kernels, one_layer, report
from hwprof.report.text.page import Page
from hwprof.run.directory import RunDirectory, write_table
from hwprof.run.manifest import CollectorRecord
from hwprof.run.roles import Role
from tests.support import synthetic_variants as runs
from tests.support.document_parts import csv_frames, layer_rows, part
from tests.support.snapshots import assert_snapshot, section
from tests.support.synthetic_samples import PERIOD_NS

CONV, OTHER_CONV, ACT = "model.1.cv1.conv", "model.0.conv", "model.1.cv1.act"
JIT, SILU, BARRIER = "jit_conv_fwd", "at::native::silu_kernel", "gomp_barrier_wait"


def samples_of(built: Document) -> Kernels:
    return part(built, Kernels)


def layers_of(built: Document) -> list[Module]:
    return part(built, Layers).modules


def kernel(sampled: Kernels, name: str, layer: str | None = None) -> SampledKernel:
    (found,) = [one for one in sampled.kernels if (one.kernel, one.layer) == (name, layer)]
    return found


def printed(built: Document, width: int, part: str | None = None, top: int = 3, *, full_names: bool = False) -> str:
    """The report, its part ``--kernels`` (an empty path), or ``--layer PATH``."""
    console = Console(file=io.StringIO(), width=width, highlight=False, markup=False, emoji=False)
    page = Page(built, console)
    if part is None:
        report.render(built, console)
    elif part:
        one_layer.show(one_layer_of(built, part), page, full_names=full_names)
    else:
        hot_kernels.show(hot_kernels_of(built, top), page, full_names=full_names)
    assert isinstance(console.file, io.StringIO)
    return "".join(f"{line.rstrip()}\n" for line in console.file.getvalue().splitlines())


def test_where_hardware_counted_cycles_their_cpi_is_measured(tmp_path: Path) -> None:
    sampled = samples_of(builder.build(runs.sampled(tmp_path)))
    assert (sampled.pass_name, sampled.event, sampled.cpi_provenance) == ("trace", "cycles", "measured")
    jit = kernel(sampled, JIT)
    assert jit.cpi == pytest.approx(280_001 / 200_000)
    assert jit.llc_mpki == pytest.approx(1000 * 10 / 200_000)
    assert (jit.cpi_low, jit.cpi_high, jit.layers) == (None, None, 2)
    assert sampled.instructions_from is None


def test_shares_of_the_whole_and_of_layers_add_up(tmp_path: Path) -> None:
    run = runs.sampled(tmp_path)
    sampled = samples_of(builder.build(run))
    inside = run.read("samples").height  # less what the warm-up and counting iterations have
    assert 0 < sampled.samples < inside
    assert sum(layer.samples for layer in sampled.layers) == sampled.samples
    assert sum(one.samples for one in sampled.kernels if one.layer is None) == sampled.samples
    assert sum(layer.share or 0 for layer in sampled.layers) == pytest.approx(1)
    conv = [one for one in sampled.kernels if one.layer == CONV]
    assert sum(one.share or 0 for one in conv) == pytest.approx(1)
    (layer,) = [layer for layer in sampled.layers if layer.path == CONV]
    assert layer.cpu_ns == layer.samples * PERIOD_NS / sampled.iterations
    assert sum(thread.busy_ns + thread.wait_ns for thread in layer.threads) == pytest.approx(layer.cpu_ns)
    assert layer.wait_share == pytest.approx(0.25)
    assert layer.imbalance == pytest.approx(1 / 3), "one thread worked all of the time, the other half of it"
    parts = [kernel(sampled, JIT, path).share_of_kernel or 0 for path in (CONV, OTHER_CONV)]
    assert sum(parts) == pytest.approx(1)


def test_a_thread_that_sleeps_through_the_inference_is_not_off_its_processor(tmp_path: Path) -> None:
    """One with a single short sample, away all of the time otherwise."""
    run = runs.sampled(tmp_path)
    before = {layer.path: layer.off_cpu_ns for layer in samples_of(builder.build(run)).layers}
    samples, switches = run.read("samples"), run.read("switches")
    inside = run.read("spans").filter((pl.col("pass") == "trace") & (pl.col("path") == CONV)).tail(1)
    moment = {"tid": pl.lit(4202, pl.Int32), "time_ns": inside["begin_ns"][0] + 10, "cpu_ns": pl.lit(9_999, pl.Int64)}
    one = samples.head(1).with_columns(**moment)
    away = switches.tail(1).with_columns(
        tid=pl.lit(4202, pl.Int32), out_ns=samples["time_ns"].min(), in_ns=samples["time_ns"].max()
    )
    write_table(run.path / "samples.parquet", "samples", pl.concat([samples, one]).sort("time_ns"))
    write_table(run.path / "switches.parquet", "switches", pl.concat([switches, away]))
    sampled = samples_of(builder.build(run))
    assert any(thread.tid == 4202 for layer in sampled.layers for thread in layer.threads)
    assert {layer.path: layer.off_cpu_ns for layer in sampled.layers} == before


def test_without_a_pmu_a_kernels_cpi_follows_from_its_sampled_time(tmp_path: Path) -> None:
    sampled = samples_of(builder.build(runs.sampled_without_pmu(tmp_path)))
    assert (sampled.cpi_provenance, sampled.instructions_from) == ("instrumented", "instrumented")
    assert sampled.reference_ghz == runs.REFERENCE_GHZ
    of_conv = kernel(sampled, JIT, CONV)
    assert of_conv.cpi == pytest.approx(runs.REFERENCE_GHZ * of_conv.cpu_ns / 400_000)
    assert of_conv.cpi is not None and of_conv.cpi_low is not None and of_conv.cpi_high is not None
    assert of_conv.cpi_low < of_conv.cpi < of_conv.cpi_high
    whole = kernel(sampled, JIT)
    assert whole.cpi == pytest.approx(runs.REFERENCE_GHZ * whole.cpu_ns / 800_000)
    assert kernel(sampled, BARRIER).cpi is None, "waiting"
    assert kernel(sampled, SILU, ACT).samples < sampled.few_samples
    assert kernel(sampled, SILU, ACT).cpi is None, "few samples"


@pytest.mark.parametrize("change", ["fingerprint", "instruction_set"])
def test_instructions_of_other_work_are_not_joined(change: str, tmp_path: Path) -> None:
    run = runs.sampled_without_pmu(tmp_path)
    trace, counted = run.manifest.passes[1], run.manifest.passes[2]
    if change == "fingerprint":
        trace.fingerprint, counted.fingerprint = {"inputs": "1"}, {"inputs": "2"}
    else:
        counted.instruction_set = "SSE4.1"
    built = builder.build(run)
    sampled = samples_of(built)
    assert (sampled.cpi_provenance, sampled.instructions_from) == (None, None)
    assert all(one.cpi is None and one.instructions is None for one in sampled.kernels)
    assert sampled.cpi_missing is not None and sampled.cpi_missing.remedy is not None
    text = printed(built, 120)
    (note,) = [line for line in section_of(text, "Hot kernels") if " not available: " in line]
    assert sampled.cpi_missing.reason in note
    assert section_of(text, "Kernels by instructions, pass instrumented"), "its kernels stand in a table of their own"


def test_kernels_stand_in_one_table_of_the_report(tmp_path: Path) -> None:
    text = printed(builder.build(runs.sampled_without_pmu(tmp_path)), 120)
    assert "Hot kernels, pass trace" in text and "Layers by instructions, pass instrumented" in text
    assert "Kernels by instructions" not in text
    (row,) = [line for line in section_of(text, "Hot kernels") if line.startswith(JIT)]
    assert " ±" in row and f"69% {CONV}" in row


def section_of(text: str, title: str) -> list[str]:
    lines = text.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(title))
    end = next((number for number in range(start, len(lines)) if not lines[number]), len(lines))
    return lines[start + 1 : end]


def test_without_samples_the_column_is_dashes_with_the_remedy(tmp_path: Path) -> None:
    run = runs.sampled_without_pmu(tmp_path)
    (run.path / "samples.parquet").unlink()
    built = builder.build(run)
    assert built.part(Kernels) is None
    text = printed(built, 120)
    assert "Hot kernels" not in text
    (note,) = [line for line in section_of(text, "Kernels by instructions") if " not available: " in line]
    assert note.startswith("  – ") and "Try: hwprof collect --passes measure,trace" in note


def test_a_sampler_that_failed_says_why_there_are_no_kernels(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = runs.without_pmu(tmp_path)
    said = CollectorRecord(
        name="sampler", role=Role.SAMPLER, state="unavailable", reason="perf_event_paranoid is 3", remedy="lower it"
    )
    run.manifest.passes[1].collectors.append(said)
    run.save_manifest()
    assert command(run, "--kernels") == 1
    assert "perf_event_paranoid is 3. Try: lower it" in capsys.readouterr().err


def test_few_samples_are_told_with_what_brings_more(tmp_path: Path) -> None:
    built = builder.build(runs.sampled(tmp_path))
    (note,) = samples_of(built).notes
    assert note.startswith(f"only {samples_of(built).samples} samples")
    assert "--frequency 40003" in note and "--sample-passes measure" in note


def test_losses_are_shown(tmp_path: Path) -> None:
    run = runs.sampled(tmp_path)
    run.manifest.passes[1].collectors[-1].detail |= {"lost": 1234, "throttled": 5, "kernel": False}
    built = builder.build(run)
    assert (samples_of(built).lost, samples_of(built).kernel_sampled) == (1234, False)
    section = section_of(printed(built, 100), "Hot kernels")
    (troubles,) = [line for line in section if "1,234" in line]
    assert "5" in re.findall(r"\d+", troubles)


@pytest.mark.parametrize(("each", "shown"), [(1, "trace"), (200, "measure")])
def test_the_pass_with_the_most_samples_is_shown(each: int, shown: str, tmp_path: Path) -> None:
    run = runs.sampled(tmp_path)
    samples, kernels = run.read("samples"), run.read("kernels")
    spans = run.read("spans").filter((pl.col("pass") == "measure") & (pl.col("path") == CONV))
    times = spans["begin_ns"].to_list() * each
    few = samples.head(1).select(pl.all().exclude("time_ns")).join(pl.DataFrame({"time_ns": times}), how="cross")
    for table, frame in (("samples", few.select(samples.columns)), ("kernels", kernels)):
        both = pl.concat([run.read(table), frame.with_columns(pl.lit("measure").alias("pass"))])
        write_table(run.path / f"{table}.parquet", table, both)
    assert samples_of(builder.build(run)).pass_name == shown


def test_code_without_any_names_is_counted(tmp_path: Path) -> None:
    """As where naming failed: samples without kernels."""
    run = runs.sampled(tmp_path)
    runs.change_table(run, "samples", pl.lit(None, pl.Int32).alias("kernel"))
    built = builder.build(run)
    sampled = samples_of(built)
    assert (sampled.named_share, sampled.unknown) == (0, sampled.samples)
    assert [(one.kernel, one.library) for one in sampled.kernels if one.layer is None] == [("(unnamed)", "[unknown]")]
    assert any(line.endswith("100.0%") or "100.0%;" in line for line in section_of(printed(built, 100), "Hot kernels"))


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", ["sampled", "sampled_without_pmu"])
def test_snapshot(name: str, width: int, tmp_path: Path) -> None:
    """The report's section, --kernels, and --layer of a layer and of a module."""
    built = builder.build(getattr(runs, name)(tmp_path), 3)
    report = printed(built, width).splitlines()
    parts = [
        "\n".join(["Hottest layers", *section(report, "Hottest layers")]),
        "\n".join(["Hot kernels", *section(report, "Hot kernels")]),
        *(printed(built, width, part, full_names=True) for part in ("", CONV, "model.1", "unattributed")),
    ]
    assert_snapshot(f"{name}-{width}", "\n\n=====\n".join(part.rstrip() for part in parts) + "\n")


def test_every_part_fits_every_width(tmp_path: Path) -> None:
    built = builder.build(runs.sampled_without_pmu(tmp_path), 3)
    for width in (40, 60, 80, 100, 120, 200):
        for path in ("", CONV, "model"):
            text = printed(built, width, path, full_names=True)
            assert max(map(cell_len, text.splitlines())) <= width
            assert JIT in text, (width, part)


def test_a_modules_kernels_are_those_of_its_layers_together(tmp_path: Path) -> None:
    built = builder.build(runs.sampled_without_pmu(tmp_path))
    sampled = samples_of(built)
    found = one_layer_of(built, "model")
    assert [layer.path for layer in found.layers] == [layer.path for layer in layer_rows(built)]
    (jit,) = [one for one in found.kernels if one.kernel == JIT]
    whole = kernel(sampled, JIT)
    assert (jit.samples, jit.instructions, jit.layer) == (whole.samples, whole.instructions, "model")
    for figure in ("cpu_ns", "cpi", "cpi_low", "cpi_high"):
        assert getattr(jit, figure) == pytest.approx(getattr(whole, figure), rel=1e-6), figure
    assert jit.share_of_kernel == pytest.approx(1)
    assert sum(one.share or 0 for one in found.kernels) == pytest.approx(1)
    (act,) = one_layer_of(built, "model.1").by_layer[1:]
    assert act.sampled.path == ACT
    assert sum(thread.samples for thread in found.threads) == sum(layer.samples for layer in found.sampled)


def test_a_modules_time_is_that_of_its_own_calls(tmp_path: Path) -> None:
    """And what it does between its layers is in it; the layers' sum stands beside it."""
    run = runs.sampled_without_pmu(tmp_path)
    inner_ns = 5_000_000
    inner = (pl.col("path") == "model.1") & (pl.col("kind") == "layer")
    later = pl.when(inner).then(pl.col("end_ns") + inner_ns).otherwise("end_ns")
    runs.change_table(run, "spans", later.alias("end_ns"))
    built = builder.build(run)
    found, module = one_layer_of(built, "model.1"), next(one for one in layers_of(built) if one.path == "model.1")
    assert found.mean_ns is not None and found.leaves_mean_ns is not None
    assert module.time is not None and found.mean_ns == module.time.mean_ns
    assert found.mean_ns > found.leaves_mean_ns + inner_ns - 1
    assert (found.share or 0) > (found.leaves_share or 0) > 0
    text = printed(built, 120, "model.1")
    assert f"{found.mean_ns / 1e6:.2f} ms (mean)" in text
    assert "in its leaf layers" in text
    whole = one_layer_of(built, "model")
    assert (whole.mean_ns, whole.share) == (None, None)


def test_measured_rates_of_several_layers_are_weighted_by_instructions(tmp_path: Path) -> None:
    built = builder.build(runs.sampled(tmp_path))
    (jit,) = [one for one in one_layer_of(built, "model").kernels if one.kernel == JIT]
    assert jit.cpi == pytest.approx(kernel(samples_of(built), JIT).cpi)
    assert jit.llc_mpki == pytest.approx(kernel(samples_of(built), JIT).llc_mpki)


@pytest.mark.parametrize(
    ("path", "near"),
    [("model.1.cv1.cnv", CONV), ("cv1.conv", CONV), ("nothing", "hwprof report names the hottest ones")],
)
def test_an_unknown_layer_is_refused_with_the_nearest(path: str, near: str, tmp_path: Path) -> None:
    built = builder.build(runs.sampled(tmp_path))
    with pytest.raises(UsageError, match="there is no layer") as caught:
        one_layer_of(built, path)
    assert near in (caught.value.remedy or "")


def command(run: RunDirectory, *arguments: str) -> int:
    return app.run(["report", str(run.path), *arguments])


def test_parts_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = runs.sampled_without_pmu(tmp_path)
    assert command(run, "--layer", "model.1", "--format", "json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [layer["path"] for layer in found["layers"]] == [CONV, ACT]
    assert {one["kernel"] for one in found["kernels"]} == {JIT, SILU, BARRIER}
    assert command(run, "--kernels", "--top", "1", "--format", "json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["sampled"]["path"] for one in found["layers"]] == [CONV]
    ((jit, layers),) = [(one["kernel"]["kernel"], one["layers"]) for one in found["kernels"]]
    assert (jit, [one["layer"] for one in layers]) == (JIT, [CONV, OTHER_CONV])


def test_the_command_prints_parts_with_full_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = runs.sampled(tmp_path)
    assert command(run, "--kernels", "--width", "100") == 0
    assert "TensorIterator" not in capsys.readouterr().out
    assert command(run, "--kernels", "--full-names", "--width", "100") == 0
    assert "at::native::silu_kernel(at::TensorIterator&)" in capsys.readouterr().out
    assert command(run, "--layer", CONV, "--width", "100") == 0
    assert "\nThreads" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "kind"), [(("--layer", "any"), "OneLayer"), (("--kernels",), "HotKernels"), ((), "Document")]
)
def test_every_parts_json_has_its_schema(
    arguments: tuple[str, ...], kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.run(["report", *arguments, "--format", "json-schema"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["$ref"] == f"#/$defs/{kind}"


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("--layer", "model.7"), 2, "there is no layer 'model.7'"),
        (("--layer", CONV, "--kernels"), 2, "are two reports"),
        (("--full-names",), 2, "--full-names goes with"),
    ],
)
def test_bad_usage_is_one_line(
    arguments: tuple[str, ...], code: int, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(runs.sampled(tmp_path), *arguments) == code
    told = capsys.readouterr().err
    assert says in told and told.count("\n") == 1


def test_kernels_of_a_run_without_samples(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = runs.without_pmu(tmp_path)
    assert command(run, "--kernels") == 1
    assert "no completed pass took samples" in capsys.readouterr().err
    assert command(run, "--layer", CONV) == 0
    assert "not available: no completed pass took samples" in capsys.readouterr().out


def test_samples_of_no_timed_iteration_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = runs.sampled(tmp_path)
    runs.change_table(run, "samples", pl.lit(1, pl.Int64).alias("time_ns"))
    number = run.read("samples").height
    assert command(run, "--kernels") == 1
    assert f"all {number:,} samples of pass trace lie outside" in capsys.readouterr().err
    absent = builder.build(run).absent
    assert absent["threads"] == absent["kernels"]


def test_a_layer_without_samples_has_the_kernels_that_were_counted(tmp_path: Path) -> None:
    run = runs.sampled_without_pmu(tmp_path)
    (run.path / "samples.parquet").unlink()
    text = printed(builder.build(run), 80, CONV)
    (row,) = [line for line in section_of(text, "Kernels by instructions") if line.startswith(JIT)]
    assert row.split()[1:5] == ["jit", "400", "k", "100.0%"]
    assert text.count(" not available: ") == 1


def test_csv_and_json_hold_it(tmp_path: Path) -> None:
    built = builder.build(runs.sampled_without_pmu(tmp_path))
    assert codec.decode(codec.encode(built)) == built
    frames = csv_frames(built)
    sampled = samples_of(built)
    layers, kernels = frames["layers_sampled.csv"], frames["kernels_sampled.csv"]
    assert layers["path"].to_list() == [layer.path for layer in sampled.layers]
    row = kernels.row(by_predicate=(pl.col("layer") == CONV) & (pl.col("kernel") == JIT), named=True)
    assert row["cpi_instrumented_cycles_per_instruction"] == kernel(sampled, JIT, CONV).cpi
    assert row["cpu_time_ns"] == kernel(sampled, JIT, CONV).cpu_ns
    measured = csv_frames(builder.build(runs.sampled(tmp_path / "pmu")))["kernels_sampled.csv"]
    assert measured.filter(pl.col("layer").is_null() & (pl.col("kernel") == JIT))["cpi_cycles_per_instruction"][0] > 1


def test_selections_can_be_read_back(tmp_path: Path) -> None:
    built = builder.build(runs.sampled(tmp_path))
    for found in (one_layer_of(built, CONV), hot_kernels_of(built, 2)):
        assert msgspec.json.decode(msgspec.json.encode(found), type=type(found)) == found
