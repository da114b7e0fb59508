"""What calls what: modules by their class, the operators that they call, and those that these call in turn.

Calls with the same names above them are one node: all blocks of a class, all their convolutions. Their names, and not
their paths, are the tree's: ``Net > Block > Conv2d > aten::conv2d > aten::convolution``.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

import numpy as np
import polars as pl

from hwprof.analysis.nesting import NONE, Numbers, enclosing
from hwprof.analysis.timeline import Timeline

SCHEMA: Final = pl.Schema(
    {
        "node": pl.Int32(),  # its place, parents before their children; of one parent most time first
        "parent": pl.Int32(),  # null: at the top
        "depth": pl.Int32(),
        "kind": pl.String(),  # module or operator
        "name": pl.String(),  # a module's class, or an operator
        "calls": pl.Float64(),  # these five: in one iteration
        "time_ns": pl.Float64(),  # with all below it
        "self_ns": pl.Float64(),  # without
        "allocated_bytes": pl.Float64(),  # with all below it; null: nobody watched
        "self_allocated_bytes": pl.Float64(),
        "shapes": pl.Int32(),  # how many combinations of input shapes; 0: they have none
        "usual_shapes": pl.String(),  # those that most calls have
        "share": pl.Float64(),  # time, of all at the top
    }
)


class _Node:
    """Sums over calls."""

    def __init__(self, parent: int | None, depth: int, kind: str, name: str) -> None:
        self.parent, self.depth, self.kind, self.name = parent, depth, kind, name
        self.calls = self.time_ns = self.self_ns = self.allocated_bytes = self.self_allocated_bytes = 0
        self.shapes: Counter[str] = Counter()


def operator_tree(
    spans: pl.DataFrame,
    layers: pl.DataFrame,
    allocations: pl.DataFrame,
    iterations: tuple[int, ...],
    main_tid: int | None,
) -> pl.DataFrame:
    """``SCHEMA``, of the thread that calls the model; ``spans`` and ``allocations`` are the trace pass's."""
    types = dict(layers.select("path", "type").iter_rows())
    chosen = pl.col("kind").is_in(["layer", "op"]) & pl.col("iteration").is_in(list(iterations))
    rows = (
        spans.filter(chosen & (pl.col("tid") == main_tid))
        .with_columns(length=pl.col("end_ns") - pl.col("begin_ns"), inner=pl.col("kind") == "op")
        .sort("begin_ns", "length", "inner", "span", descending=[False, True, False, False])
    )
    begins, ends = rows["begin_ns"].to_numpy(), rows["end_ns"].to_numpy()
    around = enclosing(begins, ends, np.zeros(len(begins), dtype=np.int64))
    own = _own_times(begins, ends, around)
    allocated = _allocated(rows, allocations)
    numbers: dict[tuple[int | None, str, str], int] = {}
    nodes: list[_Node] = []
    node_of: list[int] = []
    names = (rows["kind"], rows["path"], rows["input_shapes"])
    columns = (
        *(one.to_list() for one in (*names, rows["length"])),
        *(one.tolist() for one in (around, own, allocated)),
    )
    for kind, path, shapes, length_ns, caller, own_ns, size in zip(*columns, strict=True):
        name = types.get(path, path) if kind == "layer" else path
        parent = node_of[caller] if caller != NONE else None
        number = numbers.setdefault((parent, kind, name), len(nodes))
        if number == len(nodes):
            depth = nodes[parent].depth + 1 if parent is not None else 0
            nodes.append(_Node(parent, depth, "module" if kind == "layer" else "operator", name))
        node_of.append(number)
        node = nodes[number]
        node.calls += 1
        node.time_ns += length_ns
        node.self_ns += own_ns
        node.self_allocated_bytes += size
        if shapes:
            node.shapes[shapes] += 1
    for node in reversed(nodes):  # those below before those around them
        node.allocated_bytes += node.self_allocated_bytes
        if node.parent is not None:
            nodes[node.parent].allocated_bytes += node.allocated_bytes
    return _table(nodes, max(len(iterations), 1), watched=allocations.height > 0)


def _own_times(begins: Numbers, ends: Numbers, around: Numbers) -> Numbers:
    own = ends - begins
    inner = np.flatnonzero(around != NONE)
    np.subtract.at(own, around[inner], np.minimum(ends[inner], ends[around[inner]]) - begins[inner])
    return own


def _allocated(rows: pl.DataFrame, allocations: pl.DataFrame) -> Numbers:
    """Bytes that were allocated while each row was the innermost."""
    gained = allocations.filter(pl.col("bytes") > 0).sort("time_ns")
    innermost = Timeline.of(rows).at(gained["time_ns"].to_numpy())
    inside = innermost != NONE
    sums = np.bincount(innermost[inside], weights=gained["bytes"].to_numpy()[inside], minlength=rows.height)
    return sums.astype(np.int64)


def _table(nodes: list[_Node], iterations: int, *, watched: bool) -> pl.DataFrame:
    """The nodes in the order of a walk, most time first."""
    below: dict[int | None, list[int]] = {}
    for number, node in enumerate(nodes):
        below.setdefault(node.parent, []).append(number)
    whole_ns = sum(nodes[number].time_ns for number in below.get(None, []))
    places: dict[int | None, int | None] = {None: None}
    rows: list[tuple[object, ...]] = []
    todo = sorted(below.get(None, []), key=lambda number: nodes[number].time_ns)
    while todo:
        number = todo.pop()
        node = nodes[number]
        places[number] = len(rows)
        usual = node.shapes.most_common(1)
        rows.append(
            (
                len(rows), places[node.parent], node.depth, node.kind, node.name, node.calls / iterations,
                node.time_ns / iterations, node.self_ns / iterations,
                node.allocated_bytes / iterations if watched else None,
                node.self_allocated_bytes / iterations if watched else None,
                len(node.shapes), usual[0][0] if usual else None, node.time_ns / whole_ns if whole_ns else None,
            )
        )  # fmt: skip
        todo += sorted(below.get(number, []), key=lambda one: nodes[one].time_ns)
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")
