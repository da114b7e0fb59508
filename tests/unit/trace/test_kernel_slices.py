"""Samples as slices: none lost, none overlapping, none across the edge of a layer."""

from __future__ import annotations

import polars as pl
from hypothesis import example, given
from hypothesis import strategies as st

from hwprof.trace.flows import FlowNumbers
from hwprof.trace.kernel_slices import OFF_CPU, SLICES, edges_of, link, slices

NAMES = ("jit_conv", "silu", "waiting (OpenMP)")
NOTHING = pl.DataFrame(schema=SLICES)
SWITCHES = {
    "tid": pl.Int64, "out_ns": pl.Int64, "in_ns": pl.Int64, "preempted": pl.Boolean, "reason": pl.String,
    "function": pl.String,
}  # fmt: skip

rows = st.lists(
    st.tuples(st.integers(1, 3), st.integers(0, 400), st.integers(0, 60), st.sampled_from(NAMES)), max_size=40
)
absences = st.lists(st.tuples(st.integers(1, 3), st.integers(0, 400), st.integers(0, 50)), max_size=8)
stretches = st.lists(st.integers(0, 400), unique=True, max_size=12).map(sorted)


def sampled(*found: tuple[int, int, int, str]) -> pl.DataFrame:
    """Samples of (tid, time, processor time, kernel)."""
    frame = pl.DataFrame(found, schema=["tid", "time_ns", "cpu_ns", "name"], orient="row")
    frame = frame.cast({"tid": pl.Int64, "time_ns": pl.Int64, "cpu_ns": pl.Int64, "name": pl.String})
    none = [pl.lit(None, pl.Int64).alias(name) for name in ("cycles", "instructions", "llc_misses")]
    category = pl.when(pl.col("name").str.starts_with("waiting")).then(pl.lit("waiting")).otherwise(pl.lit("torch"))
    texts = [category.alias("category"), pl.lit("lib").alias("library"), pl.lit(None, pl.String).alias("full_name")]
    return frame.with_columns(*none, *texts)


def layers(bounds: list[int]) -> pl.DataFrame:
    """Layers that begin and end at every other one of the times."""
    pairs = list(zip(bounds[::2], bounds[1::2], strict=False))
    frame = pl.DataFrame(pairs, schema={"begin_ns": pl.Int64, "end_ns": pl.Int64}, orient="row")
    return frame.with_columns(span=pl.int_range(pl.len(), dtype=pl.Int64))


def off(*found: tuple[int, int, int]) -> pl.DataFrame:
    """Times off a processor of (tid, out, in)."""
    return pl.DataFrame([(*row, False, None, None) for row in found], schema=SWITCHES, orient="row")


@given(rows, stretches, absences)
@example([(1, 0, 0, "jit_conv")], [0, 1], [(1, 0, 0)])  # a sample as its layer begins, and its thread leaves
def test_samples_are_kept_and_slices_never_overlap(
    found: list[tuple[int, int, int, str]], bounds: list[int], away: list[tuple[int, int, int]]
) -> None:
    switches = off(*((tid, out, out + length) for tid, out, length in away))
    result = slices(sampled(*found), switches, edges_of(layers(bounds)), NOTHING)
    ran = result.filter(pl.col("category") != OFF_CPU)
    assert ran["samples"].sum() == len(found)
    assert ran["cpu_ns"].sum() == sum(cpu for _, _, cpu, _ in found)
    assert len(result) - len(ran) == len(away)
    for _, mine in result.group_by("tid"):
        assert (mine["begin_ns"] <= mine["end_ns"]).all()
        assert (mine["begin_ns"][1:] >= mine["end_ns"][:-1]).all()
    by_name = dict(ran.group_by("name").agg(pl.col("samples").sum()).iter_rows())
    assert by_name == {name: n for name in NAMES if (n := sum(row[3] == name for row in found))}


@given(rows, stretches, absences, st.integers(0, 400))
def test_a_cut_anywhere_makes_the_same_slices(
    found: list[tuple[int, int, int, str]], bounds: list[int], away: list[tuple[int, int, int]], cut: int
) -> None:
    """Also where a sample was taken while its thread was said to be off its processor."""
    edges, every = edges_of(layers(bounds)), sampled(*found)
    switches = off(*((tid, out, out + length) for tid, out, length in away))
    early, out = pl.col("time_ns") < cut, pl.col("out_ns") < cut
    whole = slices(every, switches, edges, NOTHING)
    first = slices(every.filter(early), switches.filter(out), edges, NOTHING)
    last = pl.col("tid").is_last_distinct()
    second = slices(every.filter(~early), switches.filter(~out), edges, first.filter(last))
    for (tid,), mine in whole.group_by("tid"):
        parts = pl.concat([first.filter(~last), second]).filter(tid=tid)
        assert parts.rows() == mine.rows()


def test_a_slice_begins_with_its_layer_and_after_the_time_off_the_processor() -> None:
    found = slices(
        sampled((1, 150, 100, "silu"), (1, 250, 100, "silu"), (1, 400, 100, "silu")),
        off((1, 300, 340)),
        edges_of(layers([100, 500])),
        NOTHING,
    )
    shown = found.select("name", "begin_ns", "end_ns", "samples", "layer").rows()
    assert shown == [("silu", 101, 250, 2, 0), ("off-CPU, blocked", 300, 340, 0, None), ("silu", 340, 400, 1, 0)]


def test_a_pause_longer_than_a_sample_parts_slices() -> None:
    found = slices(sampled((1, 100, 10, "silu"), (1, 200, 10, "silu")), off(), edges_of(layers([])), NOTHING)
    assert found.select("begin_ns", "end_ns").rows() == [(90, 100), (190, 200)]


def test_flows_go_to_the_first_work_of_each_other_thread() -> None:
    found = slices(
        sampled((1, 110, 5, "silu"), (2, 112, 5, NAMES[2]), (2, 120, 5, "silu"), (2, 130, 5, "jit_conv")),
        off(),
        edges_of(layers([100, 500])),
        NOTHING,
    )
    linked, sources = link(found, 1, FlowNumbers())
    assert sources == {0: [1]}
    assert linked.filter(pl.col("flow") > 0).select("tid", "name", "flow").rows() == [(2, "silu", 1)]
    assert link(linked, 1, FlowNumbers())[1] == {}, "one that has its flow gets no other"
