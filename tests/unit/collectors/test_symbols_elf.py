"""Functions of ELF files, and their cache."""

from __future__ import annotations

import io
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from collectors.shared.symbols import cache, library
from collectors.shared.symbols.elf import Elf, NotElfError
from collectors.shared.symbols.library import Library, image_library, open_library
from collectors.shared.symbols.ranges import NONE
from collectors.shared.symbols.table import SymbolTable
from tests.support.elf_files import (
    FUNC,
    GLOBAL,
    IFUNC,
    LOCAL,
    OBJECT,
    TEXT_ADDRESS,
    TEXT_OFFSET,
    TEXT_SIZE,
    WEAK,
    Symbol,
    elf,
)

END = TEXT_ADDRESS + TEXT_SIZE


def opened(data: bytes) -> Elf:
    return Elf(io.BytesIO(data), data)


def found(table: SymbolTable, address: int) -> str | None:
    (number,) = table.find(np.array([address], dtype=np.uint64)).tolist()
    return None if number == NONE else table.full_name(number)


def names(table: SymbolTable) -> list[str]:
    return [table.name(number) for number in range(len(table))]


def test_a_function_holds_its_addresses_and_no_others() -> None:
    table = opened(elf([Symbol("b", 0x2500, 16), Symbol("_ZN1a1bEi", 0x2400, 16)])).symbols()
    expected = {0x23FF: None, 0x2400: "a::b(int)", 0x240F: "a::b(int)", 0x2410: None, 0x2500: "b", 0x2510: None}
    assert {address: found(table, address) for address in expected} == expected


def test_what_is_no_function_here_is_left_out() -> None:
    rows = [
        Symbol("data", 0x2400, 8, kind=OBJECT),
        Symbol("elsewhere", 0x0, 0, section=0),
        Symbol("absolute", 0x2420, 8, section=0xFFF1),
        Symbol("chosen_at_start", 0x2430, 8, kind=IFUNC),
    ]
    assert names(opened(elf(rows)).symbols()) == ["chosen_at_start"]


def test_assembly_without_a_size_reaches_to_the_next_function_or_the_sections_end() -> None:
    table = opened(elf([Symbol("first", 0x2400, 0), Symbol("next", 0x2480, 0x10), Symbol("last", 0x3000, 0)])).symbols()
    assert found(table, 0x247F) == "first"
    assert found(table, 0x2490) is None
    assert (found(table, END - 1), found(table, END)) == ("last", None)


@pytest.mark.parametrize(
    ("aliases", "kept"),
    [
        ([("__libc_malloc", GLOBAL, 8), ("malloc", GLOBAL, 8)], "malloc"),
        ([("__read", GLOBAL, 8), ("read", WEAK, 8)], "read"),
        ([("f", LOCAL, 8), ("function", GLOBAL, 8)], "function"),
        ([("f", GLOBAL, 0), ("function", LOCAL, 8)], "function"),
    ],
)
def test_of_several_names_the_one_to_link_to_and_then_the_shortest(
    aliases: list[tuple[str, int, int]], kept: str
) -> None:
    rows = [Symbol(name, 0x2400, size, binding=binding) for name, binding, size in aliases]
    for order in (rows, rows[::-1]):
        assert names(opened(elf([*order, Symbol("other", 0x2500, 8)])).symbols()) == [kept, "other"]


def test_a_function_within_another_is_told_from_it() -> None:
    table = opened(elf([Symbol("outer", 0x2400, 0x100), Symbol("inner", 0x2440, 0x10)])).symbols()
    assert [found(table, address) for address in (0x2400, 0x2440, 0x244F, 0x2450, 0x24FF)] == [
        "outer", "inner", "inner", "outer", "outer",
    ]  # fmt: skip


def test_the_last_name_may_lack_its_end() -> None:
    one = np.zeros(1, dtype=np.uint64)
    assert SymbolTable(one, one + 8, np.array([4]), b"one\0two").name(0) == "two"


def test_a_stripped_file_has_what_is_exported_and_what_mini_debug_info_adds() -> None:
    left = elf([Symbol("hidden", 0x2480, 16, binding=LOCAL), Symbol("alias_of_exported", 0x2400, 16)])
    stripped = elf(dynamic=[Symbol("exported", 0x2400, 16)], debugdata=left)
    assert names(opened(stripped).symbols()) == ["exported", "hidden"]
    whole = elf([Symbol("everything", 0x2400, 16)], dynamic=[Symbol("exported", 0x2400, 16)], debugdata=left)
    assert names(opened(whole).symbols()) == ["everything"]


