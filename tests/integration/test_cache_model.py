"""The cache model on loops whose misses arithmetic tells, through the collector: kernel by kernel, exactly."""

from __future__ import annotations

import json
import platform
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from collectors.instrumented.engine import processor_flags
from hwprof.run.manifest import decode
from tests.support.command import hwprof
from tests.support.instrumented_process import child
from tests.support.requirements import require_module

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="code is followed on x86-64")

LINE = 64
FEW = 8
"""Accesses of the return, and of the little else that belongs to no library."""

CACHES = "l1=4K/4,l2=32K/8,llc=256K/16"
"""16, 64 and 256 sets: small, so that loops stay short."""

BEGIN = """
    import tempfile
    import polars as pl
    from collectors.instrumented.collector import InstrumentedCollector
    from collectors.instrumented.machine_code import Function
    from hwprof.collector.contract import CountedSpan, PassContext
    # rdi: where, rsi: bytes from one load to the next, rdx: loads of a round, rcx: rounds
    #   outer: mov rax, rdi; mov r8, rdx; inner: mov r9, [rax]; add rax, rsi; dec r8; jnz inner; dec rcx; jnz outer; ret
    WALK = "4889f8 4989d0 4c8b08 4801f0 49ffc8 75f5 48ffc9 75ea c3"
    # rdi: to, rsi: from, rdx: bytes.   mov rcx, rdx; rep movsb; ret
    COPY = "4889d1 f3a4 c3"
    function = lambda code, *arguments: Function(bytes.fromhex(code), None, *arguments)
    number = ctypes.c_size_t
    room = ctypes.create_string_buffer(9 << 20)
    memory = (ctypes.addressof(room) + (1 << 20) - 1) & -(1 << 20)

    class Counting:
        \"\"\"Counts pieces of work by the product's own collector; what its kernels of no library did.\"\"\"

        def __init__(self, **options):
            self.collector = InstrumentedCollector()
            raw = Path(tempfile.mkdtemp())
            self.collector.start(PassContext("instrumented", os.getpid(), os.getpid(), raw, options))
            self.edge = self.collector.full_reader()
            self.edges = 0

        def __call__(self, work):
            self.edge()
            work()
            self.edge()
            self.edges += 2

        def stop(self):
            self.collected = self.collector.stop()
            self.spans = [CountedSpan(n, 0, 2 * n, 2 * n + 1) for n in range(self.edges // 2)]
            tables = self.collector.kernel_tables(self.spans)
            jit = tables["kernels"].filter(domain="jit").select("kernel")
            rows = tables["kernel_counts"].join(jit, on="kernel", how="semi")
            simulated = rows.filter(provenance="simulated").group_by("span", "event").agg(pl.col("value").sum())
            found = [{} for _ in self.spans]
            for span, event, value in simulated.iter_rows():
                found[span][event.removeprefix("cache-model.")] = value
            return found
"""


def counted(script: str, threads: int = 1) -> dict[str, Any]:
    """What a process says that counts its own loops."""
    return child(textwrap.dedent(BEGIN) + textwrap.dedent(script), threads)


def misses(found: Mapping[str, int]) -> list[int]:
    """By level."""
    return [found.get(f"{level}-misses", 0) for level in ("l1d", "l2", "llc")]


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


def run_workloads() -> dict[str, Any]:
    """Each once, and what the collector says of them."""
    return counted(
        f"""
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
        """
    )


@pytest.fixture(scope="module")
def workloads() -> dict[str, Any]:
    return run_workloads()


def test_another_process_simulates_the_same(workloads: dict[str, Any]) -> None:
    again = run_workloads()
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


def test_copying_is_an_access_for_each_line_on_both_sides() -> None:
    said = counted(
        f"""
        counting = Counting(cache={CACHES!r})
        copy = function(COPY, number, number, number)
        counting(lambda: copy.call(memory, memory + (4 << 20), 1 << 20))
        counting(lambda: copy.call(memory + 60, memory + (4 << 20), 8))
        counting(lambda: copy.call(memory, memory, 0))
        end(found=counting.stop())
        """
    )
    large, across, nothing = said["found"]
    lines = (1 << 20) // LINE
    assert large["l1d-accesses"] - nothing["l1d-accesses"] == 2 * lines
    assert large["l1d-bytes"] - nothing["l1d-bytes"] == 2 * (1 << 20)
    assert misses(large) == pytest.approx([2 * lines] * 3, abs=FEW)
    assert across["l1d-accesses"] - nothing["l1d-accesses"] == 3, "a line read, two written"
    assert nothing["l1d-accesses"] <= FEW


