"""From executed blocks to sums by span, thread, event and kernel; and from addresses to names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.instrumented.accounting import Counted, Sums, add_up, count, count_kernels, starts_of
from collectors.instrumented.events import Event
from collectors.instrumented.facts import Fact
from collectors.instrumented.log import Log
from collectors.instrumented.memory import BLOCK, LOG_ENTRY, Context
from collectors.instrumented.symbols import (
    UNNAMED,
    Domain,
    Kernel,
    Known,
    Mapping,
    Symbols,
    domain_of,
    executable_mappings,
    name_addresses,
    read_perf_map,
    read_symbols,
)
from hwprof.session.collector import CountedSpan

JIT = Kernel(Domain.JIT, "jit", "conv", 0x1000)
SPIN = Kernel(Domain.OPENMP, "libgomp.so.1", None, None)
MAIN = 7
INSTRUCTIONS = Event(name="instructions", facts=("instructions",), meaning="")
MEMORY = Event(name="memory", facts=("loads", "stores"), meaning="")
WAITING = Event(name="waiting", facts=("instructions",), domains=(Domain.OPENMP,), meaning="")


def blocks(*each: dict[Fact, int]) -> np.ndarray[tuple[int], np.dtype[np.void]]:
    made = np.zeros(len(each), dtype=BLOCK)
    for number, facts in enumerate(each):
        made[number]["start"] = 0x1000 * (number + 1)
        for fact, value in facts.items():
            made[number]["facts"][fact] = value
    return made


def log(threads: list[int], entries: list[tuple[int, int, int]], ends: list[int]) -> Log:
    """Of every thread block 0 is the kernel (3 instructions, 2 loads, 1 store), block 1 spins (2 instructions)."""
    each = blocks({Fact.INSTRUCTIONS: 3, Fact.LOADS: 2, Fact.STORES: 1}, {Fact.INSTRUCTIONS: 2})
    contexts = [Context(tid=tid, blocks_used=2) for tid in threads]
    columns = np.array(entries, dtype=LOG_ENTRY)
    return Log(contexts, [each] * len(threads), columns, np.array(ends), np.arange(len(ends)) * 100)


def sums(made: Log) -> Sums:
    return add_up(made, np.array([0, 1] * len(made.contexts)), [JIT, SPIN])


def rows(counted: Counted, *columns: str) -> list[tuple[int, ...]]:
    return list(zip(*(getattr(counted, column).tolist() for column in columns), strict=True))


def test_a_span_has_what_was_executed_between_its_edges() -> None:
    made = log([7], [(0, 0, 100), (0, 0, 10), (0, 0, 1)], [1, 2, 3])
    spans = [CountedSpan(5, 0, 0, 1), CountedSpan(6, 0, 1, 2), CountedSpan(4, 0, 0, 2)]
    assert rows(count(sums(made), spans, 0, [INSTRUCTIONS, MEMORY], MAIN), "span", "event", "value") == [
        (0, 0, 30), (0, 1, 30), (1, 0, 3), (1, 1, 3), (2, 0, 33), (2, 1, 33),
    ]  # fmt: skip


def test_edges_of_the_self_test_are_skipped() -> None:
    made = log([7], [(0, 0, 100), (0, 0, 10)], [0, 1, 2])
    assert count(sums(made), [CountedSpan(0, 0, 0, 1)], 1, [INSTRUCTIONS], MAIN).value.tolist() == [30]


def test_waiting_is_apart_from_work_in_counts_and_a_kernel_of_its_own_by_kernel() -> None:
    made = log([7, 8], [(0, 0, 1), (1, 1, 50)], [0, 2])
    span = [CountedSpan(0, 0, 0, 1)]
    assert rows(count(sums(made), span, 0, [INSTRUCTIONS, WAITING], MAIN), "thread", "event", "value") == [
        (0, 0, 3), (0, 1, 0), (1, 0, 0), (1, 1, 100),
    ]  # fmt: skip
    by_kernel = count_kernels(sums(made), span, 0, [INSTRUCTIONS, WAITING])
    assert rows(by_kernel, "thread", "kernel", "event", "value") == [(0, 0, 0, 3), (1, 1, 0, 100)]


def test_the_busiest_thread_counts_edge_by_edge_and_without_waiting() -> None:
    """Main does 10, then 1 while the worker does 4 and waits: 10 + 4 kernels of 3 instructions, on the main thread."""
    made = log([MAIN, 8], [(0, 0, 10), (1, 1, 500), (0, 0, 1), (1, 0, 4)], [0, 2, 4])
    spans = [CountedSpan(0, 0, 0, 1), CountedSpan(1, 0, 1, 2), CountedSpan(2, 0, 0, 2)]
    critical = Event(name="critical", facts=("instructions",), busiest=True, meaning="")
    assert rows(count(sums(made), spans, 0, [critical], MAIN), "span", "thread", "value") == [
        (0, 0, 30), (0, 1, 0), (1, 0, 12), (1, 1, 0), (2, 0, 42), (2, 1, 0),
    ]  # fmt: skip
    assert count_kernels(sums(made), spans, 0, [critical]).value.tolist() == []


def test_two_contexts_of_one_thread_are_one_thread() -> None:
    made = log([7, 7], [(0, 0, 1), (1, 0, 2)], [0, 2])
    added = sums(made)
    assert added.tids == (7,)
    assert count(added, [CountedSpan(0, 0, 0, 1)], 0, [INSTRUCTIONS], MAIN).value.tolist() == [9]


def test_nothing_executed_is_a_counted_zero() -> None:
    made = log([7], [], [0, 0])
    assert count(sums(made), [CountedSpan(0, 0, 0, 1)], 0, [INSTRUCTIONS], MAIN).value.tolist() == [0]
    assert count_kernels(sums(made), [CountedSpan(0, 0, 0, 1)], 0, [INSTRUCTIONS]).value.tolist() == []
    assert count_kernels(sums(made), [], 0, [INSTRUCTIONS]).value.tolist() == []


@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(1, 2**40)), max_size=5),
        min_size=2,
        max_size=8,
    )
)
def test_kernels_and_intervals_add_up_to_the_whole(intervals: list[list[tuple[int, int, int]]]) -> None:
    """Whatever was executed: leaf spans add up to the span around them, kernels to their span, without rounding."""
    entries = [entry for interval in intervals for entry in interval]
    ends = np.cumsum([len(interval) for interval in intervals]).tolist()
    made = log([7, 8], entries, ends)
    last = len(intervals) - 1
    leaves = [CountedSpan(edge, 0, edge, edge + 1) for edge in range(last)]
    everything = Event(name="all", facts=("instructions",), domains=(Domain.JIT, Domain.OPENMP), meaning="")
    whole = sum(entry[2] * (3, 2)[entry[1]] for interval in intervals[1:] for entry in interval)
    assert count(sums(made), leaves, 0, [everything], MAIN).value.sum() == whole
    assert count(sums(made), [CountedSpan(0, 0, 0, last)], 0, [everything], MAIN).value.sum() == whole
    assert count_kernels(sums(made), leaves, 0, [INSTRUCTIONS]).value.sum() == whole


def test_starts_go_context_after_context() -> None:
    assert starts_of(log([7, 8], [], [0])).tolist() == [0x1000, 0x2000, 0x1000, 0x2000]


# --- names

MAPS = """\
00400000-00500000 r-xp 00000000 fe:00 1    /usr/bin/python3.11
00500000-00600000 rw-p 00100000 fe:00 1    /usr/bin/python3.11
7f0000000000-7f0000001000 rwxp 00000000 00:00 0
7f0000002000-7f0000003000 r-xp 00000000 fe:00 2    /opt/a folder/libgomp-24e2ab19.so.1.0.0 (deleted)
7ffd00000000-7ffd00001000 r-xp 00000000 00:00 0    [vdso]
"""


def test_executable_mappings_are_read() -> None:
    found = executable_mappings(MAPS)
    assert [mapping.path for mapping in found] == [
        "/usr/bin/python3.11", "", "/opt/a folder/libgomp-24e2ab19.so.1.0.0 (deleted)", "[vdso]",
    ]  # fmt: skip
    assert found[0] == Mapping(0x400000, 0x500000, 0, "/usr/bin/python3.11")


@pytest.mark.parametrize(
    ("path", "domain"),
    [
        ("/x/torch/lib/libtorch_cpu.so", Domain.TORCH),
        ("/x/torch/_C.cpython-311-x86_64-linux-gnu.so", Domain.TORCH),
        ("/x/torch/lib/libgomp.so.1", Domain.OPENMP),
        ("/usr/bin/python3.11", Domain.PYTHON),
        ("/usr/lib/libm.so.6", Domain.SYSTEM),
        ("/usr/lib/libc.so.6", Domain.SYSTEM),
        ("[vdso]", Domain.SYSTEM),
        ("/memfd:frida-agent-64.so (deleted)", Domain.OWN),
        ("/x/numpy/_core/_multiarray_umath.cpython-311-x86_64-linux-gnu.so", Domain.OTHER),
    ],
)
def test_a_file_says_what_its_code_is_there_for(path: str, domain: Domain) -> None:
    assert domain_of(path) is domain


def test_addresses_get_names() -> None:
    known = read_perf_map("7f0000000100 10 conv.1\n7f0000000200 20 a name\n7f0000000100 8 conv.2\n7f00000003")
    addresses = np.array([0x400010, 0x7F0000000104, 0x7F000000010A, 0x7F0000000210, 0x7F0000000000, 1], dtype=np.uint64)
    numbers, kernels = name_addresses(addresses, executable_mappings(MAPS), known)
    found = [(kernels[number].domain.value, kernels[number].library, kernels[number].name) for number in numbers]
    assert found == [
        ("python", "python3.11", None),
        ("jit", "jit", "conv.2"),  # the later line is right where two overlap
        ("jit", "jit", "conv.1"),
        ("jit", "jit", "a name"),
        ("jit", "jit", None),
        ("other", "unknown", None),
    ]


def test_a_known_place_has_an_end() -> None:
    kernel = Kernel(Domain.OWN, "hwprof", None, None)
    numbers, kernels = name_addresses(np.array([9, 10, 19, 20], np.uint64), [], [Known(10, 20, kernel)])
    assert [kernels[number].domain for number in numbers] == [Domain.OTHER, Domain.OWN, Domain.OWN, Domain.OTHER]


def test_a_gap_between_functions_has_no_name() -> None:
    symbols = Symbols(
        np.array([10, 30], np.uint64), np.array([20, 40], np.uint64), np.array([1, 3], np.uint32), b"\0a\0b\0"
    )
    assert symbols.find(np.array([9, 10, 19, 20, 30, 40], np.uint64)).tolist() == [UNNAMED, 0, 0, UNNAMED, 1, UNNAMED]
    assert (symbols.name(0), symbols.name(1)) == ("a", "b")


def test_what_is_no_elf_file_has_no_symbols(tmp_path: Path) -> None:
    for content in (b"", b"\x7fELF\x02", b"#!/bin/sh\n" * 20):
        (tmp_path / "file").write_bytes(content)
        read_symbols.cache_clear()
        assert not len(read_symbols(str(tmp_path / "file")).starts)
    assert not len(read_symbols(str(tmp_path / "none")).starts)
