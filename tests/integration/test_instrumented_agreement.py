"""What instrumentation counts agrees with itself, with arithmetic, and with callgrind, on a real model."""

from __future__ import annotations

import platform
from pathlib import Path

import polars as pl
import pytest

from hwprof.run.directory import RunDirectory
from hwprof.workload.sources.image_paths import find_images
from scripts.benchmarks.instrumented_proofs import (
    AS_CALLGRIND,
    CALLGRIND,
    INSTRUMENTED,
    MODEL_CODE,
    collect,
    convolutions,
    deviation,
    in_mkl,
    instructions,
)
from tests.support.requirements import require_module, require_tool

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="code is instrumented on x86-64")

YOLOV8N = ("--model", "yolov8n", "--imgsz", "320", "--warmup", "1")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_module("frida")
    require_module("ultralytics")
    return tmp_path_factory.mktemp("agreement")


@pytest.fixture(scope="module")
def two_threads(place: Path) -> RunDirectory:
    return collect(place / "one", *YOLOV8N, "--threads", "2", "--counters", INSTRUMENTED)


def test_two_runs_count_the_same_in_every_layer(two_threads: RunDirectory, place: Path) -> None:
    again = collect(place / "other", *YOLOV8N, "--threads", "2", "--counters", INSTRUMENTED)
    counted, recounted = (instructions(run, INSTRUMENTED, MODEL_CODE) for run in (two_threads, again))
    difference, free = deviation(counted, recounted), in_mkl(two_threads) | in_mkl(again)
    same = {path: share for path, share in difference.layers.items() if path not in free}
    assert len(same) > 90
    assert max(map(abs, same.values())) <= 0.001
    assert abs(sum(recounted[path] for path in same) / sum(counted[path] for path in same) - 1) < 0.0001


def test_convolutions_have_the_flops_that_their_shapes_ask_for(two_threads: RunDirectory) -> None:
    """On small maps oneDNN takes an algorithm that multiplies by the zeros of the padding, too."""
    found = convolutions(two_threads)
    assert len(found) == 64
    free = in_mkl(two_threads)
    assert len(free) < len(found) / 2
    unexplained = {path: counted for path, counted in found.items() if path not in free and not counted.explained(0.02)}
    assert len(unexplained) <= 0.05 * len(found), unexplained
    assert sum(counted.leaves_padding_out(0.02) for counted in found.values()) > len(found) / 2


@pytest.fixture(scope="module")
def by_both(place: Path) -> tuple[RunDirectory, RunDirectory]:
    """The same forward, of one photograph, on one thread in SSE4.1, with the caches of this machine: instrumented, and
    under callgrind."""
    require_tool("valgrind")
    one_thread = (*YOLOV8N, "--threads", "1", "--source", str(find_images(None)[0]))
    instrumented = collect(place / "sse41", *one_thread, "--cache-model", environment=AS_CALLGRIND)
    return instrumented, collect(place / "callgrind", *one_thread, "--counters", CALLGRIND, "--cache-sim")


def test_callgrind_counts_as_many_instructions(by_both: tuple[RunDirectory, RunDirectory]) -> None:
    """It counts every repetition of a rep instruction, and libc and Python take different ways under it."""
    instrumented, emulated = by_both
    whole = deviation(instructions(instrumented, INSTRUMENTED), instructions(emulated, CALLGRIND))
    assert abs(whole.whole) < 0.005
    assert whole.within(0.005) >= 0.9 * len(whole.layers)
    kernels = deviation(instructions(instrumented, INSTRUMENTED, ["jit"]), instructions(emulated, CALLGRIND, ["jit"]))
    assert kernels.within(1e-5) == len(kernels.layers) > 20


def test_callgrind_simulates_as_many_misses_of_l1d(by_both: tuple[RunDirectory, RunDirectory]) -> None:
    """What callgrind has behind the same L1D is another model: no L2."""
    instrumented, emulated = by_both
    simulated = inference_count(instrumented, INSTRUMENTED, "cache-model.l1d-misses")
    assert simulated == pytest.approx(inference_count(emulated, CALLGRIND, "callgrind.l1d-misses"), rel=0.02)


def inference_count(run: RunDirectory, which: str, event: str) -> int:
    """Of the inference stages of the last iteration."""
    mine = pl.col("pass") == which
    stages = run.scan("spans").filter(mine & (pl.col("kind") == "stage") & (pl.col("path") == "inference"))
    counts = run.scan("counts").filter(mine & (pl.col("event") == event))
    last = counts.filter(pl.col("iteration") == pl.col("iteration").max())
    return int(last.join(stages.select("span"), on="span", how="semi").select(pl.col("value").sum()).collect().item())