# All: rdi: where, rsi: indices, edx: mask.
GATHERS = {
    # vpcmpeqd ymm2, ymm2, ymm2; vmovdqu ymm1, [rsi]; vpgatherdd ymm0, [rdi+ymm1*4+8], ymm2; vzeroupper; ret
    "avx2": ("c5ed76d2 c5fe6f0e c4e26d90448f08 c5f877 c3", "int32", 8),
    # kmovw k3, edx; vmovdqu32 zmm17, [rsi]; vpgatherdd zmm5{k3}, [rdi+zmm17*4+64];
    # kmovw k3, edx; vpscatterdd [rdi+zmm17*4+64]{k3}, zmm5; vzeroupper; ret
    "avx512f": ("c5f892da 62e17e486f0e 62f27d43906c8f10 c5f892da 62f27d43a06c8f10 c5f877 c3", "int32", 16),
    # kmovw k1, edx; vmovdqu64 zmm9, [rsi]; vgatherqps ymm5{k1}, [rdi+zmm9]; vzeroupper; ret
    "avx512f, 64 bits": ("c5f892ca 6271fe486f0e 62b27d49932c0f c5f877 c3", "int64", 8),
}


@pytest.mark.parametrize("name", GATHERS)
def test_gathers_and_scatters_are_an_access_for_each_element_that_is_not_masked(name: str) -> None:
    if name.partition(",")[0] not in processor_flags():
        pytest.skip(f"the processor has no {name}")
    code, kind, elements = GATHERS[name]
    apart = LINE if kind == "int64" else LINE // 4
    said = counted(
        f"""
        import numpy as np
        counting = Counting(cache={CACHES!r})
        gather = function({code!r}, number, number, number)
        indices = np.arange(-4, {elements} - 4, dtype=np.{kind}) * {apart}  # a line each, backwards too
        arguments = memory + 4096, indices.ctypes.data
        if {name != "avx2"}:
            gather.call(*arguments, 1)
        counting(lambda: gather.call(*arguments, 0b10101))
        counting(lambda: gather.call(*arguments, 0xffff))
        counting(lambda: gather.call(*arguments, 0b00001))
        end(found=counting.stop(), notes=[str(note) for note in counting.collected.notes])
        """
    )
    some, every, one = (found["l1d-accesses"] for found in said["found"])
    times = 2 if name == "avx512f" else 1  # gathered and scattered
    if name == "avx2":
        assert some == every == one, "its mask is always full"
        assert every >= elements
        assert misses(said["found"][0])[2] == pytest.approx(elements, abs=2)
    else:
        assert (some - one, every - one) == (2 * times, (elements - 1) * times)
        assert misses(said["found"][0])[2] == pytest.approx(2, abs=1)
        assert misses(said["found"][1])[2] == pytest.approx(elements - 3, abs=1)
    assert not any("not simulated" in note for note in said["notes"])


# rdi, rsi, rdx: parts of addresses. After each vdpbf16ps, which the disassembler does not know, a mov loads from there:
# [rdi+64]{1to16}, [rdi+rsi*8+128]{1to16}, zmm [rdi+8192], ymm [rdi+rdx+0x3333] (two lines);
# mov r11, rdi; mov r10, rsi; mov r10, rdi; [r11+4096]{1to16}; mov r9, rsi; [r10+r9*4+256]{1to16}; ret
UNKNOWN = (
    "62f27658525710 8b4740 62f276585254f720 8b84f780000000 62e2064052b700200000 8b8700200000 62f2762852941733330000"
    " 8b841733330000 4989fb 4989f2 4989fa 62d27658529300100000 418b8300100000 4989f1 6292765852548a40"
    " 438b848a00010000 c3"
)


def test_addresses_of_instructions_that_the_disassembler_does_not_know() -> None:
    if "avx512_bf16" not in processor_flags():
        pytest.skip("the processor has no AVX512-BF16")
    said = counted(
        f"""
        counting = Counting(cache_model=True)
        unknown = function({UNKNOWN!r}, number, number, number)
        other = function("c3")
        counting(lambda: unknown.call(memory, 1000, 70_000))
        counting(other.call)
        end(found=counting.stop())
        """
    )
    found, nothing = said["found"]
    assert found["l1d-accesses"] - nothing["l1d-accesses"] == 12
    assert found["l1d-bytes"] - nothing["l1d-bytes"] == 4 * 4 + 64 + 32 + 6 * 4
    assert misses(found)[0] == pytest.approx(7, abs=1), "no mov misses what was just loaded"


def test_what_it_cannot_see_is_told() -> None:
    said = counted(
        """
        counting = Counting(cache_model=True)
        compare = function("4889d1 f3a6 c3", number, number, number)  # mov rcx, rdx; repe cmpsb; ret
        counting(lambda: [compare.call(memory, memory, 10) for _ in range(30)])
        counting.stop()
        untraced = counting.collected.detail.cache_model.untraced
        end(notes=[str(note) for note in counting.collected.notes], untraced=untraced)
        """
    )
    assert said["untraced"] >= 30
    assert any(f"{said['untraced']} accesses" in note and "not simulated" in note for note in said["notes"])


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
    assert set(layers["path"]) == {"0", "1"}
    assert all(value > 4 * 3 * 64 * 64 for value in layers["value"])


def test_a_geometry_that_cannot_be_is_refused_before_anything_runs(tmp_path: Path) -> None:
    require_module("frida")
    done = hwprof("collect", "--model", "yolov8n", "--cache", "l1=48K/13", cwd=tmp_path)
    assert done.returncode == 2
    assert "l1=48K/13: the size is no multiple of 13 ways" in done.stderr
    assert not (tmp_path / "results").exists()
