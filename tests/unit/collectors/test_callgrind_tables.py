"""From dumps and spans to tables; the caches that valgrind is asked to simulate; what PATH does not hold."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.callgrind import events
from collectors.callgrind.collector import COMPANION, INSTALL, PASS, CallgrindCollector
from collectors.callgrind.command import cache_options, command, simulated
from collectors.callgrind.edges import Edges, innermost
from collectors.callgrind.names import KernelMap, kernel_and_module
from collectors.callgrind.profile import NO_FILE, Function, Part
from collectors.callgrind.tables import Tables
from hwprof.run.manifest import Cache
from hwprof.run.schema import JIT_MODULE, UNKNOWN_MODULE, conform
from hwprof.session.collector import CountedSpan, EdgeCounter, Launcher, OwnPasses

MAP = (
    "2b18b000 100 jit_old.0",
    "2b18b000 241d jit_sse41_conv_fwd_kernel_f32_t.0",
    "",
    "2b37d000 765 jit_reorder.3 two words",
)
JIT = Function("0x000000002b18c000", NO_FILE)
PLAIN = Function("at::native::silu", "/usr/lib/libtorch_cpu.so")

# iteration(0..7) > stage(1..6) > two leaves (2..3), (4..5)
SPANS = [CountedSpan(10, 1, 0, 7), CountedSpan(11, 1, 1, 6), CountedSpan(12, 1, 2, 3), CountedSpan(13, 1, 4, 5)]


def test_the_collector_keeps_the_contracts() -> None:
    collector = CallgrindCollector()
    assert isinstance(collector, EdgeCounter)
    assert isinstance(collector, Launcher)
    assert isinstance(collector, OwnPasses)


def test_a_kernel_is_found_by_any_address_in_it() -> None:
    kernels = KernelMap(MAP)
    assert kernels.name_at(0x2B18B000) == "jit_sse41_conv_fwd_kernel_f32_t.0", "the later line of an address used twice"
    assert kernels.name_at(0x2B18B000 + 0x241C) == "jit_sse41_conv_fwd_kernel_f32_t.0"
    assert kernels.name_at(0x2B18B000 + 0x241D) is None
    assert kernels.name_at(0x1000) is None
    assert kernels.name_at(0x2B37D001) == "jit_reorder.3 two words"
    assert KernelMap.read(Path("/nonexistent")).name_at(1) is None


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (PLAIN, ("at::native::silu", "libtorch_cpu.so")),
        (JIT, ("jit_sse41_conv_fwd_kernel_f32_t.0", JIT_MODULE)),
        (Function("0x0000000004936728", NO_FILE), ("0x4936728", UNKNOWN_MODULE)),
        (Function("0x000000000cdc29b0", "/x/libtorch_cpu.so"), ("libtorch_cpu.so+0xcdc29b0", "libtorch_cpu.so")),
        (Function("0x000000002b18c000", "/x/libtorch_cpu.so"), ("libtorch_cpu.so+0x2b18c000", "libtorch_cpu.so")),
        (Function("(below main)", NO_FILE), ("(below main)", UNKNOWN_MODULE)),
    ],
)
def test_functions_have_a_name_and_a_home(function: Function, expected: tuple[str, str]) -> None:
    assert kernel_and_module(function, KernelMap(MAP)) == expected


def test_a_part_belongs_to_the_innermost_span() -> None:
    owners = [None if span is None else span.span for span in innermost(SPANS, 8)]
    assert owners == [10, 11, 12, 11, 13, 11, 10, None]


@st.composite
def nested(draw: st.DrawFn) -> list[CountedSpan]:
    """Spans as a recorder numbers their edges: one edge a begin, one an end."""
    spans: list[CountedSpan] = []
    edge = 0

    def grow(depth: int) -> None:
        nonlocal edge
        number, begin = len(spans), edge
        spans.append(CountedSpan(number, 0, begin, begin))
        edge += 1
        for _ in range(draw(st.integers(0, 3)) if depth else 0):
            grow(depth - 1)
        spans[number] = CountedSpan(number, 0, begin, edge)
        edge += 1

    for _ in range(draw(st.integers(1, 3))):
        grow(3)
    return spans


@given(nested())
def test_what_spans_own_alone_adds_up_to_the_outermost(spans: list[CountedSpan]) -> None:
    count = 1 + max(span.end_edge for span in spans)
    owners = innermost(spans, count - 1)
    for span in spans:
        inside = {
            other.span for other in spans if span.begin_edge <= other.begin_edge <= other.end_edge <= span.end_edge
        }
        mine = {part for part, owner in enumerate(owners, 1) if owner is not None and owner.span in inside}
        assert mine == set(range(span.begin_edge + 1, span.end_edge + 1))


def part(number: int, *costs: tuple[Function, int, int]) -> Part:
    return Part(
        number,
        ("Ir", "D1mr", "D1mw"),
        [sum(cost[1] for cost in costs), sum(cost[2] for cost in costs), 0],
        {function: [instructions, misses, 0] for function, instructions, misses in costs},
    )


@pytest.fixture
def tables() -> Tables:
    made = Tables(Edges(77, 8, SPANS), KernelMap(MAP))
    made.take([part(number, (PLAIN, 10**number, number)) for number in (1, 2, 4, 6, 7)])
    made.take([part(3, (JIT, 500, 7), (PLAIN, 500, 1)), part(5, (JIT, 0, 0)), part(8, (PLAIN, 10**9, 0))])
    return made


def test_counts_are_sums_of_the_parts_of_a_span(tables: Tables) -> None:
    counts = conform("counts", tables.counts().with_columns(pl.lit("callgrind").alias("pass")))
    instructions = dict(counts.filter(event="callgrind/instructions").select("span", "value").iter_rows())
    assert instructions == {10: 11_011_110, 11: 1_010_100 + 1000, 12: 1000, 13: 0}
    misses = counts.filter(event="callgrind/l1d-misses", span=12).row(0, named=True)
    assert (misses["value"], misses["provenance"], misses["tid"]) == (8, "simulated", 77)
    assert set(counts.filter(event="callgrind/instructions")["provenance"]) == {"instrumented"}
    assert set(counts["event"]) == {"callgrind/instructions", "callgrind/l1d-misses"}, "no last level, no such event"


def test_kernels_add_up_to_the_counts(tables: Tables) -> None:
    kernels = conform("kernels", tables.kernels().with_columns(pl.lit("callgrind").alias("pass")))
    counts = tables.counts()
    for event in ("callgrind/instructions", "callgrind/l1d-misses"):
        whole = counts.filter(span=10, event=event)["value"].item()
        assert kernels.filter(event=event)["value"].sum() == whole
    leaf = kernels.filter(span=12, event="callgrind/instructions").sort("kernel")
    assert leaf.select("kernel", "module", "value").rows() == [
        ("at::native::silu", "libtorch_cpu.so", 500),
        ("jit_sse41_conv_fwd_kernel_f32_t.0", JIT_MODULE, 500),
    ]
    assert not kernels.filter(value=0).height


def test_a_dump_that_is_missing_costs_the_spans_around_it_their_counts() -> None:
    made = Tables(Edges(77, 8, SPANS), KernelMap(()))
    made.take([part(number, (PLAIN, 5, 0)) for number in (1, 2, 3, 4)])
    assert made.missing_parts == 3
    assert set(made.counts()["span"]) == {12}


def test_no_event_is_called_as_a_hardware_counter_is() -> None:
    assert all(event.name.startswith("callgrind/") for event in events.known())
    assert {event.name for event in events.known() if event.provenance == "simulated"} == {
        f"callgrind/{level}-misses" for level in ("l1i", "l1d", "llc")
    }


def test_metrics_need_their_events() -> None:
    few, all_events = events.counted(["Ir"]), events.known()
    assert [metric.name for metric in events.metrics(few)] == ["callgrind_instructions_per_ns"]
    assert len(events.metrics(all_events)) == 3


# The command line

ZEN4 = (
    Cache(1, "data", 32 << 10, 8, 64),
    Cache(1, "instruction", 32 << 10, 8, 64),
    Cache(2, "unified", 1 << 20, 8, 64),
    Cache(3, "unified", 32 << 20, 16, 64),
)


def test_the_caches_are_this_machines(tmp_path: Path) -> None:
    made = command("valgrind", tmp_path / "100%", ZEN4, cache_sim=True, waits=True)
    assert made[-4:] == ["--cache-sim=yes", "--I1=32768,8,64", "--D1=32768,8,64", "--LL=33554432,16,64"]
    assert f"--callgrind-out-file={tmp_path}/100%%/callgrind.out" in made
    assert "--instr-atstart=no" in made
    plain = command("valgrind", tmp_path, ZEN4, cache_sim=False, waits=False)
    assert not any(option.startswith(("--cache-sim", "--I1", "--D1", "--LL")) for option in plain)
    assert "--instr-atstart=yes" in plain


def test_what_is_not_known_of_a_cache_is_left_to_valgrind() -> None:
    assert cache_options([Cache(1, "data", 32 << 10), Cache(2, "unified", 1 << 20, 8, 64)]) == ["--LL=1048576,8,64"]
    assert cache_options([]) == []


@pytest.mark.parametrize(
    ("cache", "expected"),
    [
        (Cache(1, "data", 48 << 10, 12, 64), (48 << 10, 12, 64)),  # Golden Cove
        (Cache(3, "unified", 105 << 20, 15, 64), (104 << 20, 26, 64)),  # Sapphire Rapids: 114688 sets
        (Cache(3, "unified", 1024, 64, 64), None),
    ],
)
def test_a_cache_that_valgrind_cannot_simulate_is_brought_close(
    cache: Cache, expected: tuple[int, int, int] | None
) -> None:
    assert simulated(cache) == expected


@given(st.integers(1, 1 << 22), st.integers(1, 64), st.sampled_from([32, 64, 128]))
def test_what_is_simulated_has_a_power_of_two_of_sets_and_nearly_the_size(lines: int, ways: int, line: int) -> None:
    made = simulated(Cache(3, "unified", lines * line, ways, line))
    if lines < ways:
        assert made is None
        return
    assert made is not None
    size, made_ways, _ = made
    sets = size // (made_ways * line)
    assert size == sets * made_ways * line
    assert sets & (sets - 1) == 0
    assert lines * line * made_ways / (made_ways + 1) < size <= lines * line


# Availability, passes


def test_without_valgrind_the_remedy_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = CallgrindCollector().availability()
    assert (found.ok, found.reason, found.remedy) == (False, "valgrind is not installed", INSTALL)
    broken = tmp_path / "valgrind"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    found = CallgrindCollector().availability()
    assert not found.ok
    assert (found.reason or "").startswith("valgrind does not start")


def test_the_companion_does_the_same_work_in_the_same_environment() -> None:
    for options, iterations in (({}, 1), ({"cache_sim": True}, 2)):
        companion, own = CallgrindCollector().own_passes(options)
        assert (companion.name, own.name, own.times_from) == (COMPANION, PASS, COMPANION)
        assert companion.environment == own.environment
        assert companion.threads == own.threads == 1
        assert not companion.collecting
        assert own.iterations == iterations, "one to warm the simulated caches up"
        assert own.slow
