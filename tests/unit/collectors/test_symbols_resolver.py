"""From addresses of a process to kernels: mappings, JIT code, the operating system, and what nobody knows."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.shared.symbols import jit
from collectors.shared.symbols.domains import Domain
from collectors.shared.symbols.elf import Segment
from collectors.shared.symbols.jit import Known, keep_perf_map, read_perf_map, split_ordinal
from collectors.shared.symbols.kallsyms import KernelSymbols, read_kallsyms
from collectors.shared.symbols.kernels import UNKNOWN, Kernel
from collectors.shared.symbols.library import Library, open_library
from collectors.shared.symbols.mappings import Mapping, executable_mappings
from collectors.shared.symbols.process import resolver, vdso
from collectors.shared.symbols.ranges import NONE, Ranges
from collectors.shared.symbols.resolver import Resolver
from collectors.shared.symbols.table import NO_SYMBOLS
from collectors.shared.symbols.tables import kernels_table
from hwprof.run.schema import conform
from tests.support.elf_files import TEXT_OFFSET, Symbol, elf

MAPS = """\
00400000-00500000 r-xp 00000000 fe:00 1    /usr/bin/python3.11
00500000-00600000 rw-p 00100000 fe:00 1    /usr/bin/python3.11
7f0000000000-7f0000001000 rwxp 00000000 00:00 0
7f0000002000-7f0000003000 r-xp 00000000 fe:00 2    /opt/a folder/libgomp-24e2ab19.so.1.0.0 (deleted)
7f0000003000-7f0000004000 rwxp 00000000 00:01 3    /memfd:frida-agent-64.so (deleted)
7f0000004000-7f0000005000 rwxp 00000000 00:00 0    [anon:jit]
7f0000005000-7f0000006000 r-xs 00000000 00:00 4    /tmp/.debug/jit/dnnl.a/jit-28007.dump
7ffd00000000-7ffd00001000 r-xp 00000000 00:00 0    [vdso]
7ffd00002"""


def test_executable_mappings_are_read() -> None:
    found = executable_mappings(MAPS)
    assert found[0] == Mapping(0x400000, 0x500000, 0, "/usr/bin/python3.11")
    assert [(mapping.library, mapping.domain, mapping.file) for mapping in found] == [
        ("python3.11", Domain.PYTHON, Path("/usr/bin/python3.11")),
        ("jit", Domain.JIT, None),
        ("libgomp-24e2ab19.so.1.0.0", Domain.OPENMP, None),  # another file may stand there by now
        ("memfd:frida-agent-64.so", Domain.OWN, None),
        ("jit", Domain.JIT, None),
        ("jit-28007.dump", Domain.OTHER, Path("/tmp/.debug/jit/dnnl.a/jit-28007.dump")),
        ("[vdso]", Domain.SYSTEM, None),
    ]


# --- ranges


def painted(ranges: list[tuple[int, int]], address: int) -> int:
    """One after another, each over the earlier ones."""
    return max((n for n, (start, length) in enumerate(ranges) if start <= address < start + length), default=NONE)


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 30)), max_size=12))
def test_of_ranges_that_overlap_the_last_one_is_right(ranges: list[tuple[int, int]]) -> None:
    made = Ranges.of([start for start, _ in ranges], [start + length for start, length in ranges])
    assert (made.starts[1:] >= made.ends[:-1]).all()
    places = made.find(np.arange(100, dtype=np.uint64)).tolist()
    owners = [NONE if place == NONE else int(made.owners[place]) for place in places]
    assert owners == [painted(ranges, address) for address in range(100)]


def test_the_operating_systems_half_has_its_first_address() -> None:
    symbols = read_kallsyms(f"{2**63:x} T first\n")
    found = Resolver([], kernel=lambda: symbols)
    assert found.kernel_at(2**63) == Kernel(Domain.KERNEL, "[kernel]", "first")
    assert found.kernel_at(2**63 - 1) == UNKNOWN


def test_ranges_reach_to_the_last_address() -> None:
    made = Ranges.of(np.array([2**64 - 16], np.uint64), np.array([2**64 - 1], np.uint64))
    assert made.find(np.array([2**64 - 17, 2**64 - 16, 2**64 - 2], np.uint64)).tolist() == [NONE, 0, 0]


# --- code made at run time


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("jit_avx512_core_brgemm_conv_fwd_kernel_vmm_t.244", ("jit_avx512_core_brgemm_conv_fwd_kernel_vmm_t", 244)),
        ("direct_copy_kernel_t.0", ("direct_copy_kernel_t", 0)),
        ("jit_uni_reorder_kernel_f32", ("jit_uni_reorder_kernel_f32", None)),
        ("py::forward:/a/b.py.3", ("py::forward:/a/b.py.3", None)),
        (".5", (".5", None)),
    ],
)
def test_the_number_of_a_kernel_is_not_its_name(name: str, split: tuple[str, int | None]) -> None:
    assert split_ordinal(name) == split


PERF_MAP = """\
7f0000000100 10 jit_conv_t.1
7f0000000200 20 a name with blanks
no line of a map
7f0000000100 8 jit_conv_t.2
7f0000000300 0 empty
7f0000000400 fffffffffffffff0 endless
-5 10 before
7f0000000500 10 _ZN1a1bILi3EEEvi
7f00000003"""


def test_a_perf_map_is_read_line_by_line() -> None:
    found = read_perf_map(PERF_MAP)
    assert [(place.start, place.end, place.kernel.name, place.kernel.full_name) for place in found] == [
        (0x7F0000000100, 0x7F0000000110, "jit_conv_t", "jit_conv_t.1"),
        (0x7F0000000200, 0x7F0000000220, "a name with blanks", None),
        (0x7F0000000100, 0x7F0000000108, "jit_conv_t", "jit_conv_t.2"),
        (0x7F0000000500, 0x7F0000000510, "a::b", "void a::b<3>(int)"),
    ]  # fmt: skip


@given(st.text(st.characters(codec="utf-8"), max_size=200))
def test_no_text_is_too_odd_for_a_perf_map(text: str) -> None:
    for place in read_perf_map(text):
        assert 0 <= place.start < place.end < 2**63


def test_a_perf_map_is_kept_among_the_raw_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = tmp_path / "perf-7.map"
    monkeypatch.setattr(jit, "perf_map_of", lambda pid: tmp_path / f"perf-{pid}.map")
    raw = tmp_path / "raw"
    raw.mkdir()
    assert keep_perf_map(7, raw) == []
    written.write_text(PERF_MAP)
    assert len(keep_perf_map(7, raw)) == 4
    assert not written.exists()
    assert (raw / "perf.map").read_text() == PERF_MAP


# --- the operating system

KALLSYMS = """\
ffffffff81000000 T _stext
ffffffff81000000 T startup_64
ffffffff81000100 t do_syscall_64
ffffffff82000000 D a_variable
ffffffffc0000000 t nvme_queue_rq\t[nvme]
0000000000000000 A fixed_percpu_data
"""
HIDDEN = "\n".join(f"0000000000000000 {line.split(' ', 1)[1]}" for line in KALLSYMS.splitlines())


def kernel_names(text: str, *addresses: int) -> list[tuple[str, str | None]]:
    symbols: KernelSymbols = read_kallsyms(text)
    numbers, kernels = Resolver([], kernel=lambda: symbols).resolve(np.array(addresses, np.uint64))
    assert {kernel.domain for kernel in kernels} == {Domain.KERNEL}
    conform("kernels", kernels_table(kernels))
    return [(kernels[number].library, kernels[number].name) for number in numbers]


def test_the_kernels_functions_have_names_where_it_tells_them() -> None:
    asked = (0xFFFFFFFF80000000, 0xFFFFFFFF81000000, 0xFFFFFFFF81000180, 0xFFFFFFFFC0000004)
    assert kernel_names(KALLSYMS, *asked) == [
        ("[kernel]", None),
        ("[kernel]", "startup_64"),
        ("[kernel]", "do_syscall_64"),
        ("[nvme]", "nvme_queue_rq"),
    ]
    assert kernel_names(HIDDEN, *asked) == [("[kernel]", None)] * 4


# --- all together


@pytest.fixture
def torch_library(tmp_path: Path) -> Path:
    path = tmp_path / "libtorch_cpu.so"
    path.write_bytes(elf([Symbol("_ZN2at6native4siluERKNS_6TensorE", 0x2400, 64), Symbol("sgemm", 0x2480, 32)]))
    open_library.cache_clear()
    return path


def test_addresses_get_names(torch_library: Path) -> None:
    """A library that was mapped in two pieces, JIT code by the map and without it, own code, and nothing at all."""
    base = 0x7F1000000000
    pieces = [Mapping(base, base + 0x440, 0, str(torch_library))]
    pieces.append(Mapping(base + 0x440, base + 0x2000, 0x440, str(torch_library)))
    own = Known(0x10, 0x20, Kernel(Domain.OWN, "hwprof", None))
    names = Resolver([*executable_mappings(MAPS), *pieces], [own, *read_perf_map(PERF_MAP)])
    silu = base + TEXT_OFFSET
    addresses = [0x7F0000000104, 0x7F000000010A, 0x7F0000000000, 0x7F0000004000, silu, silu + 0x3F, silu + 0x40]
    addresses += [silu + 0x80, 0x7F0000002000, 0x10, 0x20, 0x7F0000000104]
    numbers, kernels = names.resolve(np.array(addresses, np.uint64))
    full_silu = "at::native::silu(at::Tensor const&)"
    assert [kernels[number] for number in numbers] == [
        Kernel(Domain.JIT, "jit", "jit_conv_t", "jit_conv_t.2", 0x7F0000000100),  # the later line
        Kernel(Domain.JIT, "jit", "jit_conv_t", "jit_conv_t.1", 0x7F0000000100),  # what it leaves of the earlier one
        Kernel(Domain.JIT, "jit", None),
        Kernel(Domain.JIT, "jit", None),
        Kernel(Domain.TORCH, "libtorch_cpu.so", "at::native::silu", full_silu, silu),
        Kernel(Domain.TORCH, "libtorch_cpu.so", "at::native::silu", full_silu, silu),
        Kernel(Domain.TORCH, "libtorch_cpu.so", None),
        Kernel(Domain.TORCH, "libtorch_cpu.so", "sgemm", None, silu + 0x80),
        Kernel(Domain.OPENMP, "libgomp-24e2ab19.so.1.0.0", None),
        Kernel(Domain.OWN, "hwprof", None),
        UNKNOWN,
        Kernel(Domain.JIT, "jit", "jit_conv_t", "jit_conv_t.2", 0x7F0000000100),
    ]
    assert len(set(kernels)) == len(kernels)
    assert names.kernel_at(silu) == kernels[numbers[4]]


def test_nothing_asked_is_nothing_found() -> None:
    numbers, kernels = Resolver([]).resolve(np.empty(0, np.uint64))
    assert (len(numbers), kernels) == (0, [])


@given(st.lists(st.integers(0, 2**64 - 1), max_size=20))
def test_no_address_is_left_out(addresses: list[int]) -> None:
    symbols = read_kallsyms("")
    names = Resolver(executable_mappings(MAPS), read_perf_map(PERF_MAP), kernel=lambda: symbols)
    numbers, kernels = names.resolve(np.array(addresses, np.uint64))
    assert len(numbers) == len(addresses)
    assert set(numbers.tolist()) == set(range(len(kernels)))


def test_kernels_are_rows_of_their_table() -> None:
    rows = kernels_table([Kernel(Domain.JIT, "jit", "conv", "conv.1", 2**47 - 1), UNKNOWN])
    conform("kernels", rows)
    assert rows.rows() == [
        (0, "jit", "jit", "conv", "conv.1", 2**47 - 1),
        (1, "other", "[unknown]", None, None, None),
    ]


def test_the_vdso_is_read_from_memory() -> None:
    if not vdso():
        pytest.skip("the kernel lends this process no code")
    mapping = next(one for one in executable_mappings(Path("/proc/self/maps").read_text()) if one.path == "[vdso]")
    _, kernels = resolver(os.getpid()).resolve(np.arange(mapping.start, mapping.end, 16, dtype=np.uint64))
    assert {kernel.library for kernel in kernels} == {"[vdso]"}
    assert any("gettime" in (kernel.name or "") for kernel in kernels)


@pytest.mark.parametrize("address", [0, 0x20, 2**64 - 0x50, 2**64 - 1])
def test_a_damaged_file_that_wants_its_code_where_no_address_is_names_nothing(address: int) -> None:
    """The mapping begins with its page, 0x40 before what the segment says."""
    segment = Segment(offset=0x1040, address=address, length=0x200, alignment=0x1000)
    before, inside = (Library((segment,), NO_SYMBOLS).address(offset) for offset in (0x1000, 0x10C0))
    assert before == (None if address < 0x40 else address - 0x40)
    assert inside == (None if address >= 2**64 - 0x80 else address + 0x80)


def test_only_a_perf_map_that_the_process_wrote_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In /tmp anybody may have put another thing under its name: a pipe blocks who reads it."""
    place, kept = tmp_path / "perf-1.map", tmp_path / "kept"
    kept.mkdir()
    monkeypatch.setattr(jit, "perf_map_of", lambda pid: place)
    assert keep_perf_map(1, kept) == []
    os.mkfifo(place)
    assert keep_perf_map(1, kept) == []
    place.unlink()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("1000 10 kernel\n")
    place.symlink_to(elsewhere)
    assert keep_perf_map(1, kept) == []
    place.unlink()
    elsewhere.rename(place)
    assert [one.kernel.name for one in keep_perf_map(1, kept)] == ["kernel"]
