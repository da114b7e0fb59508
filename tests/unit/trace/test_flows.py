from __future__ import annotations

import polars as pl

from hwprof.trace.flows import FlowNumbers, connect, started_in
from hwprof.trace.slices import SliceTrack
from tests.support import trace_decoding as decoding

Rows = list[tuple[int, int, int]]


def spans(rows: Rows, first: int = 0) -> pl.DataFrame:
    columns = {"tid": pl.Int32, "begin_ns": pl.Int64, "end_ns": pl.Int64}
    frame = pl.DataFrame(rows, columns, orient="row")
    return frame.with_columns(depth=pl.lit(0), span=pl.int_range(pl.len()) + first)


def flows(layers: Rows, operators: Rows) -> dict[int, list[int]]:
    """The operators (by number) that each layer has an arrow to."""
    frame = spans(operators)
    track = SliceTrack(lambda _: decoding.sequence()[1])
    placed = track.place(frame, 1_000)
    given, sources = connect(placed, started_in(spans(layers), frame), FlowNumbers())
    targets = {flow: row for row, flow in enumerate(given.tolist()) if flow}
    assert sorted(flow for found in sources.values() for flow in found) == sorted(targets)
    return {layer: sorted(targets[flow] for flow in found) for layer, found in sources.items()}


def test_the_innermost_layer_points_to_its_outermost_operators() -> None:
    layers = [(1, 0, 100), (1, 10, 40), (1, 50, 90)]
    operators = [(1, 12, 20), (1, 13, 19), (1, 20, 30), (1, 42, 45), (1, 50, 60)]
    assert flows(layers, operators) == {1: [0, 2], 0: [3], 2: [4]}


def test_an_operator_around_a_layer_does_not_hide_those_within() -> None:
    assert flows([(1, 10, 40), (1, 50, 80)], [(1, 0, 100), (1, 11, 20), (1, 51, 60)]) == {0: [1], 1: [2]}


def test_other_threads_and_the_moment_after_do_not_count() -> None:
    assert flows([(1, 10, 40)], [(1, 40, 45), (1, 5, 9)]) == {}
    layer = started_in(spans([(1, 10, 40)]), spans([(2, 12, 20), (1, 12, 20)]))
    assert layer.tolist() == [-1, 0]


def test_no_number_is_given_twice() -> None:
    numbers = FlowNumbers()
    assert [numbers.take(count).tolist() for count in (3, 0, 2)] == [[1, 2, 3], [], [4, 5]]


def test_no_layers_no_flows() -> None:
    assert flows([], [(1, 0, 10)]) == {}
