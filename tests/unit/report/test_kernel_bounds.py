"""What bounds kernels and primitives: columns of the terminal, CSV and JSON."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import polars as pl
import pytest

from hwprof.cli import app
from hwprof.report.document import builder
from hwprof.report.document.kernels import Kernels
from hwprof.report.document.primitives import Primitives
from hwprof.report.document.roofline import CodeUnderRoofs
from tests.support import synthetic_samples
from tests.support import synthetic_variants as runs
from tests.support.document_parts import csv_frames, part, replaced
from tests.support.machine_peaks import ZEN
from tests.support.sampled_report import CONV, printed
from tests.support.snapshots import section
from tests.support.synthetic_run import build

NOTE = "bound: of the code while it runs"


def test_kernels_and_their_layers_have_their_bound(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = runs.kernels_under_roofs(tmp_path)
    built = builder.build(run, 3)
    found = [one for one in part(built, Kernels).kernels if one.layer == CONV and one.roofline is not None]
    assert found and found[0].roofline is not None
    page = printed(built, 140, "")
    row = next(line for line in page.splitlines() if line.startswith(f"  {found[0].kernel}"))
    assert row.rstrip().endswith(found[0].roofline.bound) and NOTE in page
    assert next(line for line in page.splitlines() if line.startswith(CONV)).split()[-1] != "1", "the layer's own"
    assert app.run(["report", str(run.path), "--kernels", "--format", "json"]) == 0
    layers = json.loads(capsys.readouterr().out)["layers"]
    kernel = next(one for one in layers if one["sampled"]["path"] == CONV)["kernels"][0]
    assert kernel["roofline"]["bound"] == found[0].roofline.bound
    frame = csv_frames(built)["kernels_sampled.csv"]
    known = frame.filter(layer=CONV, kernel=found[0].kernel)
    assert known["bound"].to_list() == [found[0].roofline.bound]
    assert known["gflops_per_second"].to_list() == pytest.approx([found[0].roofline.gflops])
    assert "roofline" not in frame.columns


@pytest.mark.parametrize("width", [80, 120])
def test_without_peaks_there_is_neither_column_nor_note(width: int, tmp_path: Path) -> None:
    page = printed(builder.build(runs.sampled_without_pmu(tmp_path), 3), width, "")
    assert "bound" not in page


UNDER = CodeUnderRoofs(
    gflops=400.0,
    gflops_from="analytic",
    threads=2.0,
    gbytes={"DRAM": 4.0},
    bytes_from={"DRAM": "modelled"},
    intensity={"DRAM": 100.0},
    roof="FP32",
    share_of_roof=0.77,
    bound="compute",
    evidence="77% of the FP32 roof",
    confidence="high",
)


def test_primitives_have_their_bound(tmp_path: Path) -> None:
    run = build(tmp_path)
    synthetic_samples.add_primitives(run)
    built = builder.build(run)
    known = part(built, Primitives)
    assert all(one.roofline is None for one in known.by_layer), "no peaks, and no problem that says its operations"
    rows = [
        msgspec.structs.replace(one, roofline=UNDER) if number else one for number, one in enumerate(known.by_layer)
    ]
    built = replaced(built, msgspec.structs.replace(known, by_layer=rows))
    lines = section(printed(built, 160).splitlines(), "oneDNN")
    head = next(line for line in lines if line.startswith("layer"))
    assert {"GFLOP/s", "bound"} <= set(head.split())
    assert any("compute" in line and "77.0%" in line for line in lines) and any(NOTE in line for line in lines)
    frame = csv_frames(built)["primitives.csv"]
    assert frame["bound"].to_list() == [None, *["compute"] * (len(rows) - 1)]


def test_primitives_of_a_run_with_peaks(tmp_path: Path) -> None:
    run = build(tmp_path)
    synthetic_samples.add_primitives(run)
    sizes = "mb1_ic64oc64_ih40oh40kh3sh1dh0ph1_iw40ow40kw3sw1dw0pw1"
    runs.change_table(run, "primitives", pl.lit(sizes).alias("problem"))
    run.manifest.peaks = ZEN
    known = [one for one in part(builder.build(run), Primitives).by_layer if one.primitive == "convolution"]
    assert known and all(one.flops == 2 * 64 * 64 * 9 * 1600 * one.executions for one in known)
    for one in known:
        assert one.roofline is not None and one.flops is not None
        assert one.roofline.gflops == pytest.approx(one.flops / one.time_ns)
        assert one.roofline.gflops_from == "analytic"
