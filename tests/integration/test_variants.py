"""Runs of variants, through the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.support.command import TESTS_MODELS, collect, hwprof, hwprof_here
from tests.support.requirements import require_module

FEW = ("--iterations", "3", "--warmup", "1", "--no-peaks", "--passes", "measure", "--no-instrumented")
YOLO = ("--model", "yolov8n", "--imgsz", "64")


@pytest.fixture(autouse=True)
def requirements() -> None:
    require_module("ultralytics")


def document(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(hwprof_here("report", str(run), "--format", "json").stdout)
    return found


def test_bfloat16_in_channels_last_says_how_far_off_it_is(tmp_path: Path) -> None:
    run = collect(tmp_path, *YOLO, *FEW, "--variant", "channels_last,bfloat16")
    variant = document(run.path)["workload"]["variant"]
    assert variant["names"] == ["channels_last", "bfloat16"]
    assert 1e-6 < variant["outputs"]["mean"] < variant["outputs"]["largest"] < 0.5
    boxes = variant["boxes"]
    assert 0 < boxes["matched"] <= min(boxes["without"], boxes["found"])
    shown = hwprof_here("report", str(run.path)).stdout
    assert "yolov8n channels_last+bfloat16" in shown and any(word in shown for word in ("AGREES to ", "DIFFER to "))


def test_torchscript_is_one_layer_with_all_macs(tmp_path: Path) -> None:
    for name in ("eager", "script"):
        (tmp_path / name).mkdir()
    eager = collect(tmp_path / "eager", *YOLO, *FEW)
    script = collect(tmp_path / "script", *YOLO, *FEW, "--variant", "torchscript")
    (row,) = pl.read_parquet(script.path / "layers.parquet").to_dicts()
    layers = pl.read_parquet(eager.path / "layers.parquet")
    assert row["leaf"] and row["compiled"] and row["macs"] == layers.filter("leaf")["macs"].sum()
    spans = pl.read_parquet(script.path / "spans.parquet").filter(kind="layer")
    assert set(spans["path"]) == {row["path"]} and spans.height == 2 * (3 + 1)
    assert document(script.path)["workload"]["variant"]["outputs"]["largest"] < 1e-4


def test_what_is_not_fused_has_its_batch_norms(tmp_path: Path) -> None:
    run = collect(tmp_path, *YOLO, *FEW, "--variant", "unfused,threads=1")
    layers = pl.read_parquet(run.path / "layers.parquet")
    assert layers.filter(type="BatchNorm2d", leaf=True).height > 50
    workload = document(run.path)["workload"]
    assert not workload["fused"] and workload["threads"] == 1
    variant = workload["variant"]
    assert variant["names"] == ["unfused", "threads=1"] and 0 < variant["outputs"]["largest"] < 1e-3
    assert variant["boxes"]["matched"] == variant["boxes"]["without"] == variant["boxes"]["found"] > 5


def test_its_environment_reaches_the_process(tmp_path: Path) -> None:
    model = ("--model", "tests.support.models.remedies:factory")
    run = collect(tmp_path, *model, *FEW, "--variant", "active_wait", environment=TESTS_MODELS)
    time_ns = document(run.path)["layers"]["whole"]["time"]["median_ns"]
    assert 25e6 < time_ns < 39e6, "40 ms without, 30 ms with it"


def test_what_cannot_be_done_is_a_line(tmp_path: Path) -> None:
    told = hwprof("collect", *YOLO, *FEW, "--variant", "int8", cwd=tmp_path)
    assert told.returncode == 1 and "no Linear layers" in told.stderr and "Traceback" not in told.stderr
    told = hwprof("collect", *YOLO, "--variant", "magic", cwd=tmp_path)
    assert told.returncode == 2 and "there is no remedy or variant magic" in told.stderr
