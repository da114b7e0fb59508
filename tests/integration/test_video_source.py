"""A video through the command line: frames in and out, stages in the tables, and rates by them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from hwprof.analysis.iterations import select
from hwprof.run.directory import RunDirectory
from tests.support.command import hwprof, messages
from tests.support.requirements import require_module
from tests.support.videos import fps_of, frames_of, write_video

FRAMES = 6
PER_FRAME = ("read", "preprocess", "inference", "postprocess", "nms", "save")


@pytest.fixture(scope="module", autouse=True)
def _needs_models() -> None:
    require_module("ultralytics")


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunDirectory, str]:
    place = tmp_path_factory.mktemp("video")
    write_video(place / "clip.avi", frames=FRAMES, size=(96, 64), fps=10.0)
    arguments = ("--model", "yolov8n", "--imgsz", "64", "--source", "clip.avi", "--all-images", "--iterations", "3")
    done = hwprof("collect", *arguments, "--no-peaks", "--no-instrumented", cwd=place)
    assert done.returncode == 0, done.stderr
    return RunDirectory.latest(place / "results"), done.stdout


def test_every_stage_is_there_once_a_frame(collected: tuple[RunDirectory, str]) -> None:
    stages = collected[0].read("spans").filter(pl.col("kind") == "stage")
    assert stages["pass"].n_unique() > 1
    for _, rows in stages.group_by("pass", "iteration"):
        assert Counter(rows["path"]) == {"open": 1, **dict.fromkeys(PER_FRAME, FRAMES)}


def test_as_many_frames_come_out_as_went_in(collected: tuple[RunDirectory, str]) -> None:
    (drawn,) = (collected[0].path / "images").iterdir()
    assert (drawn.name, len(frames_of(drawn)), fps_of(drawn)) == ("clip.mp4", FRAMES, 10.0)


def test_the_record_describes_the_video(collected: tuple[RunDirectory, str]) -> None:
    record = json.loads((collected[0].path / "run.json").read_text())["workload"]
    assert record["video"] == {"width": 96, "height": 64, "fps": 10.0, "frames": FRAMES, "codec": "MJPG"}
    assert record["forwards"] == len(record["sources"]) == FRAMES


def test_rates_are_frames_over_the_medians(collected: tuple[RunDirectory, str]) -> None:
    run, shown = collected
    measure = next(record for record in run.manifest.passes if record.name == "measure")
    document = json.loads(hwprof("report", "--format", "json", str(run.path)).stdout)
    timed = list(select(measure.iterations).timed)
    rows = run.read("spans").filter((pl.col("pass") == "measure") & pl.col("iteration").is_in(timed))
    rows = rows.with_columns(ns=pl.col("end_ns") - pl.col("begin_ns"))
    rates = {}
    for name, which in (
        ("inference_per_s", (pl.col("kind") == "stage") & (pl.col("path") == "inference")),
        ("end_to_end_per_s", pl.col("kind") == "iteration"),
    ):
        median = rows.filter(which).group_by("iteration").agg(pl.col("ns").sum())["ns"].median()
        assert isinstance(median, float)
        rates[name] = FRAMES / median * 1e9
    told = document["throughput"]
    assert {name: told[name] for name in rates} == pytest.approx(rates)
    assert told["end_to_end_per_s"] < told["inference_per_s"]
    assert "frames/s" in shown and "frames/s end to end" in " ".join(shown.split())


def test_a_broken_video_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "clip.mp4").write_text("no video")
    done = hwprof("collect", "--model", "yolov8n", "--imgsz", "64", "--source", "clip.mp4", cwd=tmp_path)
    assert done.returncode == 2
    assert [line for line in messages(done.stderr) if "clip.mp4 is not a video" in line]
    assert "Traceback" not in done.stderr
