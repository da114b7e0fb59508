"""Flows: the arrows from a layer to the operators that it starts."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import polars as pl

from hwprof.trace.encoder import Flows
from hwprof.trace.nesting import EDGES_PER_NS, Ints, Lane, edges, innermost, outer_first
from hwprof.trace.slices import Placed


class FlowNumbers:
    """Gives out the numbers of flows, each once a trace."""

    def __init__(self) -> None:
        self.used = 0

    def take(self, count: int) -> Flows:
        """The next ``count`` numbers."""
        numbers = np.arange(self.used + 1, self.used + 1 + count, dtype=np.uint64)
        self.used += count
        return numbers


def started_in(layers: pl.DataFrame, operators: pl.DataFrame) -> Ints:
    """The row of the innermost layer of the same thread in which each operator begins; -1: in none."""
    result = np.full(len(operators), -1, np.int64)
    for (tid,), mine in operators.with_row_index("row").group_by("tid"):
        around = layers.with_row_index("row").filter(pl.col("tid") == tid)
        begin, end = edges(around["begin_ns"].to_numpy(), around["end_ns"].to_numpy())
        order = outer_first(begin, end, *(around[tie].to_numpy() for tie in ("depth", "span")))
        order = order[Lane().admit(begin[order], end[order])]
        found = innermost(begin[order], end[order], mine["begin_ns"].to_numpy() * EDGES_PER_NS)
        rows = np.append(around["row"].to_numpy()[order].astype(np.int64), -1)
        result[mine["row"].to_numpy()] = rows[found]
    return result


def connect(placed: list[Placed], layer: Ints, numbers: FlowNumbers) -> tuple[Flows, dict[int, list[int]]]:
    """One flow for each operator that no operator of the same layer encloses.

    Returns the flow of each operator (0: none), and the flows of each layer, by row.
    """
    flows = np.zeros(len(layer), np.uint64)
    sources: dict[int, list[int]] = defaultdict(list)
    for track in placed:
        mine = layer[track.rows]
        around = np.where(track.parent >= 0, mine[track.parent], -1)
        outermost = (mine >= 0) & (around != mine)
        given = numbers.take(int(outermost.sum()))
        flows[track.rows[outermost]] = given
        for source, flow in zip(mine[outermost].tolist(), given.tolist(), strict=True):
            sources[source].append(flow)
    return flows, sources
