"""Counting under the real valgrind: a small model, layer by layer, against the whole, against arithmetic, and again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from collectors.callgrind.collector import COMPANION, ENVIRONMENT, PASS
from collectors.callgrind.command import command
from collectors.callgrind.profile import read
from collectors.callgrind.tables import kernel_of
from collectors.shared.symbols.jit import keep_perf_map
from collectors.shared.symbols.resolver import Resolver
from hwprof.hardware import machine
from hwprof.run.directory import RunDirectory
from tests.support.command import hwprof, hwprof_here, start_hwprof
from tests.support.requirements import require_module, require_tool

FACTORY = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(16, 32, 3)
        self.act = nn.ReLU()
        self.second = nn.Conv2d(32, 32, 3)
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        return self.head(self.second(self.act(self.first(x))).mean((2, 3)))

def small():
    return Net(), torch.randn(1, 16, 64, 64)

def deep():
    return nn.Sequential(*[nn.Conv2d(16, 16, 3, padding=1) for _ in range(60)]), torch.randn(1, 16, 64, 64)
"""
WHOLE = """
import sys, torch
sys.path.insert(0, ".")
import nets
from collectors.callgrind.requests import Requester
torch.set_num_threads(1)
torch.manual_seed(0)
net, x = nets.small()
with torch.inference_mode():
    net.eval()(x); net(x)
    requester = Requester()
    requester.start_instrumentation()
    net(x)
    torch._C._valgrind_toggle()
    net(x)
    torch._C._valgrind_toggle_and_dump_stats()
"""
MACS = {"first": 62 * 62 * 32 * 16 * 9, "second": 60 * 60 * 32 * 32 * 9}
LANES = 4  # of SSE4.1, which has no fused multiply-add: 2 instructions
MODEL_CODE = ("jit", "libtorch_cpu.so")
"""What depends on the model alone; Python and malloc take different ways in every process."""


@pytest.fixture(scope="module", autouse=True)
def _needs_valgrind() -> None:
    require_tool("valgrind")
    require_module("torch")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("callgrind")
    (folder / "nets.py").write_text(FACTORY)
    return folder


SMALL = ("--passes", "measure", "--iterations", "3", "--model", "nets:small")


