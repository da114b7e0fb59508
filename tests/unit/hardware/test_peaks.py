"""Measured peaks, as far as no processor is needed: working sets, processors, data sheets, what is said of them."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from hwprof import c_compiler
from hwprof.hardware.catalogue import microarchitectures
from hwprof.hardware.peaks import suite, team
from hwprof.hardware.peaks.data_sheet import sheets, theoretical
from hwprof.hardware.peaks.kernels import ARITHMETIC, WIDTHS, Kernels
from hwprof.hardware.peaks.working_sets import STREAM, chased, dram_bytes, working_sets
from hwprof.report.text.console import make_console
from hwprof.report.text.peaks import show
from hwprof.run.manifest import Cache, CoreKind
from hwprof.run.peaks import DRAM, NotMeasured, Peaks
from hwprof.session import peaks as session_peaks
from tests.support.fake_perf import machine
from tests.support.machine_peaks import FOUND, peak

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


def cache(level: int, size: int, shared_by: int = 1, kind: str = "data") -> Cache:
    return Cache(level=level, kind=kind, size_bytes=size, ways=8, line_bytes=64, shared_by=shared_by)  # type: ignore[arg-type]


ZEN4 = [cache(1, 32 * KIB), cache(1, 32 * KIB, kind="instruction"), cache(2, MIB), cache(3, 32 * MIB, 16)]


def test_each_level_has_a_working_set_that_lies_in_it_and_not_in_the_one_above() -> None:
    sets = {one.level: one.bytes for one in working_sets(ZEN4, 1, 24 * GIB)}
    assert list(sets) == ["L1", "L2", "L3", DRAM]
    assert sets["L1"] <= 32 * KIB / 2 < 32 * KIB < sets["L2"] < MIB < sets["L3"] < 32 * MIB
    assert sets[DRAM] >= 3 * STREAM * 32 * MIB * 0.99


def test_threads_share_what_is_shared() -> None:
    alone, eight = ({one.level: one.bytes for one in working_sets(ZEN4, n, 24 * GIB)} for n in (1, 8))
    assert eight["L2"] == alone["L2"], "a core's own"
    assert MIB < eight["L3"] < 32 * MIB / 8
    assert eight[DRAM] == pytest.approx(alone[DRAM] / 8, rel=0.01), "all together"


def test_a_level_without_room_of_its_own_and_dram_without_memory_are_left_out() -> None:
    small_last = [cache(1, 48 * KIB), cache(2, 2 * MIB), cache(3, 2 * MIB)]
    assert [one.level for one in working_sets(small_last, 1, 24 * GIB)] == ["L1", "L2", DRAM]
    assert [one.level for one in working_sets(ZEN4, 1, 256 * MIB)] == ["L1", "L2", "L3"]
    assert [one.level for one in working_sets([], 1, 24 * GIB)] == [DRAM]


def test_of_a_large_cache_less_is_streamed_where_memory_is_short() -> None:
    large = [cache(1, 48 * KIB), cache(2, 2 * MIB), cache(3, 480 * MIB)]
    streamed = {free: working_sets(large, 1, free * GIB)[-1] for free in (15, 21, 24)}
    assert streamed[24].bytes == pytest.approx(3 * STREAM * 480 * MIB, rel=0.01)
    assert streamed[21].level == DRAM and streamed[21].bytes == pytest.approx(3 * 2 * 480 * MIB, rel=0.01)
    assert streamed[15].bytes == streamed[21].bytes


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(4 * KIB, 512 * MIB), st.integers(1, 256)), max_size=5),
    st.integers(1, 256),
    st.integers(0, 1 << 42),
)
def test_working_sets_of_any_machine(levels: list[tuple[int, int, int]], threads: int, free: int) -> None:
    caches = [cache(*one) for one in levels]
    found = working_sets(caches, threads, free)
    sizes = [one.bytes for one in found]
    assert all(size % (3 * 4096) == 0 and size > 0 for size in sizes)
    assert sizes[:-1] == sorted(sizes[:-1]) or not found
    assert all(one.bytes * threads <= free / 4 for one in found if one.level == DRAM)
    assert dram_bytes(caches, threads, arrays=3) * threads >= 0.9 * 3 * 64 * MIB or threads > 64
    assert all(one.bytes <= 0.75 * max(c.size_bytes for c in caches) for one in chased(caches))


def test_a_chase_goes_round_in_twice_the_level_above() -> None:
    assert [(one.level, round(one.bytes / KIB)) for one in chased(ZEN4)] == [("L1", 12), ("L2", 60), ("L3", 2040)]


def test_processors_are_of_cores_first_and_their_siblings_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for cpu in range(4):
        folder = tmp_path / f"cpu{cpu}" / "topology"
        folder.mkdir(parents=True)
        (folder / "core_cpus_list").write_text(f"{cpu % 2},{cpu % 2 + 2}\n")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    assert [team.processors(n, tmp_path) for n in (1, 2, 3, 9)] == [[0], [0, 1], [0, 1, 2], [0, 1, 2, 3]]
    assert team.cores(tmp_path) == 2
    assert team.processors(3, tmp_path / "nothing") == [0, 1, 2]


def test_data_sheets_are_of_processors_that_the_catalogue_knows() -> None:
    known = {one.id for one in microarchitectures()}
    assert set(sheets()) <= known and len(sheets()) >= 15
    for sheet in sheets().values():
        assert all(math.log2(value).is_integer() for value in (sheet.fp32, sheet.bf16, sheet.int8) if value is not None)
    zen4 = machine((CoreKind(None, "amd-zen4", (0, 1)),))
    found = {(one.what, one.threads): one.value for one in theoretical(zen4, [2, 1], 3.5)}
    assert found[("fp32", 2)] == pytest.approx(2 * 32 * 3.5) and found[("int8", 1)] == pytest.approx(128 * 3.5)
    assert theoretical(zen4, [1], None) == []
    unlike = machine((CoreKind(None, "intel-golden-cove", (0,)), CoreKind(None, "intel-gracemont", (1,))))
    assert theoretical(unlike, [1], 3.5) == []


class Library:
    """Of a compiler that knew these only."""

    def __init__(self, *symbols: str) -> None:
        for symbol in symbols:
            setattr(self, symbol, None)


@pytest.mark.parametrize(
    ("flags", "width", "loops"),
    [
        ({"avx512f", "avx2", "fma", "avx512_bf16", "avx512_vnni"}, 512, ["fma_512", "bf16_512", "int8_512"]),
        ({"avx2", "fma", "avx_vnni"}, 256, ["fma_256", "int8_256"]),
        ({"avx2"}, 128, ["fma_128"]),
        (set(), 128, ["fma_128"]),
    ],
)
def test_the_widest_that_the_processor_has(flags: set[str], width: int, loops: list[str]) -> None:
    kernels = Kernels(Library(*(one.symbol for one in ARITHMETIC)), flags)
    assert kernels.width.bits == width and [one.symbol for one in kernels.arithmetic()] == loops
    older = Kernels(Library("fma_512", "fma_256", "fma_128"), flags)
    assert [one.what for one in older.arithmetic()] == ["fp32"]
    assert WIDTHS[-1].flags == ()


def printed(found: Peaks, width: int) -> list[str]:
    text = io.StringIO()
    show(found, make_console(width, text))
    return text.getvalue().splitlines()


@pytest.mark.parametrize("width", [80, 120])
def test_what_is_printed(width: int) -> None:
    lines = printed(FOUND, width)
    assert max(map(cell_len, lines)) <= width
    rows = {line.split()[0]: line.split() for line in lines if line.strip()}
    assert rows["FP32"][2:4] == ["116", "232"] and rows["GEMM"][3:5] == ["100", "200"]
    levels = [line.split()[0] for line in lines if line[:2] in ("L1", "L2", "DR")]
    assert levels == ["L1", "L2", DRAM] * 2
    assert any("BF16 not available: no instructions for it. Try: another processor" in line for line in lines)
    assert not any("too low" in line for line in lines)


def test_at_80_columns_no_line_breaks_within_a_fact() -> None:
    compiler = "(Debian 12.2.0-14+deb12u1) 12.2.0"
    lines = printed(msgspec.structs.replace(FOUND, built_by=compiler, seconds=8.8, missing=[]), 80)
    assert lines[:2] == ["AMD EPYC, measured 2026-11-25T22:00:00+00:00 in 8.8 s,", f"C compiler {compiler}"]
    names = ("threads", "figures", "triad", "working set")
    notes = [line for line in lines if line.startswith("  ") and ":" in line]
    assert len(notes) == 4 and all(line[2:].partition(":")[0] in names for line in notes), notes
    narrow = printed(msgspec.structs.replace(FOUND, built_by=compiler, others_share=0.5), 40)
    assert not [line for line in narrow if line.endswith(" ") or cell_len(line) > 40]


def test_a_busy_machine_is_said_first() -> None:
    busy = Peaks(**{name: getattr(FOUND, name) for name in Peaks.__struct_fields__} | {"others_share": 0.4})
    assert any("others took 40% of the processors meanwhile" in line for line in printed(busy, 120)[:3])


def test_the_peak_by_most_threads_unless_one_is_named() -> None:
    assert (found := FOUND.find("fp32")) is not None and found.threads == 2
    assert (found := FOUND.find("triad", 1, "L2")) is not None and found.value == 200.0
    assert FOUND.find("triad", 4, "L2") is None and FOUND.find("int8") is None


def busy(fp32: float, ns: float, share: float) -> Peaks:
    peaks = [peak("fp32", 1, fp32), peak("latency", 1, ns, DRAM)]
    return msgspec.structs.replace(FOUND, threads=[1], peaks=peaks, others_share=share)


def test_of_disturbed_measurements_the_better_of_each_figure_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    of = machine(())
    digest = session_peaks.digest(of)
    first, second = (msgspec.structs.replace(busy(*one), machine=digest) for one in ((64, 140, 0.48), (48, 120, 0.42)))
    session_peaks._keep(first, of)
    both = session_peaks._with_earlier(second, of)
    assert [one.value for one in both.peaks] == [64, 120]
    assert (both.measurements, both.others_share) == (2, 0.42)
    assert any("the best of 2 measurements" in line for line in printed(both, 120))
    quiet = msgspec.structs.replace(busy(50, 130, 0.0), machine=digest)
    assert session_peaks._with_earlier(quiet, of) is quiet


@pytest.mark.parametrize(("before", "now"), [(2.0, 0.5), (0.5, 2.0)])
def test_the_data_sheet_is_told_at_the_clock_that_is_kept(
    before: float, now: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    of = machine((CoreKind(None, "amd-zen4", (0, 1)),))
    first, second = (
        msgspec.structs.replace(
            FOUND,
            machine=session_peaks.digest(of),
            peaks=[peak("clock", 1, ghz)],
            others_share=0.4,
            theoretical=theoretical(of, FOUND.threads, ghz),
        )
        for ghz in (before, now)
    )
    session_peaks._keep(first, of)
    both = session_peaks._with_earlier(second, of)
    assert [one.value for one in both.peaks] == [2.0] and both.measurements == 2
    assert both.theoretical == theoretical(of, FOUND.threads, 2.0)
    without = msgspec.structs.replace(second, peaks=[], theoretical=[])
    assert session_peaks._with_earlier(without, of).theoretical == [], "no clock is kept"


@pytest.mark.parametrize(("field", "value"), [("others_share", -5.0), ("others_share", 1.5), ("seconds", -1)])
def test_impossible_figures_are_refused(field: str, value: float) -> None:
    raw = msgspec.to_builtins(FOUND) | {field: value}
    with pytest.raises(msgspec.ValidationError, match=field):
        msgspec.convert(raw, Peaks)


def test_those_of_a_time_at_which_a_core_was_taken_are_not_used_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    of, now = machine(), datetime.now(UTC).isoformat()

    def keep(both: float, others_share: float) -> None:
        found = [peak("fp32", 1, 40.0), peak("fp32", 2, both)]
        session_peaks._keep(
            msgspec.structs.replace(
                FOUND,
                created=now,
                machine=session_peaks.digest(of),
                threads=[1, 2],
                peaks=found,
                others_share=others_share,
            ),
            of,
        )

    keep(40.1, 0.07)
    assert session_peaks.kept(of, [1, 2]) is None, "two threads no faster than one, and others were there"
    keep(78.0, 0.07)
    assert session_peaks.kept(of, [1, 2]) is not None
    keep(40.1, 0.0)
    found = session_peaks.kept(of, [1, 2])
    assert found is not None and not found.disturbed, "both threads have one core here: nobody disturbed them"


def test_arithmetic_is_measured_again_where_a_core_was_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[int] = []

    class Measured(suite.Suite):
        def _arithmetic(self, kernels: Kernels, cpus: Sequence[int]) -> None:
            measured.append(len(cpus))
            free = measured.count(2) >= 4  # the first three times somebody had one of the cores
            self._add("fp32", None, cpus, [40.0 * (len(cpus) if free else 1)], "GFLOP/s", "512-bit")

        def _bandwidth(self, kernels: Kernels, cpus: Sequence[int]) -> None: ...
        def _clock(self, kernels: Kernels) -> None: ...
        def _latency(self, kernels: Kernels) -> None: ...
        def _new_pages(self) -> None: ...

    monkeypatch.setattr(Kernels, "compiled", lambda _: (None, Path("cc")))
    monkeypatch.setattr(suite, "tool", lambda _: SimpleNamespace(version="12"))
    monkeypatch.setattr(suite, "PAUSE_S", 0.0)
    monkeypatch.setattr(team, "processors", lambda number: list(range(number)))
    found = Measured(machine())
    found.carry_out([1, 2])
    assert [(one.threads, one.value) for one in found.peaks] == [(1, 40.0), (2, 80.0)]
    assert measured == [1, 2] * 4


def test_one_reason_for_many_is_said_once() -> None:
    lacking = [NotMeasured(what=what, reason="no cache folder") for what in ("fp32", "bf16", "caches")]
    lines = printed(msgspec.structs.replace(FOUND, missing=lacking, built_by=None), 120)
    assert [line.strip() for line in lines if "no cache folder" in line] == [
        "FP32, BF16, caches not available: no cache folder"
    ]
    assert not any("no C compiler" in line for line in lines)


def test_without_a_cache_folder_the_system_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", os.devnull)
    with pytest.raises(c_compiler.NoLibraryError, match=r"^no cache folder: Not a directory: /dev/null/hwprof$"):
        c_compiler.cached("any", b"")
