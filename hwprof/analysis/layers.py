"""The table of leaf layers: what each is, how long it took, what it counted, and the metrics derived from that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import polars as pl

from hwprof.analysis import irregular, metrics, summary, uncounted
from hwprof.analysis.attribution import Attribution, owner_of
from hwprof.analysis.inner_modules import outermost, within_modules
from hwprof.analysis.iterations import Iterations
from hwprof.analysis.owners import ROOT, UNATTRIBUTED, WHOLE
from hwprof.analysis.recursion import with_outermost
from hwprof.analysis.share_basis import is_uneven
from hwprof.run.manifest import MetricDefinition
from hwprof.run.process_events import PROCESS_EVENTS

MEDIAN: Final = "time_median_ns"
MEAN: Final = "time_mean_ns"


@dataclass(frozen=True)
class Figures:
    """The figures of some owners (layers, layer types, stages): three tables keyed by ``owner``.

    ``rows``: description, time per iteration and ``share``: the median time's part of the sum of all rows' medians, so
    that the rows with what is unattributed add up to 1 and their shares are in the order of their times (means instead
    of medians where these do not add up to about the whole's). ``counters``:
    as ``summary.counts``. ``metrics``: one column a metric, and ``NAME@main`` and ``NAME@workers`` of those that can be
    told by thread.
    """

    rows: pl.DataFrame
    counters: pl.DataFrame
    metrics: pl.DataFrame
    operands: tuple[str, ...]  # those that hold a value for at least one owner
    across_iterations: frozenset[str]  # the metrics that are made of different iterations' medians
    irregular: tuple[str, ...] = ()  # the layers that some iterations call more often than others, or not at all
    beside: tuple[str, ...] = ()  # those with MACs of which an unknown part is in no time (``Attribution.beside``)
    uncounted: Mapping[str, float] = field(default_factory=dict)  # as ``uncounted.by_owner``: whose counts are null
    uncounted_callers: Mapping[str, float] = field(default_factory=dict)  # so too, because nobody counted the caller


def layer_table(
    layers: pl.DataFrame,
    attribution: Attribution,
    definitions: Sequence[MetricDefinition],
    threads: int | None,
    further: pl.DataFrame | None = None,
) -> Figures:
    """One row a leaf layer, or a module's own code, in execution order, then ``UNATTRIBUTED`` and ``WHOLE``.

    A leaf that was never called keeps its row, without times. ``further``: operands by owner that come from
    elsewhere, as ``uncore.operands`` and ``summary.as_operands`` make them.
    """
    timed = timed_owners(attribution)
    owners = owner_table(layers, timed)
    totals = _totals(layers, owners, timed)
    if layers.filter(~pl.col("leaf") & (pl.col("calls") > 0))[
        "macs"
    ].has_nulls():  # products beside those of its leaves
        totals = totals.with_columns(macs=pl.lit(None, pl.Int64))
    described = pl.concat([owners, totals], how="diagonal_relaxed")
    times, counts, uneven = attribution.times, attribution.counts, irregular.uneven(attribution.calls)
    found = figures(described, times, counts, attribution, definitions, threads, further, uneven)
    return replace(found, irregular=irregular.layers(attribution.calls))


def owner_table(layers: pl.DataFrame, timed: list[str]) -> pl.DataFrame:
    """The table ``layers`` in execution order with ``owner``: leaves, and the modules that are in ``timed`` with their
    own code, of which only the MACs are known."""
    rows = layers.unique("path", keep="first").sort("order", maintain_order=True)
    rows = with_known_work(rows.with_columns(owner=owner_of(pl.col("path"), pl.col("leaf"))))
    rows = rows.filter(pl.col("leaf") | pl.col("owner").is_in(timed))
    others = ("parameters", "input_shapes", "output_shapes", "more_shapes")
    return rows.with_columns(
        *(pl.when("leaf").then(name).alias(name) for name in others),
        macs=pl.when("leaf").then("macs").otherwise("own_macs"),
    )


def static_rows(layers: pl.DataFrame, timed: Sequence[str] = ()) -> pl.DataFrame:
    """What a model's MACs and parameters are the sum of: the rows of the table ``layers`` that are leaves, and those of
    modules with products or parameters of their own, or that are in ``timed``, as ``owners.own``. Of these no more is
    known."""
    products = pl.col("own_macs").ne_missing(0) & (pl.col("calls") > 0)
    path = owner_of(pl.col("path"), pl.col("leaf"))
    layers = _with_own_parameters(layers)
    rows = layers.filter(pl.col("leaf") | products | (pl.col("own_parameters") > 0) | path.is_in(list(timed)))
    return rows.drop("own_parameters").with_columns(
        path=path,
        parameters=pl.when("leaf").then("parameters").otherwise(rows["own_parameters"]),
        macs=pl.when("leaf").then("macs").otherwise("own_macs"),
    )


def _with_own_parameters(layers: pl.DataFrame) -> pl.DataFrame:
    """The table with ``own_parameters`` of modules: beside those of the modules in them; null where there are none (as
    where these share theirs), or they are not known."""
    known = dict(layers.select("path", "parameters").iter_rows())
    inside: dict[str, int] = {}
    for path, parameters in known.items():
        around = path
        while around != ROOT:
            around = around.rpartition(".")[0] if "." in around else ROOT
            if around in known:  # a list of modules is none that is called, and not there
                inside[around] = inside.get(around, 0) + (parameters or 0)
                break
    own = {path: more for path, all_of_it in known.items() if (more := (all_of_it or 0) - inside.get(path, 0)) > 0}
    mapped = pl.col("path").replace_strict(own, default=None, return_dtype=pl.Int64)
    return layers.with_columns(own_parameters=pl.when(~pl.col("leaf")).then(mapped))


def parameters_of_model(layers: pl.DataFrame, otherwise: int | None) -> int | None:
    """Those of the module that all others are in; ``otherwise``: what was known before the model was called, which is
    less where a layer's weights are no parameters of PyTorch's."""
    root = layers.filter((pl.col("path") == ROOT) | (pl.len() == 1))
    return root["parameters"][0] if root.height else otherwise


def with_known_work(leaves: pl.DataFrame) -> pl.DataFrame:
    """The table ``layers`` with nulls where its figures are not those of the work that is measured: the one forward
    that it is made of did not call a layer which other ones do, or showed no tensor of it. 0 MACs of a layer that was
    called: it has no products (in older runs: none that torch's counter knows)."""
    called = pl.col("calls") > 0
    return leaves.with_columns(
        macs=pl.when(called).then(pl.col("macs")), bytes=pl.when(called & (pl.col("bytes") > 0)).then(pl.col("bytes"))
    )


def sum_where_known(name: str, timed: list[str]) -> pl.Expr:
    """The sum over layers; null where it is not known of one that takes time."""
    value = pl.col(name)
    unknown = (value.is_null() & pl.col("owner").is_in(timed)).any()
    return pl.when((value.count() > 0) & ~unknown).then(value.sum())


def timed_owners(attribution: Attribution) -> list[str]:
    """Those that times are reported of."""
    timed = pl.col("iteration").is_in(list(attribution.iterations.timed))
    return attribution.times.filter(timed)["owner"].unique(maintain_order=True).to_list()


def figures(
    described: pl.DataFrame,
    times: pl.DataFrame,
    counts: pl.DataFrame,
    attribution: Attribution,
    definitions: Sequence[MetricDefinition],
    threads: int | None,
    further: pl.DataFrame | None = None,
    uneven: Sequence[str] = (),
) -> Figures:
    """Sums up times and counts for the owners in ``described`` (owner, macs, bytes, …), in its order. ``uneven``: those
    of them whose work differs from iteration to iteration: neither the MACs of the one nor the counts of another belong
    to the median of their times."""
    described = described.with_columns(
        pl.when(~pl.col("owner").is_in(list(uneven))).then(name).alias(name) for name in ("macs", "bytes")
    )
    iterations = attribution.iterations
    timed = summary.times(times, iterations.timed)
    counted = summary.counts(counts)
    static = described.select("owner", "macs", "bytes", pl.lit(threads, dtype=pl.Float64).alias("threads"))
    rates = ~pl.col("owner").is_in(sorted(attribution.beside))  # of others the time is not all of that work's
    static = static.with_columns(pl.when(rates).then(name).alias(name) for name in ("macs", "bytes"))
    if further is not None:
        static = static.join(further, on="owner", how="left", maintain_order="left")
    operands = metrics.Operands(static.select("owner"), static.select("owner").clear())
    if definitions:  # hundreds of columns, that nothing is made of otherwise
        operands = summary.operands(timed, times, counts, static, iterations.counted, uneven)
    evaluated = metrics.evaluate(operands, metrics.with_threads(definitions))
    rows = described.join(timed, on="owner", how="left", maintain_order="left")
    rows = rows.with_columns(share=_share(rows, iterations, _basis(attribution)))
    return Figures(
        rows,
        counted.filter(~pl.col("event").is_in(PROCESS_EVENTS)).join(described.select("owner"), on="owner", how="semi"),
        evaluated.frame,
        operands.available,
        evaluated.across_iterations,
        uncounted=uncounted.by_owner(attribution.uncounted),
        uncounted_callers=uncounted.by_owner(attribution.uncounted_callers),
        beside=tuple(described.filter(~rates & (pl.col("macs") > 0))["owner"]),
    )


def shares(owners: pl.DataFrame, attribution: Attribution) -> pl.DataFrame:
    """``owner`` and ``share`` of all rows of ``layer_table`` but the whole, whose owners these are."""
    iterations = attribution.iterations
    times = summary.times(attribution.times, iterations.timed)
    rows = owners.select("owner").join(times, on="owner", how="left", maintain_order="left")
    return rows.select("owner", share=_share(rows, iterations, _basis(attribution)))


def module_table(
    spans: pl.DataFrame, layers: pl.DataFrame, attribution: Attribution, rows: pl.DataFrame
) -> pl.DataFrame:
    """One row a module that has layers within it, in the table's order: ``owner``, ``type``, ``parameters`` and
    ``macs`` with all below it, the columns of ``summary.times`` of its own spans (null: never called), and ``share``:
    what its ``rows`` (as ``layer_table`` has them) have together. ``spans`` are the pass's."""
    modules = layers.filter(~pl.col("leaf")).unique("path", keep="first").sort("order", maintain_order=True)
    timed = pl.col("iteration").is_in(list(attribution.iterations.timed))
    calls = spans.filter((pl.col("kind") == "layer") & timed)
    lasted = (pl.col("end_ns") - pl.col("begin_ns")).filter("outermost").sum()
    sums = (
        with_outermost(calls.join(modules.select("path"), on="path", how="semi"))
        .group_by("iteration", owner="path")
        .agg(calls=pl.len().cast(pl.Int64), time_ns=lasted)
    )
    times = summary.times(sums.sort("owner", "iteration"), attribution.iterations.timed)
    described = with_known_work(modules).select("type", "parameters", "macs", owner="path")
    return described.join(times, on="owner", how="left", maintain_order="left").join(
        _shares(within_modules(calls, layers), rows), on="owner", how="left", maintain_order="left"
    )


def _shares(parts: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """``owner`` (a module) and ``share``: medians of parts do not add up to that of the whole, so a share that is made
    of a module's own median would contradict those of its layers, and be more than all."""
    found = parts.join(rows.select(row="owner", of_row="share").drop_nulls(), on="row", how="inner")
    return found.group_by("owner").agg(share=(pl.col("of_row") * pl.col("part")).sum())


def _per_iteration(iterations: Iterations, basis: str) -> pl.Expr:
    """The time of the iterations that call it, spread over all."""
    return pl.col(basis) * pl.col("iterations") / max(len(iterations.timed), 1)


def _basis(attribution: Attribution) -> str:
    """What shares are made of: medians, as what is shown beside them, or means (``share_basis``)."""
    iterations = attribution.iterations
    times = summary.times(attribution.times, iterations.timed)
    whole = times.filter(owner=WHOLE)["time_median_ns"].to_list()
    sum_ns = times.filter(pl.col("owner") != WHOLE).select(_per_iteration(iterations, MEDIAN).sum()).item()
    return MEAN if whole and whole[0] and is_uneven(sum_ns, whole[0]) else MEDIAN


def _share(rows: pl.DataFrame, iterations: Iterations, basis: str) -> pl.Expr:
    """Of the sum of all owners but the whole, which has all of it by definition."""
    own = _per_iteration(iterations, basis)
    of_ns = rows.filter(pl.col("owner") != WHOLE).select(own.sum()).item() or None
    whole = (pl.col("owner") == WHOLE) & pl.col("time_median_ns").is_not_null()
    return pl.when(whole).then(1.0).otherwise(own / pl.lit(of_ns, dtype=pl.Float64))


def _totals(layers: pl.DataFrame, owners: pl.DataFrame, timed: list[str]) -> pl.DataFrame:
    """What is known of the rest and of the whole; sums over no known figure are null, not 0.

    Bytes are the leaves', and those of products that modules make themselves are not known: beside MACs that have these
    products in them a sum without would be another model's. Parameters are those of the outermost modules: a module may
    have some of its own, and its layers may share theirs.
    """
    products = (~pl.col("leaf") & pl.col("macs").ne_missing(0)).any()
    leaves = owners.filter("leaf").select(bytes=sum_where_known("bytes", timed))
    sums = pl.concat([owners.select(products, macs=sum_where_known("macs", timed)), leaves], how="horizontal")
    return pl.concat(
        [
            pl.DataFrame({"owner": [UNATTRIBUTED]}),
            sums.select(
                "macs",
                bytes=pl.when(~pl.col("leaf")).then("bytes"),
                parameters=outermost(layers)["parameters"].sum(),
                owner=pl.lit(WHOLE),
            ),
        ],
        how="diagonal_relaxed",
    )
