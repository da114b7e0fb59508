"""Who owns what: the time and the counts of every module in every iteration, and what no module owns.

In eager inference one leaf layer runs at a time, so what all threads of the process did between a leaf's enter and exit
belongs to that leaf. What a module around leaves does itself, between the modules that it calls, is its own code, a row
beside the leaves'. The rest of the inference is the row ``UNATTRIBUTED``: nothing is dropped, and the rows of an
iteration add up to the whole to the last count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import polars as pl

from hwprof.analysis import irregular, uncounted
from hwprof.analysis.callers import mixed, with_callers
from hwprof.analysis.iterations import Iterations, countable, select
from hwprof.analysis.large_tables import COUNTS, numbered
from hwprof.analysis.own_threads import calling_threads, own_calls
from hwprof.analysis.owners import INFERENCE, OWN, ROOT, ROOT_NAME, UNATTRIBUTED, WHOLE
from hwprof.analysis.recursion import with_outermost
from hwprof.analysis.timeline import Timeline
from hwprof.run.manifest import PassRecord
from hwprof.run.process_events import WHOLE_PROCESS_TID

COUNTED: Final = ("value", "main", "workers", "enabled_ns", "running_ns")
SUMS: Final = {
    "main": ("value", "main"),
    "workers": ("value", "workers"),
    "scaled": ("scaled", "all"),
    "scaled_main": ("scaled", "main"),
    "scaled_workers": ("scaled", "workers"),
}
"""What is summed of which threads."""

AMOUNTS: Final = (*COUNTED, "scaled", "scaled_main", "scaled_workers")
COUNTS_SCHEMA: Final = pl.Schema(
    {
        "owner": pl.String,
        "iteration": pl.Int32,
        "event": pl.String,
        "provenance": pl.String,
        "value": pl.Int64,
        "main": pl.Int64,
        "workers": pl.Int64,
        "scaled": pl.Float64,
        "scaled_main": pl.Float64,
        "scaled_workers": pl.Float64,
        "enabled_ns": pl.Int64,
        "running_ns": pl.Int64,
    }
)
SHARE: Final = 0.02
"""Of a module's own time: one that lacks less is known."""

TIMES_SCHEMA: Final = pl.Schema(
    {"owner": pl.String, "iteration": pl.Int32, "layers_counted": pl.Boolean, "calls": pl.Int64, "time_ns": pl.Int64}
)


@dataclass(frozen=True)
class Attribution:
    """What each owner (a leaf layer's path, ``owners.own`` of another module, ``UNATTRIBUTED``, ``WHOLE``) took in each
    iteration after warm-up.

    ``times``: all iterations. ``counts``: those that counted layers and whose event set holds the event; ``value``,
    ``main`` (the thread that called) and ``workers`` are sums over calls and threads as counted; ``scaled`` is value ×
    enabled / running by thread, which differs only where the kernel multiplexed, and null where a counter never ran.
    """

    times: pl.DataFrame
    counts: pl.DataFrame
    iterations: Iterations
    whole: str  # "inference" or "iteration"
    overlapping_calls: int  # leaf calls that began before the last one ended: their counts cannot be told apart
    uncounted_callers: pl.DataFrame = field(default_factory=uncounted.nobodys)  # as ``uncounted.of_callers``
    uncounted: pl.DataFrame = field(default_factory=uncounted.nobodys)  # whose counts lack work, as ``uncounted.hide``
    calls: pl.DataFrame = field(default_factory=irregular.none)  # as ``irregular.calls``, of the disturbed ones as well
    beside: frozenset[str] = frozenset()  # whose thread may have worked beside others that it had begun: in no time


