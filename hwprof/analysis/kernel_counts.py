"""What one instrumented pass counted of its kernels: millions of rows, of which a report needs few. They are summed
some kernels at a time, so that no more than a part of them is ever in memory.

Texts are numbers here (enumerations): grouping and sorting strings would take most of the time, of a million rows that
have a few thousand different ones, and five times the memory. ``instrumented.as_text`` has them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from typing import Final

import polars as pl

from hwprof.analysis.attribution import Attribution, owning_spans, whole_spans, within
from hwprof.analysis.callers import with_callers
from hwprof.analysis.instrumented import KERNEL_KEYS, UNNAMED
from hwprof.analysis.owners import UNATTRIBUTED, WHOLE
from hwprof.analysis.shared_counts import shared_counts, with_rows
from hwprof.run.schema import UNKNOWN_LIBRARY

ROWS: Final = 1_000_000
"""Of ``kernel_counts`` that are summed at a time: with what is made of them some 250 MB."""

ROWS_OF_ONE_EVENT: Final = 4 * ROWS
"""The same where the rows of one event are taken of all of these: each time all are looked through."""

HELD: Final = 3 * ROWS
"""So many rows are read once, and held: some 80 MB."""

NAMES: Final = [key for key in KERNEL_KEYS if key != "layer"]
"""What tells kernels apart in one layer."""

KEYS: Final = [*NAMES, "event", "provenance"]

SUMMED: Final = ["named", "event", "provenance"]
"""The same, where one number stands for ``NAMES``: rows are grouped by short keys."""

OPENMP: Final = "openmp"

OBSERVER: Final = "own"
"""The domain of what counts, which no count of a layer has."""

UNKNOWN: Final = {"kernel": UNNAMED, "library": UNKNOWN_LIBRARY, "domain": "other"}
"""What stands for a kernel that the run does not describe."""


class KernelCounts:
    """What functions did themselves, of one pass. ``spans``, ``rows`` (of ``kernel_counts``), ``repeated`` (of
    ``repeated_spans``) and ``names`` (of ``kernels``) are its own, ``modules`` the run's layers; ``counted`` what its
    counts come to, ``done``: only these layers and their sum, where others were cut short.

    ``layer`` is an owner of ``attribution``, or null: the whole (the inference). Of owners whose counts lack work there
    are no kernels: shares would be of what was counted.
    """

    def __init__(
        self,
        spans: pl.DataFrame,
        rows: pl.LazyFrame,
        repeated: pl.DataFrame,
        names: pl.DataFrame,
        modules: pl.DataFrame,
        counted: Attribution,
        done: Collection[str] | None,
    ) -> None:
        self._rows, self._names, self._done = _held_if_few(rows), names, done
        iterations = counted.iterations.frame.filter("layers_counted").select("iteration")
        kept = spans.join(iterations, on="iteration", how="semi")
        self.iterations = max(iterations.height, 1)
        wholes, _ = whole_spans(kept)
        self._wholes = with_rows(wholes.select("span"), repeated).group_by(span="rows_of").agg(times=pl.len())
        inside = with_callers(owning_spans(within(kept.filter(pl.col("kind") == "layer"), wholes), modules))
        self._owners = _enum([*inside["owner"].unique(), UNATTRIBUTED])
        shared = shared_counts(inside.select("span", "parent", layer=pl.col("owner").cast(self._owners)), repeated)
        self._spans, self._bundles, self._layers = shared.spans, shared.bundles, shared.layers.sort("layer")
        if done is not None:
            self._layers = self._layers.filter(pl.col("layer").is_in(self._as_layers(done).implode()))
        self._lacking = counted.uncounted["owner"].unique().to_list()

    @cached_property
    def events(self) -> frozenset[str]:
        """Those of which some kernel has a row."""
        return frozenset(self._kinds["event"].categories)

    def of_event(self, name: str | None) -> pl.DataFrame:
        """What every kernel has of one event in an iteration (mean over those that counted): ``KERNEL_KEYS`` and
        ``value``, in the same order each time; no rows of None."""
        some = self._some(self._numbered, ROWS_OF_ONE_EVENT) if name is not None else ()
        return pl.concat([self._of(pl.lit(False)), *(self._of((pl.col("event") == name) & those) for those in some)])

    def _of(self, which: pl.Expr) -> pl.DataFrame:
        return self._summed(which).select(*KERNEL_KEYS, pl.col("value") / self.iterations)

    def parts(self, wanted: pl.DataFrame) -> Iterator[pl.DataFrame]:
        """What the ``wanted`` kernels (``NAMES``) have of all events, in all layers, over all ``iterations`` that
        counted: the columns of ``KERNELS_SCHEMA``; some kernels in each part."""
        known = self._numbered.join(wanted.select(NAMES).unique(), on=NAMES, how="semi")
        return map(self._summed, self._some(known, ROWS))

    def of_listed(self, listed: pl.DataFrame) -> Iterator[pl.DataFrame]:
        """The same of the ``listed`` ones, each in its own layer (``layer`` and ``NAMES``): of all rows few are summed.
        What is there of others is not all that they have."""
        if self._done is not None:  # the whole is the sum of these layers
            yield from self.parts(listed)
            return
        known = self._numbered.join(listed.select("layer", *NAMES).unique(), on=NAMES)
        left, whole = known.filter(layer=UNATTRIBUTED), known.filter(pl.col("layer").is_null())
        for some in self._some(left.drop("layer"), ROWS):
            yield self._summed(some).filter(pl.col("layer") == UNATTRIBUTED)
        rows = self._rows_of(pl.col("kernel").is_in(whole["number"].implode()))
        yield self._of_owner(None, self._of_whole(rows))
        pairs = known.select("number", pl.col("layer").cast(self._owners, strict=False)).join(self._layers, on="layer")
        pairs = pairs.join(self._bundles, on="group").join(self._spans, on="bundle")
        wanted = pairs.select("span", kernel="number").unique().lazy()
        rows = self._rows_of(pl.lit(True)).join(wanted, on=["span", "kernel"], how="semi")
        yield self._of_layers(self._own_of_groups(rows))

    def _some(self, numbered: pl.DataFrame, most: int) -> Iterator[pl.Expr]:
        """Which rows are some of these kernels' (of ``_numbered``), about so many, until all have had their turn."""
        times = max(1, self._layers.height // max(1, self._layers["group"].n_unique()))  # they are each layer's
        rows = numbered.group_by(NAMES).agg(pl.col("rows").sum() * times).sort("rows", *NAMES)
        part_of = rows.with_columns(part=(pl.col("rows").cum_sum() - pl.col("rows")) // most).drop("rows")
        for part in numbered.join(part_of, on=NAMES).sort("part", "number").partition_by("part", maintain_order=True):
            yield pl.col("kernel").is_in(part["number"].implode())

    def _summed(self, which: pl.Expr) -> pl.DataFrame:
        """``layer``, ``KEYS`` and ``value`` of those rows, in the same order each time: of each layer, of the whole and
        of what is left of it."""
        known = self._rows_of(which)
        own = self._own_of_groups(known).sort("group", *SUMMED)
        several = own.join(self._layers.group_by("group").agg(layers=pl.len()), on="group")
        inside = several.group_by(SUMMED).agg((pl.col("value") * pl.col("layers")).sum())
        whole = inside if self._done is not None else self._of_whole(known)
        left = _left(whole, inside).sort(SUMMED)
        return pl.concat(
            [self._of_layers(own), self._of_owner(None, whole.sort(SUMMED)), self._of_owner(UNATTRIBUTED, left)]
        )

    def _rows_of(self, which: pl.Expr) -> pl.LazyFrame:
        """``span``, ``kernel``, ``SUMMED`` and ``value`` of those rows."""
        kinds = [pl.col(name).cast(kind) for name, kind in self._kinds.items()]
        rows = self._rows.filter(which).select("span", "kernel", "value", *kinds)
        numbered = rows.join(self._numbers.lazy(), left_on="kernel", right_on="number", how="left")
        return numbered.with_columns(pl.col("named").fill_null(0))

    def _of_whole(self, rows: pl.LazyFrame) -> pl.DataFrame:
        """Those of the whole, summed."""
        return _by(SUMMED, rows.join(self._wholes.lazy(), on="span"))

    def _of_layers(self, own: pl.DataFrame) -> pl.DataFrame:
        """``layer``, ``KEYS`` and ``value`` of the rows of groups: of each of their layers that is told of."""
        told = self._layers.filter(~pl.col("layer").is_in(self._as_layers(self._lacking).implode()))
        found = told.join(self._named_rows(own), on="group", maintain_order="left_right")
        return found.select("layer", *KEYS, "value")

    def _of_owner(self, owner: str | None, summed: pl.DataFrame) -> pl.DataFrame:
        """The same of the whole (None) or of what is left of it."""
        told = summed if (owner or WHOLE) not in self._lacking else summed.clear()
        return self._named_rows(told).select(pl.lit(owner, self._owners).alias("layer"), *KEYS, "value")

    def _named_rows(self, summed: pl.DataFrame) -> pl.DataFrame:
        """With ``NAMES``, but for those of what counts."""
        counted = self._named.filter(pl.col("domain").cast(pl.String) != OBSERVER)
        return summed.join(counted, on="named", maintain_order="left")

    def _own_of_groups(self, rows: pl.LazyFrame) -> pl.DataFrame:
        """The rows of modules by ``group``, of those that have layers, summed; what modules did that it called is
        subtracted."""
        summed = _by(["bundle", *SUMMED], rows.join(self._spans.lazy(), on="span"))
        bundles = self._bundles.join(self._layers, on="group", how="semi")
        # Those that called others, or that several called, are more than one bundle: few, of a million rows.
        single = (pl.len().over("group") == 1) & (pl.col("times") == 1)
        alone = summed.join(bundles.filter(single).drop("times"), on="bundle").drop("bundle")
        several = summed.lazy().join(bundles.filter(~single).lazy(), on="bundle")
        return pl.concat([alone, _by(["group", *SUMMED], several).select(alone.columns)])

    def _as_layers(self, paths: Collection[str]) -> pl.Series:
        """Those that are layers here, as numbers."""
        known = set(self._owners.categories)
        return pl.Series([path for path in paths if path in known], dtype=self._owners)

    @cached_property
    def _kinds(self) -> dict[str, pl.Enum]:
        """The events and provenances that there are, as types."""
        texts = ("event", "provenance")
        found = self._rows.select(texts).unique().collect(engine="streaming")
        return {name: _enum(found[name]) for name in texts}

    @cached_property
    def _described(self) -> pl.DataFrame:
        """``number`` in the tables, and ``NAMES``, of the kernels that the run describes."""
        described = self._names.select("library", "domain", number="kernel", kernel="name")
        return described.with_columns(pl.col(name).fill_null(unknown) for name, unknown in UNKNOWN.items())

    @cached_property
    def _named(self) -> pl.DataFrame:
        """``NAMES``, with numbers for texts, by the number ``named``; 0: what the run does not describe."""
        there = self._described.select(NAMES).sort(NAMES)
        told_apart = pl.concat([pl.DataFrame(UNKNOWN).select(NAMES), there]).unique(maintain_order=True)
        texts = {name: _enum(told_apart[name]) for name in NAMES}
        return told_apart.with_columns(pl.col(name).cast(kind) for name, kind in texts.items()).with_row_index("named")

    @cached_property
    def _numbers(self) -> pl.DataFrame:
        """Which kernels of the tables are ``named`` so."""
        named = self._named.cast(dict.fromkeys(NAMES, pl.String))
        return self._described.join(named, on=NAMES).select("number", "named")

    @cached_property
    def _numbered(self) -> pl.DataFrame:
        """Of every kernel that was counted its ``number`` in the tables, ``NAMES`` and how many ``rows`` it has."""
        counted = self._rows.group_by(number="kernel").agg(rows=pl.len().cast(pl.Int64)).collect(engine="streaming")
        described = counted.join(self._described, on="number", how="left")
        return described.with_columns(pl.col(name).fill_null(unknown) for name, unknown in UNKNOWN.items())


def _enum(texts: Iterable[str | None]) -> pl.Enum:
    """The type of one of these texts: a number, in their order."""
    return pl.Enum(sorted({text for text in texts if text is not None}))


def _held_if_few(rows: pl.LazyFrame) -> pl.LazyFrame:
    """What is needed of them. They are asked for several times, and reading them takes most of that."""
    texts = pl.col("event", "provenance")
    if rows.select(pl.len()).collect().item() > HELD:
        return rows
    return rows.select("span", "kernel", "value", texts.cast(pl.Categorical)).collect(engine="streaming").lazy()


def _by(keys: list[str], rows: pl.LazyFrame) -> pl.DataFrame:
    """Summed, each so many ``times``."""
    return rows.group_by(keys).agg((pl.col("value") * pl.col("times")).sum()).collect(engine="streaming")


def _left(whole: pl.DataFrame, inside: pl.DataFrame) -> pl.DataFrame:
    """The whole's kernels minus those of all layers; none where nothing is left."""
    left = whole.join(inside, on=SUMMED, how="left", suffix="_inside", nulls_equal=True)
    return left.with_columns(pl.col("value") - pl.col("value_inside").fill_null(0)).filter(pl.col("value") > 0)
