"""Names of samples: every address by the mapping that was there at its time."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from collectors.sampler.naming import Named, _epochs, name, nameless
from collectors.sampler.records import Mapping
from collectors.shared.symbols.jit import Known, jit_code
from collectors.shared.symbols.kallsyms import FIRST_ADDRESS, read_kallsyms
from hwprof.hardware.perf_sampling import PROT_EXEC
from hwprof.run.schema import conform
from tests.support.elf_files import TEXT_ADDRESS, TEXT_OFFSET, TEXT_SIZE, Symbol, elf
from tests.support.reported import texts

BASE = 0x7F00_0000_0000
SIZE = 0x1000
PID = 7


def mapping(time_ns: int, file: str, address: int = BASE, offset: int = 0) -> Mapping:
    return Mapping(time_ns, PID, address, SIZE, offset, file, PROT_EXEC)


def named(
    samples: list[tuple[int, int, str]],
    mappings: list[Mapping],
    known: list[Known] | None = None,
    stacks: tuple[int, ...] = (),
) -> Named:
    """(time, address, domain) of the samples, in order; the stacks' addresses."""
    rows = pl.DataFrame(
        samples, schema={"time_ns": pl.Int64, "address": pl.UInt64, "domain": pl.String}, orient="row"
    ).with_columns(pid=pl.lit(PID), tid=pl.lit(PID))
    tree = pl.DataFrame({"stack": range(len(stacks)), "address": pl.Series(stacks, dtype=pl.UInt64)})
    system = read_kallsyms(f"{FIRST_ADDRESS + 0x100:x} T schedule\n")
    return name(rows, tree, mappings, known or [], lambda: system)


def names(frame: pl.DataFrame, found: Named) -> list[tuple[str, str | None]]:
    return frame.join(found.kernels, on="kernel", how="left", maintain_order="left").select("library", "name").rows()


def test_each_sample_is_named_by_what_was_there_at_its_time() -> None:
    mappings = [mapping(1, "/lib/first.so"), mapping(50, "/lib/second.so"), mapping(80, "//anon")]
    found = named([(at, BASE + 5, "user") for at in (10, 49, 50, 79, 80, 99)], mappings)
    assert [library for library, _ in names(found.samples, found)] == [
        "first.so", "first.so", "second.so", "second.so", "jit", "jit"
    ]  # fmt: skip


def test_what_was_mapped_before_sampling_began_is_known_by_its_last_file() -> None:
    found = named([(60, BASE, "user")], [mapping(50, "/lib/second.so"), mapping(1, "/lib/first.so")])
    assert names(found.samples, found) == [("second.so", None)]


@pytest.mark.parametrize(
    ("first", "second", "until"),
    [
        (("/lib/a.so", BASE, 0), ("/lib/b.so", BASE, 0), 50),
        (("/lib/a.so", BASE, 0), ("/lib/b.so", BASE + SIZE, 0), None),  # beside it
        (("/lib/a.so", BASE, 0), ("/lib/b.so", BASE - SIZE, 0), None),
        (("/lib/a.so", BASE, 0), ("/lib/a.so", BASE + 8, 8), None),  # the same bytes at the same places
        (("/lib/a.so", BASE, 0), ("/lib/a.so", BASE, 8), 50),
        (("/lib/a.so", BASE, 0), ("/lib/a.so", BASE + 8, 0), 50),
        (("//anon", BASE, 0), ("//anon", BASE + 8, 0), None),
    ],
)
def test_an_epoch_ends_where_other_code_takes_a_place(
    first: tuple[str, int, int], second: tuple[str, int, int], until: int | None
) -> None:
    ends = [] if until is None else [(until, 1)]
    assert _epochs([mapping(1, *first), mapping(50, *second)], 10) == [*ends, (None, 2)]


@pytest.mark.parametrize(("nameless_samples", "told"), [(1, False), (2, True)])
def test_a_twentieth_of_the_samples_may_be_without_a_name(nameless_samples: int, told: bool) -> None:
    known = [jit_code(BASE, 0x10, "kernel")]
    asked = [(at, BASE + (0x20 if at < nameless_samples else 0), "user") for at in range(20)]
    assert bool(named(asked, [mapping(0, "//anon")], known).notes()) == told


def test_jit_code_the_system_and_the_unknown() -> None:
    known = [jit_code(BASE + 0x10, 0x10, "jit_conv_kernel_t.3")]
    asked = [
        (1, BASE + 0x10, "user"),
        (2, BASE + 0x20, "user"),
        (3, FIRST_ADDRESS + 0x180, "kernel"),
        (4, 0x10, "user"),
        (5, BASE + 0x10, "guest user"),
    ]
    found = named(asked, [mapping(0, "//anon")], known)
    unknown = ("[unknown]", None)
    assert names(found.samples, found) == [
        ("jit", "jit_conv_kernel_t"), ("jit", None), ("[kernel]", "schedule"), unknown, unknown
    ]  # fmt: skip
    assert found.detail() == {"named": 2, "unnamed": 1, "unknown": 2, "unknown_callers": 0, "callers": 0}
    (note,) = texts(found.notes())
    assert note.startswith("60% of the samples have no name") and "[unknown], jit" in note