def attribute(
    spans: pl.DataFrame,
    counts: pl.DataFrame,
    layers: pl.DataFrame,
    record: PassRecord,
    *,
    disturbed_too: bool = False,
) -> Attribution:
    """Attributes one pass: ``spans`` and ``counts`` hold its rows only, ``layers`` is the run's layer table.
    ``disturbed_too``: as in ``iterations.select``."""
    iterations = select(record.iterations, disturbed_too=disturbed_too)
    kept = spans.join(iterations.frame, on="iteration", how="inner")
    wholes, whole = whole_spans(kept)
    wholes = wholes.with_columns(owner=pl.lit(WHOLE), leaf=pl.lit(None, pl.Boolean), outermost=True)
    modules = with_callers(owning_spans(kept, layers))
    timed = _with_times(pl.concat([wholes, modules.select(wholes.columns)]))
    usable = countable(record, iterations)
    threadless = uncounted.of_callers(timed.filter("layers_counted"), counts)
    nobodys = mixed(modules, wholes["tid"].unique().to_list())
    parts = [
        uncounted.without(
            _of_events(part, modules, wholes, usable).join(nobodys, on=["owner", "iteration"], how="anti"), threadless
        )
        for part in _by_event(numbered(counts, "event", "provenance"))
    ]
    counted, lacking = uncounted.hide(pl.concat([pl.DataFrame(schema=COUNTS_SCHEMA), *parts]))
    return Attribution(
        pl.concat([_times(timed, "time_ns"), _times(timed.filter(owner=WHOLE), "own_ns", UNATTRIBUTED)]).sort(
            "owner", "iteration"
        ),
        counted.sort("owner", "iteration", "event"),
        iterations,
        whole,
        overlaps(modules.filter("leaf", "outermost")),
        threadless,
        lacking,
        _calls(spans, layers, record),
        _beside(timed),
    )