def run_callgrind(place: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return hwprof("collect", *SMALL, *arguments, cwd=place, columns=120, timeout_s=500, environment=environment)


@pytest.fixture(scope="module")
def simulated(place: Path) -> tuple[RunDirectory, str]:
    done = run_callgrind(place, "--counters", "callgrind", "--cache-sim", "--output", "simulated")
    assert done.returncode == 0, done.stderr
    return RunDirectory.latest(place / "simulated"), done.stdout


@pytest.fixture(scope="module")
def plain(place: Path) -> RunDirectory:
    done = run_callgrind(place, "--counters", "callgrind", "--output", "plain")
    assert done.returncode == 0, done.stderr
    return RunDirectory.latest(place / "plain")


def layers(run: RunDirectory, event: str = "callgrind.instructions") -> dict[str, int]:
    """By path, leaves and the stage and the iteration."""
    spans = run.scan("spans").filter(pl.col("pass") == PASS).select("span", "path", "kind")
    counts = run.scan("counts").filter((pl.col("pass") == PASS) & (pl.col("event") == event))
    last = counts.filter(pl.col("iteration") == pl.col("iteration").max()).join(spans, on="span").collect()
    return {("iteration" if kind == "iteration" else path): value
            for path, kind, value in last.select("path", "kind", "value").iter_rows()}  # fmt: skip


def model_code(run: RunDirectory, *paths: str) -> dict[tuple[str, str], int]:
    """By path and kernel, in the last iteration."""
    spans = run.scan("spans").filter(pl.col("pass") == PASS).select("span", "path")
    mine = pl.col("pass") == PASS
    counts = run.scan("kernel_counts").filter(mine & (pl.col("event") == "callgrind.instructions"))
    last = counts.filter(pl.col("iteration") == pl.col("iteration").max()).join(spans, on="span")
    named = last.join(run.scan("kernels").filter(mine), on="kernel").filter(pl.col("library").is_in(MODEL_CODE))
    full = named.filter(pl.col("path").is_in(paths)).with_columns(full=pl.coalesce("full_name", "name"))
    kept = full.group_by("path", "full").agg(pl.col("value").sum()).collect()
    return {(path, kernel): value for path, kernel, value in kept.iter_rows()}


def test_the_passes_and_what_they_were_held_to(simulated: tuple[RunDirectory, str]) -> None:
    run, _ = simulated
    assert [(record.name, record.status) for record in run.manifest.passes] == [
        ("measure", "completed"),
        (COMPANION, "completed"),
        (PASS, "completed"),
    ]
    companion, own = run.manifest.passes[1:]
    assert companion.environment == own.environment == dict(ENVIRONMENT)
    assert (own.times_from, own.instruction_set, own.threads) == (COMPANION, "SSE4.1", 1)
    (said,) = [said for said in own.collectors if said.name == PASS]
    data = next(cache for cache in machine.caches() if cache.level == 1 and cache.kind == "data")
    assert said.detail["simulated_caches"]["D1"].startswith(
        f"{data.size_bytes} B, {data.line_bytes} B, {data.ways}-way"
    )
    measured = run.scan("counts").filter(pl.col("pass") == "measure").select(pl.col("event").unique()).collect()
    assert not any(event.startswith("callgrind") for event in measured["event"])


@pytest.mark.parametrize("event", ["instructions", "loads", "stores", "l1i-misses", "l1d-misses", "llc-misses"])
def test_layers_add_up_to_the_inference(simulated: tuple[RunDirectory, str], event: str) -> None:
    run, _ = simulated
    found = layers(run, f"callgrind.{event}")
    leaves = sum(found[path] for path in ("first", "act", "second", "head"))
    assert 0 < leaves <= found["inference"] <= found["iteration"]
    if event == "instructions":
        assert leaves > 0.9 * found["inference"]


def test_convolutions_have_the_instructions_that_arithmetic_asks_for(plain: RunDirectory) -> None:
    code = model_code(plain, *MACS)
    for path, macs in MACS.items():
        jit = sum(value for (owner, kernel), value in code.items() if owner == path and "conv_fwd" in kernel)
        assert 2 * macs / LANES < jit < 2 * 2 * macs / LANES, f"{path}: two per multiply-add, loads of weights beside"


def test_two_runs_count_the_same(simulated: tuple[RunDirectory, str], plain: RunDirectory) -> None:
    """Every kernel of every layer to the instruction, with the cache simulation and without."""
    first, second = (model_code(run, *MACS, "act", "head") for run in (simulated[0], plain))
    assert len(first) > 20
    assert first == second


def test_the_sum_of_the_parts_is_what_one_dump_of_the_whole_has(place: Path, plain: RunDirectory) -> None:
    """A program that knows nothing of layers, under the same callgrind: one dump of one forward."""
    raw = place / "whole"
    raw.mkdir()
    (place / "whole.py").write_text(WHOLE)
    launched = [*command(require_tool("valgrind"), raw, (), cache_sim=False, waits=True), sys.executable, "whole.py"]
    worker = subprocess.Popen(launched, cwd=place, env={**os.environ, **ENVIRONMENT})
    assert worker.wait(timeout=300) == 0
    kernels = Resolver([], keep_perf_map(worker.pid, raw))
    part = next(read(raw / "callgrind.out"))
    whole: dict[str, int] = {}
    for function, costs in part.costs.items():
        kernel = kernel_of(function, kernels)
        if kernel.library in MODEL_CODE and costs[0]:
            name = kernel.full_name or kernel.name or ""
            whole[name] = whole.get(name, 0) + costs[0]
    parts = model_code(plain, "inference")
    assert {name: value for (_, name), value in parts.items()} == whole
    assert part.total[0] == pytest.approx(layers(plain)["inference"], rel=0.01), "Python's share differs a little"


def test_the_second_iteration_finds_the_simulated_caches_warm(simulated: tuple[RunDirectory, str]) -> None:
    run, _ = simulated
    spans = run.scan("spans").filter((pl.col("pass") == PASS) & (pl.col("path") == "inference")).select("span")
    misses = run.scan("counts").filter(pl.col("event") == "callgrind.llc-misses").join(spans.unique(), on="span")
    first, second = misses.filter(pl.col("pass") == PASS).sort("iteration").collect()["value"]
    assert second < first / 5


def test_the_report_says_what_these_figures_are(simulated: tuple[RunDirectory, str]) -> None:
    run, _ = simulated
    printed = hwprof_here("report", str(run.path), "--all", "--width", "120").stdout
    assert "Layers by instructions, pass callgrind, restricted to SSE4.1" in printed
    assert "instrumented: instructions, loads and stores" in printed
    assert "simulated: l1i-misses, l1d-misses and llc-misses" in printed
    assert "Kernels by instructions, pass callgrind" in printed
    done = hwprof_here("report", str(run.path), "--format", "json")
    found = next(one for one in json.loads(done.stdout)["instrumented"]["passes"] if one["name"] == PASS)
    assert {event["name"]: event["provenance"] for event in found["events"]}["callgrind.l1d-misses"] == "simulated"
    first = next(layer for layer in found["layers"]["rows"] if layer["path"] == "first")
    counters = found["layers"]["counters"]
    place = counters["of"].index("first")
    assert counters["events"]["callgrind.instructions"]["value"][place] == layers(run)["first"]
    assert first["metrics"]["callgrind_instructions_per_ns"] == pytest.approx(
        layers(run)["first"] / first["time"]["median_ns"]
    )
    csv = pl.read_csv(run.path / "layers_callgrind.csv")
    assert csv.filter(path="first")["callgrind.instructions"].item() == layers(run)["first"]
    raw = run.path / "raw" / PASS / PASS / "callgrind.out"
    assert raw.read_text(errors="replace").startswith("# callgrind format"), "KCachegrind opens it"


def test_an_interruption_keeps_the_layers_done(place: Path) -> None:
    arguments = ("--model", "nets:deep", "--counters", "callgrind", "--output", "interrupted")
    run = start_hwprof("collect", "--passes", "measure", "--iterations", "2", *arguments, cwd=place)
    profile = place / "interrupted" / "latest" / "raw" / PASS / PASS / "callgrind.out"
    for _ in _until(300):
        if profile.exists() and profile.read_bytes().count(b"\npart: ") > 20:
            break
        assert run.poll() is None, run.communicate()
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=200)
    assert run.returncode == 130
    kept = RunDirectory.latest(place / "interrupted")
    record = kept.manifest.passes[-1]
    assert (record.name, record.status, record.kept) == (PASS, "interrupted", True)
    assert (record.reason or "").startswith("interrupted by the user after ")
    done = {path for path in layers(kept) if path.isdigit()}
    assert 8 < len(done) < 60
    assert done == {str(number) for number in range(len(done))}, "the first ones, each whole"
    amounts = [sum(model_code(kept, path).values()) for path in done]
    assert max(amounts) < 1.01 * min(amounts), "all layers are alike, and so are the last and the first"
    printed = hwprof_here("report", str(kept.path), "--all").stdout
    assert f"counts of {len(done)} complete layers, no sums" in " ".join(printed.split())
    (found,) = json.loads(hwprof_here("report", str(kept.path), "--format", "json").stdout)["instrumented"]["passes"]
    counters = found["layers"]["counters"]
    pairs = zip(counters["of"], counters["events"]["callgrind.instructions"]["value"], strict=True)
    counted = {path for path, value in pairs if value is not None}
    assert counted >= done and "whole" not in counted, "there are no sums"


def _until(seconds: float) -> Iterator[None]:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield
        time.sleep(0.05)
    pytest.fail(f"not within {seconds} s")


def test_without_valgrind_nothing_starts_and_the_remedy_is_told(place: Path, tmp_path: Path) -> None:
    done = run_callgrind(place, "--counters", "callgrind", PATH=str(tmp_path))
    assert done.returncode == 1
    assert "callgrind does not work here: valgrind is not installed" in done.stderr
    assert "apt-get install -y valgrind" in done.stderr


def test_the_cache_simulation_needs_callgrind(place: Path) -> None:
    done = run_callgrind(place, "--cache-sim")
    assert done.returncode == 2
    assert "auto,callgrind" in done.stderr
