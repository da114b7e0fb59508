"""Samples in the report: figures by layer and kernel, and what they rest on."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import msgspec
import polars as pl
import pytest

from hwprof.analysis import no_cpi
from hwprof.analysis.owners import OWN, UNATTRIBUTED
from hwprof.analysis.reasons import Missing
from hwprof.report.document import builder
from hwprof.report.document.kernels import Kernels
from hwprof.report.json import codec
from hwprof.report.text import hot_kernels, kernel_cells
from hwprof.report.text.console import make_console
from hwprof.report.text.page import Page
from hwprof.run.directory import RunDirectory, write_table
from hwprof.run.manifest import CollectorRecord
from hwprof.run.roles import Role
from tests.support import synthetic_samples
from tests.support import synthetic_variants as runs
from tests.support.document_parts import csv_frames, replaced
from tests.support.rounded import is_same
from tests.support.sampled_report import (
    ACT,
    BARRIER,
    CONV,
    JIT,
    OTHER_CONV,
    SILU,
    command,
    kernel,
    printed,
    samples_of,
    section_of,
)
from tests.support.snapshots import section
from tests.support.synthetic_samples import PERIOD_NS


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


def test_a_printed_command_can_be_pasted(tmp_path: Path) -> None:
    """A layer's name may hold what a shell takes for something else."""
    built = builder.build(runs.sampled(tmp_path))
    sampled = samples_of(built)
    hottest = msgspec.structs.replace(sampled.layers[0], path="(root) (own)")
    renamed = replaced(built, msgspec.structs.replace(sampled, layers=[hottest, *sampled.layers[1:]]))
    (line,) = [line for line in printed(renamed, 200).splitlines() if "report --layer" in line]
    assert shlex.split(line)[-1] == "(root) (own)"


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
    assert (sampled.reference_ghz, sampled.core_ghz) == (runs.REFERENCE_GHZ, None)
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
    below = text[text.index("Hot kernels") :].splitlines()
    (note,) = [line for line in below if "CPI not available: " in line]
    assert sampled.cpi_missing.reason in note
    assert section_of(text, "Kernels by instructions, pass instrumented"), "its kernels stand in a table of their own"


def test_kernels_stand_in_one_table_of_the_report(tmp_path: Path) -> None:
    text = printed(builder.build(runs.sampled_without_pmu(tmp_path)), 120)
    assert "Hot kernels, pass trace" in text and "Layers by instructions, pass instrumented" in text
    assert "Kernels by instructions" not in text
    (row,) = [line for line in section_of(text, "Hot kernels") if line.startswith(JIT)]
    assert " ±" in row and f"69% {CONV}" in row


def test_without_samples_the_column_is_dashes_with_the_remedy(tmp_path: Path) -> None:
    run = runs.sampled_without_pmu(tmp_path)
    (run.path / "samples.parquet").unlink()
    built = builder.build(run)
    assert built.part(Kernels) is None
    text = printed(built, 120)
    assert "Hot kernels" not in text
    (note,) = [line for line in section_of(text, "Kernels by instructions") if " not available: " in line]
    assert note.startswith("  – ") and "Try: collect with --passes measure,trace" in note


def why_no_cpi(run: RunDirectory) -> Missing:
    """Of the column of layers."""
    (metric,) = [one for one in builder.build(run).metrics if one.name == "cpi"]
    assert metric.missing is not None
    return metric.missing