def _by_event(counts: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """All rows of some events at a time, of as many as have ``COUNTS`` rows."""
    rows = counts.group_by("event").agg(rows=pl.len().cast(pl.Int64)).sort("rows", "event")
    part_of = rows.select("event", part=(pl.col("rows").cum_sum() - pl.col("rows")) // COUNTS)
    for _, part in part_of.group_by("part", maintain_order=True):
        yield counts if part.height == rows.height else counts.filter(pl.col("event").is_in(part["event"].implode()))


def _of_events(counts: pl.DataFrame, modules: pl.DataFrame, wholes: pl.DataFrame, usable: pl.DataFrame) -> pl.DataFrame:
    """What modules, the whole and nobody have of these counts."""
    own = own_counts(counts, modules)
    module_counts = owned_counts(_callers(modules), own, usable)
    whole_counts = owned_counts(_callers(wholes), counts, usable)
    inside, left = within(modules, wholes), wholes["tid"].min()  # what is left is that thread's
    counts_inside = module_counts  # of most models all modules are
    if inside.height < modules.height or modules["tid"].unique().to_list() != [left]:
        counts_inside = owned_counts(_callers(inside).with_columns(caller=pl.lit(left, pl.Int32)), own, usable)
    return pl.concat([module_counts, whole_counts, _counts_left(whole_counts, counts_inside)])


def _calls(spans: pl.DataFrame, layers: pl.DataFrame, record: PassRecord) -> pl.DataFrame:
    measured = pl.Series([one.index for one in record.iterations if not one.warmup], dtype=pl.Int32)
    modules = owning_spans(spans.filter(pl.col("iteration").is_in(measured.implode())), layers)
    return irregular.calls(modules, measured)


def leaf_spans(spans: pl.DataFrame, layers: pl.DataFrame) -> pl.DataFrame:
    """The spans of leaf layers; a path is a leaf if the layer table says so."""
    leaves = layers.filter("leaf").select("path").unique()
    return spans.filter(pl.col("kind") == "layer").join(leaves, on="path", how="semi")


def owning_spans(spans: pl.DataFrame, layers: pl.DataFrame) -> pl.DataFrame:
    """The spans of modules, with ``owner``, ``leaf`` and what ``with_outermost`` adds. Runs of older versions did not
    watch the model itself, and counted at the edges of leaves only: of them these only."""
    known = layers.unique("path", keep="first").select("path", "leaf")
    if ROOT not in known["path"]:
        known = known.filter("leaf")
    spans = spans.filter(pl.col("kind") == "layer").join(known, on="path", how="inner", maintain_order="left")
    return with_outermost(spans).with_columns(owner=owner_of(pl.col("path"), pl.col("leaf")))


def owner_of(path: pl.Expr, leaf: pl.Expr) -> pl.Expr:
    """A leaf's path, and of another module the owner of its own code."""
    return pl.when(leaf).then(path).otherwise(pl.when(path == ROOT).then(pl.lit(ROOT_NAME)).otherwise(path) + OWN)


def whole_spans(spans: pl.DataFrame) -> tuple[pl.DataFrame, str]:
    """The spans that leaves must add up to: inference stages; iterations where the pipeline marks no such stage."""
    stages = spans.filter((pl.col("kind") == "stage") & (pl.col("path") == INFERENCE))
    if stages.height:
        return stages, INFERENCE
    return spans.filter(pl.col("kind") == "iteration"), "iteration"


def within(spans: pl.DataFrame, wholes: pl.DataFrame) -> pl.DataFrame:
    """Those of ``spans`` that lie inside one of ``wholes`` in time (on whatever thread); wholes do not overlap."""
    edges = wholes.select("begin_ns", until_ns="end_ns").sort("begin_ns")
    placed = spans.sort("begin_ns").join_asof(edges, on="begin_ns", strategy="backward")
    return placed.filter(pl.col("end_ns") <= pl.col("until_ns")).drop("until_ns")


def overlaps(leaves: pl.DataFrame) -> int:
    """How many leaf calls begin before an earlier one has ended (threads, a leaf that calls another one)."""
    ordered = leaves.sort("begin_ns")
    return int(ordered.select((pl.col("begin_ns") < pl.col("end_ns").cum_max().shift(1)).sum()).item() or 0)


def own_counts(counts: pl.DataFrame, modules: pl.DataFrame) -> pl.DataFrame:
    """The counts of the modules' spans, without those of the modules that each called; ``modules`` as ``with_callers``
    makes them. What was not counted of both is left as it is."""
    rows = counts.join(modules.select("span"), on="span", how="semi")
    calls = modules.select("span", caller="parent").drop_nulls()
    key = ["span", "tid", "event"]
    below = rows.join(calls, on="span", how="inner").with_columns(span="caller").drop("caller")
    below = below.join(rows.select(key), on=key, how="semi")
    return pl.concat([rows, below.with_columns(-pl.col("value", "enabled_ns", "running_ns"))])


def owned_counts(owners: pl.DataFrame, counts: pl.DataFrame, usable: pl.DataFrame | None) -> pl.DataFrame:
    """The counts of spans, summed by owner, iteration and event, in ``COUNTS_SCHEMA``.

    ``owners`` has span, owner and caller (the thread that opened the span); ``usable`` the pairs (iteration, event) of
    the event sets; None: every pair counts.
    """
    owners, counts = numbered(owners, "owner"), numbered(counts, "event", "provenance")
    rows = counts.join(owners, on="span", how="inner")
    if usable is not None:
        usable = usable.with_columns(pl.col("event").cast(counts.schema["event"], strict=False))
        free = ~pl.col("event").is_in(usable["event"].unique().implode())
        rows = pl.concat(
            [rows.filter(free), rows.filter(~free).join(usable, on=["iteration", "event"], how="semi")],
        )
    threads = rows.group_by("owner", "iteration", "event", "tid").agg(
        pl.col("provenance").first(),
        (pl.col("tid") == pl.col("caller")).first().alias("calling"),
        pl.col("value", "enabled_ns", "running_ns").sum(),
    )
    # enabled = running = 0 is a thread that slept throughout: its 0 was counted. enabled > running = 0 tells nothing.
    scaled = (
        pl.when(pl.col("running_ns") >= pl.col("enabled_ns"))
        .then(pl.col("value").cast(pl.Float64))
        .when(pl.col("running_ns") > 0)
        .then(pl.col("value") * (pl.col("enabled_ns") / pl.col("running_ns")))
    )
    process = pl.col("tid") == WHOLE_PROCESS_TID
    sides = {"all": pl.lit(True), "main": pl.col("calling"), "workers": ~pl.col("calling") & ~process}
    return (
        threads.with_columns(scaled=scaled, **{f"of_{side}": rows for side, rows in sides.items()})
        .with_columns(pl.when(f"of_{side}").then(column).alias(name) for name, (column, side) in SUMS.items())
        .group_by("owner", "iteration", "event")
        .agg(
            pl.col("provenance").first(),
            pl.col("value").sum(),
            *(_sum_or_null(name, f"of_{side}") for name, (_, side) in SUMS.items()),
            pl.col("enabled_ns", "running_ns").sum(),
        )
        .select(COUNTS_SCHEMA.names())
        .cast(COUNTS_SCHEMA)
    )


def _sum_or_null(column: str, rows: str) -> pl.Expr:
    """The sum over ``rows``, of which alone the column has values; null where there is no such row or one is not known:
    without a filter, which polars would apply to every group by itself."""
    number = pl.col(rows).sum()
    return pl.when((number > 0) & (pl.col(column).count() == number)).then(pl.col(column).sum())


def _with_times(spans: pl.DataFrame) -> pl.DataFrame:
    """The spans with ``own_ns``, in which none of the others ran (of a module on a thread of the model's own: none on
    that thread), and the ``time_ns`` of their owners: of what is no leaf, nor the whole, only its own; nothing of a
    leaf's call that lies in another one of it."""
    own_ns = Timeline.of(spans).durations(spans.height)
    numbered_spans = spans.with_columns(path="owner").with_row_index("row")
    calling = calling_threads(numbered_spans)
    for tid, own in own_calls(numbered_spans, calling).items():
        if tid not in calling:
            own_ns[own.spans["row"].to_numpy()] = own.timeline.durations(own.spans.height)
    spans = spans.with_columns(pl.Series("own_ns", own_ns, dtype=pl.Int64))
    inner = pl.col("leaf").eq_missing(False)
    lasted = pl.when("outermost").then(pl.col("end_ns") - pl.col("begin_ns")).otherwise(0)
    return spans.with_columns(time_ns=pl.when(inner).then("own_ns").otherwise(lasted))


def _beside(timed: pl.DataFrame) -> frozenset[str]:
    """The modules on the thread that calls the model whose own time (``_with_times``) lacks some in which layers ran on
    other threads: what their code did meanwhile nobody knows here."""
    spans = timed.with_columns(path="owner").with_row_index("row")
    own, found = own_calls(spans, ()), set[str]()
    for tid in calling_threads(spans):
        if tid in own:
            alone = own[tid].spans.with_columns(alone_ns=own[tid].timeline.durations(own[tid].spans.height))
            lacks = pl.col("leaf").eq_missing(False) & (pl.col("own_ns") < (1 - SHARE) * pl.col("alone_ns"))
            found.update(alone.filter(lacks)["owner"])
    return frozenset(found)


def _times(spans: pl.DataFrame, time: str, owner: str | None = None) -> pl.DataFrame:
    """In ``TIMES_SCHEMA``; ``owner``: whose all of it is."""
    if owner is not None:
        spans = spans.with_columns(owner=pl.lit(owner))
    sums = spans.group_by("owner", "iteration", "layers_counted").agg(
        calls=number_of_calls(), time_ns=pl.col(time).sum()
    )
    return sums.select(TIMES_SCHEMA.names())


def number_of_calls() -> pl.Expr:
    """Of spans of an owner in an iteration: one that another program than PyTorch does may have several parts."""
    return (pl.col("call").null_count() + pl.col("call").drop_nulls().n_unique()).cast(pl.Int64)


def _callers(spans: pl.DataFrame) -> pl.DataFrame:
    return spans.filter("layers_counted").select("span", "owner", caller="tid")


def _counts_left(whole: pl.DataFrame, inside: pl.DataFrame) -> pl.DataFrame:
    """The whole's counts minus its modules'; a scaled value that is not known of one is not known of the rest."""
    sums = inside.group_by("iteration", "event").agg(
        pl.col(name).sum() if name in COUNTED else pl.when(pl.col(name).null_count() == 0).then(pl.col(name).sum())
        for name in AMOUNTS
    )
    sums = sums.with_columns(found=pl.lit(True))
    left = whole.join(sums, on=["iteration", "event"], how="left", suffix="_inside")
    return (
        left.select(
            pl.lit(UNATTRIBUTED).alias("owner"),
            "iteration",
            "event",
            "provenance",
            *(
                pl.col(name) - pl.when(pl.col("found").is_null()).then(0).otherwise(pl.col(f"{name}_inside"))
                for name in AMOUNTS
            ),
        )
        .select(COUNTS_SCHEMA.names())
        .cast(COUNTS_SCHEMA)
    )
