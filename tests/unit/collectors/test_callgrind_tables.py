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
from collectors.callgrind.edges import Edges
from collectors.callgrind.profile import NO_FILE, Function, Part
from collectors.callgrind.tables import Tables, kernel_of
from collectors.shared.symbols.domains import Domain
from collectors.shared.symbols.jit import read_perf_map
from collectors.shared.symbols.kernels import Kernel
from collectors.shared.symbols.resolver import Resolver
from hwprof.collector.contract import CountedSpan
from hwprof.run.manifest import Cache
from hwprof.run.schema import conform

JIT_CODE = Resolver([], read_perf_map("2b18b000 241d jit_sse41_conv_fwd_kernel_f32_t.0\n"))
JIT = Function("0x000000002b18c000", NO_FILE)
PLAIN = Function("at::native::silu(at::Tensor const&)", "/usr/lib/libtorch_cpu.so")

# iteration(0..7) > stage(1..6) > two leaves (2..3), (4..5)
SPANS = [CountedSpan(10, 1, 0, 7), CountedSpan(11, 1, 1, 6), CountedSpan(12, 1, 2, 3), CountedSpan(13, 1, 4, 5)]


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (PLAIN, Kernel(Domain.TORCH, "libtorch_cpu.so", "at::native::silu", "at::native::silu(at::Tensor const&)")),
        (
            JIT,
            Kernel(
                Domain.JIT,
                "jit",
                "jit_sse41_conv_fwd_kernel_f32_t",
                "jit_sse41_conv_fwd_kernel_f32_t.0",
                0x2B18B000,
            ),
        ),
        (
            Function("0x0000000004936728", NO_FILE),
            Kernel(Domain.OTHER, "[unknown]", "0x4936728", None, 0x4936728),
        ),
        (
            Function("0x000000002b18c000", "/x/libtorch_cpu.so"),
            Kernel(Domain.TORCH, "libtorch_cpu.so", "libtorch_cpu.so+0x2b18c000"),
        ),
        (Function("(below main)", NO_FILE), Kernel(Domain.OTHER, "[unknown]", "(below main)")),
        (Function("memcpy", "/lib/libc.so.6"), Kernel(Domain.SYSTEM, "libc.so.6", "memcpy")),
        (Function("main", "/usr/bin/python3"), Kernel(Domain.PYTHON, "python3", "main")),
    ],
)
def test_functions_have_a_name_and_a_home(function: Function, expected: Kernel) -> None:
    assert kernel_of(function, JIT_CODE) == expected


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


def part(number: int, *costs: tuple[Function, int, int]) -> Part:
    return Part(
        number,
        ("Ir", "D1mr", "D1mw"),
        [sum(cost[1] for cost in costs), sum(cost[2] for cost in costs), 0],
        {function: [instructions, misses, 0] for function, instructions, misses in costs},
    )


@pytest.fixture
def tables() -> Tables:
    made = Tables(Edges(77, 8, SPANS), JIT_CODE)
    made.take([part(number, (PLAIN, 10**number, number)) for number in (1, 2, 4, 6, 7)])
    made.take([part(3, (JIT, 500, 7), (PLAIN, 500, 1)), part(5, (JIT, 0, 0)), part(8, (PLAIN, 10**9, 0))])
    return made


def test_counts_are_sums_of_the_parts_of_a_span(tables: Tables) -> None:
    counts = conform("counts", tables.counts().with_columns(pl.lit("callgrind").alias("pass")))
    instructions = dict(counts.filter(event="callgrind.instructions").select("span", "value").iter_rows())
    assert instructions == {10: 11_011_110, 11: 1_010_100 + 1000, 12: 1000, 13: 0}
    misses = counts.filter(event="callgrind.l1d-misses", span=12).row(0, named=True)
    assert (misses["value"], misses["provenance"], misses["tid"]) == (8, "simulated", 77)
    assert set(counts.filter(event="callgrind.instructions")["provenance"]) == {"instrumented"}
    assert set(counts["event"]) == {"callgrind.instructions", "callgrind.l1d-misses"}, "no last level, no such event"


def named(tables: Tables) -> pl.DataFrame:
    return tables.kernel_counts().join(tables.kernels(), on="kernel")


def test_kernels_stand_for_what_a_span_counted(tables: Tables) -> None:
    for table, frame in (("kernels", tables.kernels()), ("kernel_counts", tables.kernel_counts())):
        conform(table, frame.with_columns(pl.lit("callgrind").alias("pass")))
    leaf = named(tables).filter(span=12, event="callgrind.instructions").sort("name")
    assert leaf.select("name", "library", "value").rows() == [
        ("at::native::silu", "libtorch_cpu.so", 500),
        ("jit_sse41_conv_fwd_kernel_f32_t", "jit", 500),
    ]
    assert not tables.kernel_counts().filter(value=0).height


@given(nested(), st.data())
def test_kernels_add_up_to_the_counts_and_spans_to_their_parts(spans: list[CountedSpan], data: st.DataObject) -> None:
    edges = 1 + max(span.end_edge for span in spans)
    amounts = st.lists(st.tuples(st.integers(0, 99), st.integers(0, 9)), min_size=edges - 1, max_size=edges - 1)
    plain, jit = data.draw(amounts), data.draw(amounts)
    made = Tables(Edges(77, edges, spans), JIT_CODE)
    made.take(part(number, (PLAIN, *plain[number - 1]), (JIT, *jit[number - 1])) for number in range(1, edges))
    counts = {(span, event): value for span, event, value in made.counts().select("span", "event", "value").iter_rows()}
    for span in spans:
        inside = slice(span.begin_edge, span.end_edge)
        expected = sum(pair[0] for pair in plain[inside] + jit[inside])
        assert counts[span.span, "callgrind.instructions"] == expected
    sums = made.kernel_counts().group_by("span", "event").agg(pl.col("value").sum())
    assert {(span, event): value for span, event, value in sums.iter_rows()} == {
        key: value for key, value in counts.items() if value
    }


def test_a_dump_that_is_missing_costs_the_spans_around_it_their_counts() -> None:
    made = Tables(Edges(77, 8, SPANS), Resolver([]))
    made.take([part(number, (PLAIN, 5, 0)) for number in (1, 2, 3, 4)])
    assert made.missing_parts == 3
    assert set(made.counts()["span"]) == {12}


def test_no_event_is_called_as_a_hardware_counter_is() -> None:
    assert all(event.name.startswith("callgrind.") for event in events.known())
    assert {event.name for event in events.known() if event.provenance == "simulated"} == {
        f"callgrind.{level}-misses" for level in ("l1i", "l1d", "llc")
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
