"""A trace shows whole iterations, as many as the limit allows."""

from __future__ import annotations

import io
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwprof.run.directory import RunDirectory
from hwprof.trace import writer
from hwprof.trace.iterations_shown import Shown, opened_at, share_out, shown
from hwprof.trace.limits import ANNOTATED, COUNTS_A_SLICE
from hwprof.trace.writer import write_trace
from tests.support.synthetic_run import build
from tests.support.trace_decoding import events

ITERATIONS = 6  # and one to warm up


@given(st.dictionaries(st.text(max_size=3), st.integers(0, 10**7), max_size=6), st.integers(1, 10**7))
def test_the_limit_is_shared_out(wanted: dict[str, int], limit: int) -> None:
    parts = share_out(wanted, limit)
    assert parts.keys() == wanted.keys() and sum(parts.values()) <= limit
    assert all(parts[name] <= rows for name, rows in wanted.items())
    if sum(wanted.values()) <= limit:
        assert parts == wanted
    else:  # who gets less than it wants gets as much as anyone, but for what does not divide
        cut = {rows for name, rows in parts.items() if rows < wanted[name]}
        assert cut and min(cut) >= max(parts.values()) - 1


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return build(tmp_path, iterations=ITERATIONS)


def _of_pass(run: RunDirectory, name: str) -> pl.DataFrame:
    return run.of_pass("spans", name).filter(pl.col("iteration") >= 0).sort("begin_ns")


@pytest.mark.parametrize("iterations", range(2, ITERATIONS + 1))
def test_as_many_iterations_as_have_room_are_shown(run: RunDirectory, iterations: int) -> None:
    record = run.find_pass("trace")
    assert record is not None
    spans = _of_pass(run, "trace")
    room = sum(_sizes(run, "trace")[:iterations])
    for more in (0, 1):  # a span more is no iteration more
        (found,) = shown(run, [record], room + more).values()
        assert found.until_ns == spans.filter(iteration=iterations)["begin_ns"].min()
        assert (found.iterations, found.of) == (iterations, ITERATIONS + 1)


def test_what_is_short_is_whole_and_leaves_the_others_the_rest(run: RunDirectory) -> None:
    """``measure`` has no operators, so fewer spans."""
    whole = sum(sum(_sizes(run, name)) for name in ("measure", "trace"))
    found = shown(run, run.completed_passes(), whole - 1)
    assert found["measure"] == Shown(ITERATIONS + 1, ITERATIONS + 1, None)
    assert found["trace"].iterations == ITERATIONS


def _sizes(run: RunDirectory, name: str) -> list[int]:
    """As many operators' slices as each iteration takes; what comes before the first one is the first one's."""
    spans, counts = run.of_pass("spans", name), run.of_pass("counts", name)
    found = []
    for iteration in range(ITERATIONS + 1):
        of = pl.col("iteration") == iteration if iteration else pl.col("iteration") <= 0
        here = spans.filter(of)
        operators = here.filter(kind="op").height
        counted = counts.filter(pl.col("span").is_in(here["span"].implode())).height
        found.append(operators + ANNOTATED * (here.height - operators) + counted // COUNTS_A_SLICE)
    return found


def test_an_operators_slice_is_the_unit_of_size(run: RunDirectory, tmp_path: Path) -> None:
    """1,500,000 are 96 MB: a layer's slice with its counts takes many times as much as an operator's."""
    units = sum(sum(_sizes(run, record.name)) for record in run.completed_passes())
    small = write_trace(run, tmp_path / "small.pftrace", limit=1)
    few = sum(sum(_sizes(run, record.name)[:2]) for record in run.completed_passes())
    more_bytes = write_trace(run, tmp_path / "whole.pftrace").size_bytes - small.size_bytes
    assert 30 < more_bytes / (units - few) < 64


def test_the_iteration_that_the_ui_is_opened_at_is_always_shown(run: RunDirectory) -> None:
    found = shown(run, run.completed_passes(), 1)
    for record in run.completed_passes():
        opened = opened_at(record)
        assert opened is not None and found[record.name].iterations == opened.index + 1 == 2


def test_what_is_left_out_is_not_in_the_trace_and_is_told(run: RunDirectory, tmp_path: Path) -> None:
    whole = write_trace(run, tmp_path / "whole.pftrace")
    assert whole.left_out == [] and whole.slices == len(run.read("spans"))
    cut = write_trace(run, tmp_path / "cut.pftrace", limit=1)
    for name in ("measure", "trace"):
        assert f"pass {name}: 2 of 7 iterations (--trace-limit)" in cut.left_out
    assert cut.contents().endswith(", ".join(cut.left_out))
    assert cut.slices == len(run.read("spans").filter(pl.col("iteration") < 2))
    assert cut.values < whole.values
    last_ns = run.read("spans").filter(pl.col("iteration") < 2).group_by("pass").agg(pl.col("end_ns").max())
    times = [event.time_ns for event in events(io.BytesIO((tmp_path / "cut.pftrace").read_bytes()))]
    clock = run.manifest.clock
    assert max(times) <= last_ns["end_ns"].max() + clock.boottime_ns - clock.monotonic_ns  # type: ignore[operator]


def test_names_of_passes_are_fit_for_a_terminal(
    run: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run from elsewhere may call them anything."""
    monkeypatch.setattr(writer, "shown", lambda *_: {"\x1b[31m": Shown(1, 2, 5)})
    assert "\x1b" not in write_trace(run, tmp_path / "trace.pftrace").contents()


def test_another_look_at_the_run_has_everything(run: RunDirectory) -> None:
    early = run.until({"trace": _of_pass(run, "trace").filter(iteration=3)["begin_ns"].min()})  # type: ignore[dict-item]
    assert early.of_pass("spans", "trace").filter(pl.col("iteration") >= 3).is_empty()
    assert early.of_pass("spans", "measure").equals(run.of_pass("spans", "measure"))
    assert _of_pass(run, "trace")["iteration"].max() == ITERATIONS