def test_a_caller_is_the_function_that_calls_also_where_the_call_is_its_last_instruction(tmp_path: Path) -> None:
    code = tmp_path / "code.so"
    code.write_bytes(elf([Symbol("caller", TEXT_ADDRESS, 0x10), Symbol("next_one", TEXT_ADDRESS + 0x10, 0x10)]))
    mapped = mapping(0, str(code), BASE + TEXT_OFFSET, TEXT_OFFSET)
    at = BASE + TEXT_OFFSET + 0x10
    found = named([(1, at, "user")], [mapped], stacks=(at, at + 1, 0, FIRST_ADDRESS + 0x200))
    assert names(found.samples, found) == [("code.so", "next_one")]
    unknown = ("[unknown]", None)
    assert names(found.stacks, found) == [("code.so", "caller"), ("code.so", "next_one"), unknown, unknown]
    assert found.detail()["unknown_callers"] == 2


def test_a_library_that_was_deleted_meanwhile_costs_its_own_names_only(tmp_path: Path) -> None:
    kept = tmp_path / "kept.so"
    kept.write_bytes(elf([Symbol("here", TEXT_ADDRESS, 0x10)]))
    mappings = [
        mapping(0, str(kept), BASE + TEXT_OFFSET, TEXT_OFFSET),
        mapping(0, str(tmp_path / "gone.so"), BASE + 2 * SIZE),
        mapping(0, f"{tmp_path / 'updated.so'} (deleted)", BASE + 4 * SIZE),
    ]
    found = named([(at, BASE + at * 2 * SIZE + (TEXT_OFFSET if not at else 0), "user") for at in range(3)], mappings)
    assert [row[1] for row in names(found.samples, found)] == ["here", None, None]
    assert found.detail()["named"] == 1 and found.detail()["unnamed"] == 2
    (note,) = texts(found.notes())
    assert "no symbols for code of" in note and "gone.so" in note


HEADERS = [*range(TEXT_OFFSET), *range(TEXT_OFFSET + TEXT_SIZE, TEXT_OFFSET + TEXT_SIZE + 0x300)]


@settings(max_examples=100, deadline=None)
@given(
    st.dictionaries(st.sampled_from(HEADERS), st.integers(0, 255), min_size=1, max_size=6),
    st.none() | st.integers(0, TEXT_OFFSET + TEXT_SIZE + 0x300),
)
@example({74: 1, 114: 1}, None)  # the segment's place in the file, and how it is aligned: it wants to lie below 0
def test_a_damaged_file_names_what_it_can_and_loses_no_sample(damage: dict[int, int], cut: int | None) -> None:
    data = bytearray(elf([Symbol("one", TEXT_ADDRESS, 0x10)], [Symbol("two", TEXT_ADDRESS, 8)], stubs=0x40))
    for place, byte in damage.items():
        if place < len(data):
            data[place] = byte
    with tempfile.NamedTemporaryFile(suffix=".so") as file:
        file.write(data[:cut])
        file.flush()
        at = BASE + TEXT_OFFSET
        found = named([(1, at, "user"), (2, at + 8, "user")], [mapping(0, file.name, at, TEXT_OFFSET)], stacks=(at,))
    assert found.samples.height == 2 and found.samples["kernel"].null_count() == 0
    detail = found.detail()
    assert detail["named"] + detail["unnamed"] + detail["unknown"] == 2


def test_samples_without_names_are_all_there_and_the_reason_is_told() -> None:
    found = named([(1, BASE, "user"), (2, BASE, "user")], [mapping(0, "//anon")], stacks=(BASE,))
    bare = nameless(found.samples.drop("kernel"), found.stacks.drop("kernel"), MemoryError())
    assert bare.samples.columns == found.samples.columns and bare.samples.height == 2
    assert names(bare.samples, bare) == names(bare.stacks, bare) * 2 == [("[unknown]", None)] * 2
    assert bare.detail()["unknown"] == 2 and bare.detail()["named"] == 0
    assert texts(bare.notes()) == ["names of samples not available: MemoryError"]


def test_nothing_sampled_names_nothing() -> None:
    found = named([], [mapping(0, "//anon")])
    assert found.kernels.is_empty() and found.notes() == []
    assert found.detail()["named"] == 0


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 50), st.sampled_from("abc"), st.integers(0, 3)), max_size=12),
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 5)), min_size=1, max_size=20),
)
def test_files_agree_with_a_plain_search(laid: list[tuple[int, str, int]], asked: list[tuple[int, int]]) -> None:
    """The last mapping over the address that was there in time."""
    laid.sort(key=lambda row: row[0])
    asked.sort()
    mappings = [mapping(at, f"/lib/{file}.so", BASE + page * SIZE) for at, file, page in laid]
    found = named([(at, BASE + page * SIZE, "user") for at, page in asked], mappings)
    got = [library for library, _ in names(found.samples, found)]
    for (at, page), library in zip(asked, got, strict=True):
        there = [file for since, file, where in laid if where == page and since <= at]
        if there:
            assert library == f"{there[-1]}.so", (at, page)
        elif not any(where == page for _, _, where in laid):
            assert library == "[unknown]", (at, page)


def test_rows_fit_their_tables() -> None:
    found = named([(1, BASE, "user")], [mapping(0, "//anon")], stacks=(BASE,))
    for table, frame in (("stacks", found.stacks), ("kernels", found.kernels)):
        conform(table, frame)
    assert found.samples["kernel"].dtype == pl.Int32 and np.isfinite(found.samples["kernel"].to_numpy()).all()
