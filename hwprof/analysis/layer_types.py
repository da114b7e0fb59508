"""The leaf layers summed by type: how much time all convolutions take, all activations, …"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from hwprof.analysis import summary
from hwprof.analysis.attribution import Attribution
from hwprof.analysis.layers import Figures, figures, sum_where_known, timed_owners, with_known_work
from hwprof.analysis.owners import UNATTRIBUTED
from hwprof.run.manifest import MetricDefinition


def layer_type_table(
    layers: pl.DataFrame,
    attribution: Attribution,
    definitions: Sequence[MetricDefinition],
    threads: int | None,
    further: pl.DataFrame | None = None,
) -> Figures:
    """One row a type, longest time first, then ``UNATTRIBUTED``; ``layers`` and the static figures are sums.

    Medians are taken of the type's sum in each iteration. MACs and bytes of a type are null where those of some of its
    layers are not known: what they take time for would count as slowness of the others.
    """
    leaves = with_known_work(layers.filter("leaf").unique("path", keep="first"))
    timed = timed_owners(attribution)
    some_without = ((pl.col("macs") == 0) & pl.col("path").is_in(timed)).any() & (pl.col("macs") > 0).any()
    known = {
        "macs": pl.when(~some_without).then(sum_where_known("macs", timed)),
        "bytes": sum_where_known("bytes", timed),
    }
    described = leaves.group_by(owner="type").agg(
        pl.len().alias("layers"), pl.col("parameters", "calls").sum(), **known
    )
    described = pl.concat([described, pl.DataFrame({"owner": [UNATTRIBUTED]})], how="diagonal_relaxed")
    groups = pl.concat(
        [
            leaves.select(owner="path", group="type"),
            pl.DataFrame({"owner": [UNATTRIBUTED], "group": [UNATTRIBUTED]}),
        ]
    )
    times = summary.regroup(attribution.times, groups)
    counts = summary.regroup(attribution.counts, groups)
    found = figures(described, times, counts, attribution, definitions, threads, further)
    rest = pl.col("owner") == UNATTRIBUTED
    rows = found.rows.sort(rest, "time_total_ns", "owner", descending=[False, True, False], nulls_last=True)
    return replace(found, rows=rows)