def test_samples_that_are_too_few_in_layers_are_told_with_what_brings_more(tmp_path: Path) -> None:
    run = runs.sampled_without_pmu(tmp_path)
    sampled = samples_of(builder.build(run))
    inside = run.read("samples").filter(pl.col("kernel") == synthetic_samples.JIT)
    timed = run.manifest.passes[1].iterations
    assert sampled.iterations > 1 and timed
    few = inside.sort("time_ns").gather_every(max(inside.height // 8, 1))
    write_table(run.path / "samples.parquet", "samples", few)
    number = samples_of(builder.build(run)).samples
    assert 0 < number < sampled.few_samples
    missing = why_no_cpi(run)
    assert str(number) in missing.reason
    assert missing.remedy is not None and "--frequency 40003" in missing.remedy
    assert "--passes measure,trace" not in missing.remedy, "that is what was run"


def test_a_sampler_that_was_left_out_is_the_reason(tmp_path: Path) -> None:
    run = runs.sampled_without_pmu(tmp_path)
    (run.path / "samples.parquet").unlink()
    trace = run.manifest.passes[1]
    trace.collectors = [one for one in trace.collectors if one.name != "sampler"]
    run.save_manifest()
    missing = why_no_cpi(run)
    assert missing.remedy is not None and "--no-sampler" in missing.remedy


def test_instructions_are_those_of_all_code_as_the_share_is_and_cpi_is_of_leaf_layers(tmp_path: Path) -> None:
    run = runs.sampled_without_pmu(tmp_path)
    before = kernel(samples_of(builder.build(run)), JIT)
    counts, spans = run.read("kernel_counts"), run.read("spans")
    whole = spans.filter((pl.col("pass") == "instrumented") & (pl.col("path") == "inference"))["span"][0]
    more = (pl.col("span") == whole) & (pl.col("kernel") == synthetic_samples.JIT)
    changed = counts.with_columns(pl.when(more).then(pl.col("value") + 1000).otherwise("value").alias("value"))
    write_table(run.path / "kernel_counts.parquet", "kernel_counts", changed)
    after = kernel(samples_of(builder.build(run)), JIT)
    assert before.instructions is not None and after.instructions == before.instructions + 1000
    assert after.cpi == before.cpi is not None


def test_each_dash_has_its_reason(tmp_path: Path) -> None:
    run = runs.sampled_without_pmu(tmp_path)
    built = builder.build(run)
    sampled = samples_of(built)
    without = [one for one in (*sampled.layers, *sampled.kernels) if one.cpi is None]
    waiting = [one for one in sampled.kernels if one.waits is not None]
    assert [one for one in without if one.cpi_missing is None] == [one for one in waiting if one.cpi is None]
    assert all(one.cpi_missing is None for one in (*sampled.layers, *sampled.kernels) if one.cpi is not None)
    assert kernel(sampled, SILU, ACT).cpi_missing == no_cpi.FEW
    between = [layer.cpi_missing for layer in sampled.layers if is_own(layer.path)]
    assert set(between) <= {no_cpi.OWN_CODE}


def is_own(path: str) -> bool:
    return path == UNATTRIBUTED or path.endswith(OWN)


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


def with_a_small_kernel_in_a_large_layer(root: Path) -> RunDirectory:
    """Three samples of the worker in ``SILU`` are less than 1% of ``CONV``, and most of that kernel."""
    run = runs.sampled(root)
    samples = run.read("samples")
    spans = run.read("spans").filter((pl.col("pass") == "trace") & pl.col("path").is_in([CONV, ACT]))
    begun = {path: spans.filter(pl.col("path") == path)["begin_ns"].to_list()[-1] for path in (CONV, ACT)}
    silu = samples.filter(pl.col("kernel") == synthetic_samples.TORCH).head(1)
    others = samples.filter(pl.col("kernel") != synthetic_samples.TORCH)

    def moved(rows: pl.DataFrame, path: str, times: int) -> pl.DataFrame:
        return pl.concat([rows.with_columns(time_ns=pl.lit(begun[path] + at, pl.Int64)) for at in range(times)])

    many = moved(others.filter(pl.col("kernel") == synthetic_samples.JIT).head(1), CONV, 400)
    frame = pl.concat([others, many, moved(silu, CONV, 3), moved(silu, ACT, 1)])
    write_table(run.path / "samples.parquet", "samples", frame.sort("time_ns"))
    return run


def test_a_kernel_that_is_listed_has_all_of_its_layers(tmp_path: Path) -> None:
    """Also those of which it is a very small part."""
    built = builder.build(with_a_small_kernel_in_a_large_layer(tmp_path))
    sampled = samples_of(built)
    assert (kernel(sampled, SILU, CONV).share or 0) < sampled.least_share
    assert kernel(sampled, SILU, CONV).share_of_kernel == 3 / 4
    (row,) = [line for line in section_of(printed(built, 120), "Hot kernels") if line.startswith(SILU)]
    assert row.endswith(f"75% {CONV}")
    frame = csv_frames(built)["kernels_sampled.csv"]
    whole = dict(frame.filter(pl.col("layer").is_null()).select("kernel", "samples").iter_rows())
    layers = frame.filter(pl.col("layer").is_not_null()).group_by("kernel").agg(pl.col("samples").sum())
    assert {name: whole[name] for name in whole} == dict(layers.iter_rows())


def test_layers_of_a_kernel_beyond_the_shown_ones_are_summed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hot_kernels, "SHOWN", 1)
    text = printed(builder.build(with_a_small_kernel_in_a_large_layer(tmp_path)), 120, "")
    lines = section_of(text, "Layers of the hottest kernels")
    assert lines[lines.index(next(line for line in lines if line.startswith(SILU))) + 2] == "  1 other layer, 1 sample"


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


def test_samples_of_no_timed_iteration_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = runs.sampled(tmp_path)
    runs.change_table(run, "samples", pl.lit(1, pl.Int64).alias("time_ns"))
    number = run.read("samples").height
    assert command(run, "--kernels") == 1
    assert f"all {number:,} samples of pass trace lie outside" in capsys.readouterr().err
    absent = builder.build(run).absent
    assert absent["threads"] == absent["kernels"]


def test_csv_and_json_hold_it(tmp_path: Path) -> None:
    built = builder.build(runs.sampled_without_pmu(tmp_path))
    assert is_same(codec.decode(codec.encode(built)), built)
    frames = csv_frames(built)
    sampled = samples_of(built)
    layers, kernels = frames["layers_sampled.csv"], frames["kernels_sampled.csv"]
    assert layers["path"].to_list() == [layer.path for layer in sampled.layers]
    row = kernels.row(by_predicate=(pl.col("layer") == CONV) & (pl.col("kernel") == JIT), named=True)
    assert row["cpi_instrumented_cycles_per_instruction"] == kernel(sampled, JIT, CONV).cpi
    assert row["cpu_time_ns"] == kernel(sampled, JIT, CONV).cpu_ns
    measured = csv_frames(builder.build(runs.sampled(tmp_path / "pmu")))["kernels_sampled.csv"]
    assert measured.filter(pl.col("layer").is_null() & (pl.col("kernel") == JIT))["cpi_cycles_per_instruction"][0] > 1


def test_at_80_columns_kernels_keep_the_layers_that_they_are_in(tmp_path: Path) -> None:
    """The way from a kernel back to its layer is what the table is for."""
    built = builder.build(runs.sampled_without_pmu(tmp_path), 3)
    found = samples_of(built)
    longer = [msgspec.structs.replace(row, kernel=f"{row.kernel}_avx512_core_convolution") for row in found.kernels]
    narrow = printed(replaced(built, msgspec.structs.replace(found, kernels=longer)), 80)
    lines = section(narrow.splitlines(), "Hot kernels")
    assert "mainly in" in lines[0] and "CPI~" in lines[0]
    (row,) = [line for line in lines if "jit_conv" in line]
    assert row.endswith("69% model.1.cv1.conv")


def test_libraries_are_named_and_their_versions_tell_only_two_of_a_name_apart(tmp_path: Path) -> None:
    kernels = samples_of(builder.build(runs.sampled(tmp_path))).kernels[:4]
    names = ["libpython3.11.so.1.0", "libomp.so.5", "libomp.so.6", "[kernel]"]
    rows = [msgspec.structs.replace(one, library=name) for one, name in zip(kernels, names, strict=True)]
    assert kernel_cells.libraries([*rows, None]) == ["libpython3.11", *names[1:], ""]


def test_kinds_of_waiting_are_one_short_label(tmp_path: Path) -> None:
    built = builder.build(runs.sampled(tmp_path))
    kernels = samples_of(built).kernels[:2]
    page = Page(built, make_console(80))
    rows = [
        msgspec.structs.replace(one, waits=cause, share=share)
        for one, cause, share in zip(kernels, ("context switch", "OpenMP"), (0.01, 0.4), strict=True)
    ]
    assert kernel_cells.waiting_line(rows, page) == ["waiting (mostly OpenMP): 41.0%"]


def test_waiting_is_one_line_below_the_work(tmp_path: Path) -> None:
    """However much of it there is: the table ranks kernels that work."""
    built = builder.build(runs.sampled(tmp_path))
    sampled = samples_of(built)
    barrier = kernel(sampled, BARRIER)
    assert (barrier.waits, kernel(sampled, JIT).waits) == ("OpenMP", None)
    assert [row.cause for row in sampled.waiting] == [None, "OpenMP"]
    assert sampled.waiting[0].share == pytest.approx(barrier.share)
    text = printed(built, 160)
    table = text[text.index("\nHot kernels") :].partition("\nThreads")[0].splitlines()
    assert not any(BARRIER in line for line in table)
    (line,) = [line for line in table if line.startswith("waiting ")]
    assert f"{barrier.share:.1%} ±" in line and "waits" in line
    (note,) = [line for line in table if line.startswith("  waiting: ")]
    assert f"OpenMP {barrier.share:.1%}" in note


@pytest.mark.parametrize("path", ["", CONV])
def test_pages_of_kernels_rank_work_too(tmp_path: Path, path: str) -> None:
    text = printed(builder.build(runs.sampled(tmp_path)), 160, path)
    assert not any(line.strip().startswith(BARRIER) for line in text.splitlines())
    assert any(line.strip().startswith("waiting (OpenMP): ") for line in text.splitlines())