@pytest.mark.parametrize("stripped", [False, True])
def test_stubs_that_call_other_libraries_are_a_function(stripped: bool) -> None:
    rows = [Symbol("f", 0x2400, 16)]
    hidden = elf([Symbol("hidden", 0x2480, 16)])
    made = elf([] if stripped else rows, rows if stripped else [], stubs=64, debugdata=hidden if stripped else None)
    table = opened(made).symbols()
    assert names(table) == ["f", *(["hidden"] if stripped else []), ".plt"]
    assert [found(table, address) for address in (END - 65, END - 64, END - 1, END)] == [None, ".plt", ".plt", None]


def test_the_build_id_is_read() -> None:
    assert opened(elf(build_id=bytes(range(20)))).build_id() == bytes(range(20)).hex()
    assert opened(elf()).build_id() is None


def test_a_mapping_is_where_its_segment_wants_it() -> None:
    """The kernel maps whole pages: the mapping begins before the segment does."""
    found_library = image_library(elf())
    assert found_library.address(0) == TEXT_ADDRESS - TEXT_OFFSET
    assert found_library.address(TEXT_OFFSET) == TEXT_ADDRESS
    assert found_library.address(0x1000) == TEXT_ADDRESS - TEXT_OFFSET + 0x1000
    assert found_library.address(TEXT_OFFSET + TEXT_SIZE) is None


SMALL = elf(
    [Symbol("one", 0x2400, 8), Symbol("two", 0x2408, 8)],
    build_id=b"12345678",
    debugdata=elf([Symbol("three", 0x2410, 8)]),
)


@given(st.integers(0, len(SMALL)), st.lists(st.tuples(st.integers(0, len(SMALL) - 1), st.integers(0, 255)), max_size=8))
@example(0, [])
@example(len(SMALL), [(4, 1)])  # of 32 bits
@example(len(SMALL), [(5, 2)])  # big-endian
def test_a_broken_file_is_told_as_such_or_has_symbols(length: int, changes: list[tuple[int, int]]) -> None:
    data = bytearray(SMALL)
    for place, value in changes:
        data[place] = value
    broken = bytes(data[:length])
    with suppress(NotElfError):
        opened(broken).symbols().find(np.array([TEXT_ADDRESS], dtype=np.uint64))
    assert isinstance(image_library(broken), Library)


SYMBOLS = st.lists(
    st.tuples(st.integers(0x2400, 0x2500), st.integers(0, 64), st.sampled_from([LOCAL, GLOBAL, WEAK])), max_size=12
)


@given(SYMBOLS)
def test_an_address_is_the_latest_functions_that_holds_it(rows: list[tuple[int, int, int]]) -> None:
    """As if every function were looked at, one after another."""
    symbols = [Symbol(f"f{n}", start, size, FUNC, binding) for n, (start, size, binding) in enumerate(rows)]
    starts = sorted({symbol.address for symbol in symbols})
    best = {
        start: min(
            (symbol for symbol in symbols if symbol.address == start),
            key=lambda symbol: (symbol.size == 0, symbol.binding == LOCAL, len(symbol.name)),
        )
        for start in starts
    }
    ends = {
        start: start + symbol.size if symbol.size else min([other for other in starts if other > start], default=END)
        for start, symbol in best.items()
    }
    table = opened(elf(symbols)).symbols()
    for address in range(0x23F0, 0x2560, 3):
        holding = [start for start in starts if start <= address < ends[start]]
        name = found(table, address)
        if not holding:
            assert name is None
        else:
            expected = best[max(holding)]
            assert name is not None
            same = next(symbol for symbol in symbols if symbol.name == name)
            assert (same.address, same.size == 0, same.binding == LOCAL, len(name)) == (
                expected.address, expected.size == 0, expected.binding == LOCAL, len(expected.name),
            )  # fmt: skip


# --- the cache


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that is worth keeping; the cache is empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(library, "SMALL_BYTES", 0)
    monkeypatch.setattr(library, "DEBUG_FILES", tmp_path / "debug")
    path = tmp_path / "liblarge.so"
    path.write_bytes(elf([Symbol("one", 0x2400, 8), Symbol("two", 0x2408, 8)], build_id=b"\xab\xcd\xef"))
    return path


def read(path: Path) -> SymbolTable:
    open_library.cache_clear()
    return open_library(path).symbols


