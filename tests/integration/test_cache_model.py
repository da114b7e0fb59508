"""The cache model on loops whose misses arithmetic tells, through the collector: kernel by kernel, exactly."""

from __future__ import annotations

import json
import platform
import textwrap
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from hwprof.run.manifest import decode
from tests.support.command import hwprof
from tests.support.requirements import require_module
from tests.support.simulated_loops import CACHES, FEW, LINE, counted, misses

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="code is followed on x86-64")

WORKLOADS = {
    # name: bytes from one load to the next, loads of a round, rounds, misses in L1D, L2 and LLC of one round,
    # and of the first round
    "streaming, larger than all": (8, (4 << 20) // 8, 2, [65536] * 3, [65536] * 3),
    "resident in L1D": (8, 256, 4000, [0, 0, 0], [32, 32, 32]),
    "resident in L2": (8, 2048, 400, [256, 0, 0], [256, 256, 256]),
    "resident in the last level": (64, 2048, 400, [2048, 2048, 0], [2048, 2048, 2048]),
    "strided by as much as L1D has sets": (16 * LINE, 8, 50_000, [8, 0, 0], [8, 8, 8]),
    "strided within the ways of a set": (16 * LINE, 4, 50_000, [0, 0, 0], [4, 4, 4]),
    "strided by two lines": (2 * LINE, 64, 5000, [64, 0, 0], [64, 64, 64]),
}


FAR = """
    from collectors.instrumented import arena, memory as shared
    class Far(arena.Arena):
        def __init__(self, counters_bytes):
            super().__init__(counters_bytes)
            self.counters = arena._map(self.start >> 1 & -4096, counters_bytes, arena.PROT_READ_WRITE)
            assert abs(self.counters - self.start) > 1 << 32
    shared.Arena = Far
"""
"""The threads' counters and slots, out of reach of the copied code: as where the kernel put that elsewhere."""


def run_workloads(before: str = "") -> dict[str, Any]:
    """Each once, and what the collector says of them."""
    return counted(
        textwrap.dedent(before)
        + textwrap.dedent(f"""
        counting = Counting(cache_model=True, cache={CACHES!r})
        walk = function(WALK, number, number, number, number)
        work = {[row[:3] for row in WORKLOADS.values()]}
        for stride, loads, rounds in work:
            walk.call(memory + (5 << 20), 64, (2 << 20) // 64, 1)  # other lines
            counting(lambda: walk.call(memory, stride, loads, rounds))
        found = counting.stop()
        detail = counting.collected.detail.cache_model
        counts = counting.collector.counts(counting.spans)
        rows = counts.filter(span=0, provenance="simulated").select("event", "value").rows()
        end(found=found, detail=detail, notes=[str(note) for note in counting.collected.notes], whole=dict(rows),
            events=[info.name for info in counting.collected.events if info.name.startswith("cache-model.")])
        """)
    )


@pytest.fixture(scope="module")
def workloads() -> dict[str, Any]:
    return run_workloads()


@pytest.mark.parametrize("before", ["", FAR], ids=["near", "far"])
def test_another_process_simulates_the_same(workloads: dict[str, Any], before: str) -> None:
    again = run_workloads(before)
    for one, other in zip(workloads["found"], again["found"], strict=True):
        assert other["l1d-accesses"] == one["l1d-accesses"]
        assert misses(other) == pytest.approx(misses(one), abs=FEW)


@pytest.mark.parametrize("name", WORKLOADS)
def test_loops_miss_as_arithmetic_says(workloads: dict[str, Any], name: str) -> None:
    found = workloads["found"][list(WORKLOADS).index(name)]
    _, loads, rounds, each, first = WORKLOADS[name]
    assert found["l1d-accesses"] == pytest.approx(loads * rounds, abs=FEW)
    assert found["l1d-bytes"] == pytest.approx(8 * loads * rounds, abs=8 * FEW)
    expected = [once + (rounds - 1) * later for once, later in zip(first, each, strict=True)]
    for level, (has, ought) in enumerate(zip(misses(found), expected, strict=True)):
        assert has == pytest.approx(ought, rel=0.001, abs=FEW), f"level {level + 1}"
    assert found["memory-bytes"] == LINE * found["llc-misses"]


def test_a_span_has_what_its_kernels_have_and_a_little_of_the_caller(workloads: dict[str, Any]) -> None:
    kernel, whole = workloads["found"][0], workloads["whole"]
    assert set(whole) == set(workloads["events"])
    for event in ("l1d-accesses", "l1d-misses", "l2-misses", "llc-misses", "memory-bytes"):
        assert whole[f"cache-model.{event}"] == pytest.approx(kernel[event], rel=0.05)
        assert whole[f"cache-model.{event}"] >= kernel[event]
    assert whole["cache-model.l2-bytes"] == LINE * whole["cache-model.l1d-misses"]
    assert whole["cache-model.llc-bytes"] == LINE * whole["cache-model.l2-misses"]


def test_it_says_what_was_simulated(workloads: dict[str, Any]) -> None:
    assert [workloads["detail"][level] for level in ("l1d", "l2", "llc")] == ["4K/4/64", "32K/8/64", "256K/16/64"]
    assert any("l1=4K/4,l2=32K/8,llc=256K/16" in note and "as given" in note for note in workloads["notes"])
    assert workloads["detail"]["simulator"]


def test_without_a_last_level_misses_of_l2_go_to_memory() -> None:
    said = counted(
        """
        from hwprof.hardware import machine
        own = machine.caches()
        machine.caches = lambda: tuple(cache for cache in own if cache.level < 3)
        counting = Counting(cache="l1=4K/4,l2=32K/8")
        walk = function(WALK, number, number, number, number)
        counting(lambda: walk.call(memory, 64, 1000, 1))
        found = counting.stop()
        end(found=found, events=[info.name for info in counting.collected.events])
        """
    )
    found = said["found"][0]
    assert found["l2-misses"] == pytest.approx(1000, abs=FEW)
    assert found["memory-bytes"] == LINE * found["l2-misses"]
    assert not any(name.startswith("cache-model.llc") for name in said["events"])


CONVOLUTIONS = """
    model = torch.nn.Sequential(torch.nn.Conv2d(16, 64, 3), torch.nn.ReLU(), torch.nn.Conv2d(64, 64, 3)).eval()
    x = torch.rand(1, 16, 66, 66)
    with torch.inference_mode():
        for _ in range(2):
            expected = model(x)
        counting = Counting(cache_model=True)
        same, results = [], []
        for _ in range(3):
            counting(lambda: results.append(model(x)))
            same.append(bool((results[-1] == expected).all()))
    found = counting.stop()
    counts = counting.collector.counts(counting.spans)
    by_thread = counts.filter(event="cache-model.l1d-accesses", span=2)["value"].to_list()
    end(same=same, found=found, by_thread=by_thread)
"""


@pytest.mark.parametrize("threads", [1, 2])
def test_outputs_stay_and_threads_add_up(threads: int) -> None:
    said = counted(CONVOLUTIONS, threads)
    assert said["same"] == [True] * 3, "outputs are bit-identical"
    assert len(said["by_thread"]) == threads
    assert min(said["by_thread"]) > 0.2 * max(said["by_thread"]), "both work"
    second, third = said["found"][1:]
    assert third["l1d-accesses"] == pytest.approx(second["l1d-accesses"], rel=0.001)
    assert third["l1d-misses"] == pytest.approx(second["l1d-misses"], rel=0.02)
    weights_bytes = 4 * (16 * 64 + 64 * 64) * 9
    assert third["l1d-bytes"] > weights_bytes
    assert third["l1d-misses"] > weights_bytes / LINE, "more than fits"
    fresh_bytes = 3 * 4 * 64 * 64 * 64
    assert misses(third)[2] <= fresh_bytes / LINE, "what a run leaves in the last level, the next one finds"


def test_without_a_compiler_frida_makes_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = f"""
        counting = Counting(cache={CACHES!r})
        walk = function(WALK, number, number, number, number)
        counting(lambda: walk.call(memory, 64, 10_000, 3))
        found = counting.stop()
        end(found=found[0], simulator=counting.collected.detail.cache_model.simulator)
    """
    usual = counted(script)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("CC", "false")
    other = counted(script)
    assert other["simulator"].startswith("frida (the C compiler failed")
    assert other["found"]["l1d-accesses"] == usual["found"]["l1d-accesses"]
    assert misses(other["found"]) == pytest.approx(misses(usual["found"]), abs=FEW)


MODEL = """
    import torch

    def small():
        return torch.nn.Sequential(torch.nn.Conv2d(3, 32, 3), torch.nn.Conv2d(32, 32, 3)), torch.rand(1, 3, 64, 64)
"""


def test_through_the_command_line(tmp_path: Path) -> None:
    require_module("frida")
    (tmp_path / "tiny.py").write_text(textwrap.dedent(MODEL))
    begin = ("collect", "--model", "tiny:small", "--iterations", "4", "--threads", "1", "--passes", "measure")
    done = hwprof(*begin, "--cache", "l2=64K/8", "--format", "json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    json.loads(done.stdout)
    run = tmp_path / "results" / "latest"
    record = decode((run / "run.json").read_bytes()).passes[1]
    assert record.name == "instrumented"
    iterations = [iteration for iteration in record.iterations if not iteration.warmup]
    assert [iteration.layers_counted for iteration in iterations] == [False, True], "the first warms the caches"
    spans = pl.read_parquet(run / "spans.parquet").filter(pl.col("pass") == "instrumented", pl.col("kind") == "layer")
    counts = pl.read_parquet(run / "counts.parquet").filter(pl.col("event").str.starts_with("cache-model."))
    assert set(counts["provenance"]) == {"simulated"}
    layers = counts.join(spans, on="span").filter(pl.col("event") == "cache-model.l1d-bytes")
    assert set(layers["path"]) == {"", "0", "1"}
    assert all(value > 4 * 3 * 64 * 64 for value in layers["value"])


def test_a_geometry_that_cannot_be_is_refused_before_anything_runs(tmp_path: Path) -> None:
    require_module("frida")
    done = hwprof("collect", "--model", "yolov8n", "--cache", "l1=48K/13", cwd=tmp_path)
    assert done.returncode == 2
    assert "l1=48K/13: the size is no multiple of 13 ways" in done.stderr
    assert not (tmp_path / "results").exists()
