"""The layers summed by type: how much time all convolutions take, all activations, the own code of blocks, …"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from hwprof.analysis import irregular, summary, uncounted
from hwprof.analysis.attribution import Attribution, owner_of
from hwprof.analysis.layers import (
    Figures,
    figures,
    owner_table,
    shares,
    sum_where_known,
    timed_owners,
)
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

    Medians are taken of the type's sum in each iteration; its share is that of its layers together, so that a row has
    the same one in both tables, though medians of parts do not add up to that of the sum. MACs and bytes
    of a type are null where those of some of its layers are not known: what they take time for would count as slowness
    of the others.
    """
    timed = timed_owners(attribution)
    owners = owner_table(layers, timed).with_columns(group=owner_of(pl.col("type"), pl.col("leaf")))
    some_without = ((pl.col("macs") == 0) & pl.col("owner").is_in(timed)).any() & (pl.col("macs") > 0).any()
    known = {
        "macs": pl.when(~some_without).then(sum_where_known("macs", timed)),
        "bytes": sum_where_known("bytes", timed),
        "parameters": pl.when(pl.col("leaf").all() & pl.col("parameters").is_not_null().all()).then(
            pl.col("parameters").sum()
        ),
    }
    described = owners.group_by("group").agg(pl.len().alias("layers"), pl.col("calls").sum(), **known)
    described = described.rename({"group": "owner"})
    described = pl.concat([described, pl.DataFrame({"owner": [UNATTRIBUTED]})], how="diagonal_relaxed")
    unattributed = pl.DataFrame({"owner": [UNATTRIBUTED], "group": [UNATTRIBUTED]})
    groups = pl.concat([owners.select("owner", "group"), unattributed])
    times = summary.regroup(attribution.times, groups)
    counts = summary.regroup(attribution.counts, groups)
    differing = {*irregular.uneven(attribution.calls), *irregular.layers(attribution.calls)}
    uneven = owners.filter(pl.col("owner").is_in(list(differing)))["group"].unique().to_list()
    of_types = replace(
        attribution,
        uncounted=uncounted.regroup(attribution.uncounted, groups),
        uncounted_callers=uncounted.regroup(attribution.uncounted_callers, groups),
        beside=frozenset(groups.filter(pl.col("owner").is_in(sorted(attribution.beside)))["group"]),
    )
    found = figures(described, times, counts, of_types, definitions, threads, further, uneven)
    rest = pl.col("owner") == UNATTRIBUTED
    known_share = pl.when(pl.col("share").count() > 0).then(pl.col("share").sum())
    of_layers = groups.join(shares(groups, attribution), on="owner").group_by(owner="group").agg(share=known_share)
    rows = (
        found.rows.drop("share")
        .join(of_layers, on="owner", how="left")
        .sort(rest, "share", "owner", descending=[False, True, False], nulls_last=True)
    )
    return replace(found, rows=rows)