def kept(path: Path) -> list[Path]:
    return sorted((path.parent / "cache").rglob("*.*"))


def test_symbols_come_from_the_cache(large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = read(large)
    (place,) = kept(large)
    assert place.name.startswith("abcdef-")
    assert f"/hwprof/symbols/v{cache.VERSION}/" in str(place)
    monkeypatch.setattr(Elf, "symbols", lambda _: pytest.fail("the file was read again"))
    again = read(large)
    assert names(again) == names(first) == ["one", "two"]
    assert np.array_equal(again.ends, first.ends)


def test_names_of_mini_debug_info_are_kept_too(large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hidden = elf([Symbol("hidden", 0x2480, 16)])
    large.write_bytes(elf(dynamic=[Symbol("seen", 0x2400, 16)], build_id=b"1", debugdata=hidden))
    assert names(read(large)) == ["seen", "hidden"]
    monkeypatch.setattr(Elf, "symbols", lambda _: pytest.fail("the file was read again"))
    assert names(read(large)) == ["seen", "hidden"]


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no archive", None])
def test_a_broken_cache_costs_nothing_but_time(large: Path, content: bytes | None) -> None:
    read(large)
    (place,) = kept(large)
    place.write_bytes(place.read_bytes()[:-100] if content is None else content)
    assert names(read(large)) == ["one", "two"]
    assert cache.load(place, large.read_bytes()) is not None, "it was written again"


def test_a_changed_bit_of_the_cache_is_noticed(large: Path) -> None:
    read(large)
    (place,) = kept(large)
    data = bytearray(place.read_bytes())
    at = data.index((0x2408).to_bytes(8, "little"))
    data[at] ^= 0x80
    place.write_bytes(data)
    assert cache.load(place, large.read_bytes()) is None
    assert read(large).starts.tolist() == [0x2400, 0x2408]


@pytest.mark.parametrize(
    ("counts", "offset", "whole"),
    [((1, 1, 1), 0, True), ((1, 1, 2), 0, False), ((1, 2, 1), 0, False), ((1, 1, 1), 3, False), ((1, 1, 1), 2, True)],
)
def test_a_kept_table_whose_columns_do_not_agree_is_none(
    tmp_path: Path, counts: tuple[int, int, int], offset: int, whole: bool
) -> None:
    starts, ends, offsets = (np.full(count, offset, dtype=np.int64) for count in counts)
    names = np.frombuffer(b"ab\0", dtype=np.uint8)
    np.savez(tmp_path / "kept.npz", starts=starts, ends=ends, name_offsets=offsets, names=names)
    assert (cache.load(tmp_path / "kept.npz", b"") is not None) == whole


def test_a_cache_folder_that_depends_on_the_working_directory_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    assert cache.folder().is_absolute()


def test_a_cache_that_cannot_be_written_is_done_without(large: Path) -> None:
    (large.parent / "cache").write_text("in the way")
    assert names(read(large)) == ["one", "two"]


def test_a_stripped_copy_with_the_same_build_id_has_a_table_of_its_own(large: Path) -> None:
    read(large)
    stripped = large.with_name("libstripped.so")
    stripped.write_bytes(elf(dynamic=[Symbol("two", 0x2408, 8)], build_id=b"\xab\xcd\xef"))
    assert names(read(stripped)) == ["two"]
    assert names(read(large)) == ["one", "two"]
    assert len(kept(large)) == 2


def test_without_a_build_id_nothing_is_kept(large: Path) -> None:
    large.write_bytes(elf([Symbol("one", 0x2400, 8)]))
    assert names(read(large)) == ["one"]
    assert not kept(large)


def test_a_debug_package_names_what_the_file_does_not(large: Path) -> None:
    large.write_bytes(elf(dynamic=[Symbol("exported", 0x2400, 8)], build_id=b"\xab\xcd"))
    folder = large.parent / "debug" / "ab"
    folder.mkdir(parents=True)
    (folder / "cd.debug").write_bytes(elf([Symbol("exported", 0x2400, 8), Symbol("hidden", 0x2410, 8)]))
    assert names(read(large)) == ["exported", "hidden"]


def test_what_is_no_elf_file_has_no_symbols(tmp_path: Path) -> None:
    for content in (b"", b"\x7fELF\x02", b"#!/bin/sh\n" * 20):
        (tmp_path / "file").write_bytes(content)
        assert not len(read(tmp_path / "file"))
    assert not len(read(tmp_path / "none"))
