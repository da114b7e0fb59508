"""The document's part on passes that counted by following the code, and its section in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import polars as pl

from hwprof.analysis import followed, layers, overhead
from hwprof.analysis.attribution import UNATTRIBUTED, WHOLE, attribute
from hwprof.report import columns, described, figures, rows
from hwprof.report.grid import Column
from hwprof.report.page import PATH, Page
from hwprof.report.schema import Event, Followed, Kernel, Layer, MetricInfo
from hwprof.run.directory import RunDirectory
from hwprof.run.manifest import PassRecord

PER_LAYER: Final = 5
"""Kernels of a layer in the document; the table ``kernel_counts`` has all."""

KERNEL: Final = 30
"""To how many characters a kernel's name may be cut."""

LONGEST: Final = 60
"""How many characters of it are shown at most."""

INSTRUCTIONS: Final = ".instructions"


def build(run: RunDirectory, modules: pl.DataFrame) -> list[Followed]:
    """One for each kept pass whose times are another's."""
    records = {record.name: record for record in run.kept_passes()}
    return [
        found
        for record in records.values()
        if record.times_from is not None and (found := _build(run, record, records.get(record.times_from), modules))
    ]


def _build(
    run: RunDirectory, record: PassRecord, companion: PassRecord | None, modules: pl.DataFrame
) -> Followed | None:
    machine = run.manifest.machine
    spans, counts = (_mine(run, table, record) for table in ("spans", "counts"))
    named = _mine(run, "kernel_counts", record).join(_mine(run, "kernels", record), on="kernel", how="left")
    counted = attribute(spans, counts, modules, record)
    apart = followed.why_apart(record, companion)
    timed, done = None, None
    notes = []
    if companion is not None and apart is None:
        timed = attribute(_mine(run, "spans", companion), counts.clear(), modules, companion)
        differing = followed.calls_differ(counted, timed)
        if record.status != "completed":
            counted = followed.whole_layers(counted, timed)
            done = counted.counts["owner"].unique().to_list()
            notes.append(f"{record.reason}: {figures.plural(len(done), 'layer')} have counts, and nothing has sums")
        elif differing:
            notes.append(f"{figures.plural(differing, 'layer')} were not called as often as in pass {companion.name}")
    if record.status != "completed" and timed is None:
        return None  # which layers came to all of their calls is not known
    both = followed.joined(counted, timed)
    table = layers.layer_table(modules, both, record.metrics, record.threads)
    events = described.events(record.events, table.counters)
    if not events:
        return None
    leaves = {layer.path: layer for layer in rows.layers(table, overhead.counting_overhead(both), None, {})}
    unattributed, whole = leaves.pop(UNATTRIBUTED, None), leaves.pop(WHOLE, None)
    return Followed(
        name=record.name,
        status=record.status,
        times_from=record.times_from,
        apart=apart,
        instruction_set=record.instruction_set,
        threads=record.threads,
        environment=record.environment,
        notes=notes,
        events=events,
        metrics=described.metric_infos(record.metrics, table.operands, table.apart, events, record, machine),
        layers=list(leaves.values()),
        unattributed=unattributed,
        inference=whole,
        kernels=_kernels(followed.kernels(spans, named, modules, counted, done), events),
    )


def _mine(run: RunDirectory, table: str, record: PassRecord) -> pl.DataFrame:
    return run.scan(table).filter(pl.col("pass") == record.name).collect()


def _kernels(table: pl.DataFrame, events: Sequence[Event]) -> list[Kernel]:
    """Those of the whole that are not small, and the largest of every layer, ranked by instructions."""
    ranked_by = next((event.name for event in events if event.name.endswith(INSTRUCTIONS)), None)
    keys = ["layer", "kernel", "library", "domain"]
    main = table.filter(event=ranked_by)
    place = pl.int_range(pl.len()).over("layer")
    large = main.filter(
        pl.when(pl.col("layer").is_null()).then(pl.col("share") >= followed.SMALL).otherwise(place < PER_LAYER)
    )
    counters: dict[tuple[str | None, ...], dict[str, float]] = {}
    provenances = dict(table.select("event", "provenance").unique().iter_rows())
    kept = table.join(large.select(keys), on=keys, how="semi", nulls_equal=True)
    for *key, event, value in kept.select(*keys, "event", "value").iter_rows():
        counters.setdefault(tuple(key), {})[event] = value
    return [
        Kernel(
            **row,
            counters=(mine := counters[tuple(row[key] for key in keys)]),
            provenance={name: provenances[name] for name in mine},
        )
        for row in large.select(*keys, "value", "share").iter_rows(named=True)
    ]


def show(page: Page) -> None:
    """The sections: the layers of each such pass, then its kernels."""
    for found in page.document.followed:
        _layers(found, page)
        _functions(found, page)


def _layers(found: Followed, page: Page) -> None:
    """The layers with the most instructions."""
    glyphs = page.glyphs
    event = _ranked_by(found)
    if event is None:
        return
    top = page.document.hottest.top
    ranked = sorted((layer for layer in found.layers if _value(layer, event)), key=lambda layer: -_value(layer, event))
    shown = ranked[:top]
    sums = [layer for layer in (found.unattributed, found.inference) if layer is not None and event in layer.counters]
    header, names = page.names(shown)
    every: list[Layer] = [*shown, *sums]
    whole = _value(found.inference, event) if found.inference is not None else 0.0
    names += [page.document.whole if layer is found.inference else layer.path for layer in sums]
    hottest = {kernel.layer: kernel for kernel in reversed(found.kernels) if kernel.layer is not None}
    metric_columns = [_metric_column(metric, every, page) for metric in found.metrics]
    title = f"Instructions by {found.name}"
    if found.instruction_set:
        title += f": {found.instruction_set}, not this machine's own instruction set"
    page.table(
        [
            Column(header, names, right=False, least=PATH),
            Column("instr." + glyphs.followed, [figures.amount(_value(row, event), glyphs) for row in every]),
            Column("share", [figures.percent(_value(row, event) / whole if whole else None, glyphs) for row in every]),
            Column("time ms", [figures.time_with_spread(row.time, glyphs) for row in every], 1),
            *metric_columns,
            Column(
                "hottest kernel", [_kernel(hottest.get(row.path), page) for row in every], 9, right=False, least=KERNEL
            ),
        ],
        f"{title} ({len(shown)} of {len(ranked)} layers)",
        footer_rows=len(sums),
    )
    page.notes([*_provenance(found, page), *found.notes])


def _functions(found: Followed, page: Page) -> None:
    """The kernels of the whole."""
    glyphs = page.glyphs
    kernels = [kernel for kernel in found.kernels if kernel.layer is None][: page.document.hottest.top]
    if not kernels:
        return
    others = [event for event in found.events if event.name != _ranked_by(found)]
    page.table(
        [
            Column("kernel", [_shortened(kernel.kernel, page) for kernel in kernels], right=False, least=KERNEL),
            Column("library", [kernel.library for kernel in kernels], 1, right=False, least=12),
            Column("instr." + glyphs.followed, [figures.amount(kernel.value, glyphs) for kernel in kernels]),
            Column("share", [figures.percent(kernel.share, glyphs) for kernel in kernels]),
            *(
                Column(
                    _short(event) + glyphs.followed,
                    [figures.amount(kernel.counters.get(event.name, 0.0), glyphs) for kernel in kernels],
                    2 + number,
                )
                for number, event in enumerate(others)
            ),
        ],
        f"Kernels by {found.name}: what each did itself in {_extent(found, page)}",
    )
    page.notes(["every layer's kernels: kernel_counts.parquet"])


def _extent(found: Followed, page: Page) -> str:
    return f"one {page.document.whole}" if found.status == "completed" else "the layers that were done"


def _shortened(name: str, page: Page) -> str:
    """C++ names are long, and their middle says least."""
    return figures.shorten(name, LONGEST, page.glyphs.ellipsis)


def _ranked_by(found: Followed) -> str | None:
    return next((event.name for event in found.events if event.name.endswith(INSTRUCTIONS)), None)


def _value(layer: Layer, event: str) -> float:
    counter = layer.counters.get(event)
    return counter.value or 0.0 if counter is not None else 0.0


def _metric_column(metric: MetricInfo, every: Sequence[Layer], page: Page) -> Column:
    cells = [figures.decimal(row.metrics.get(metric.name), metric.digits, page.glyphs) for row in every]
    return Column(metric.title + columns.marks(metric, page.glyphs), cells, 2, key=metric.name)


def _kernel(kernel: Kernel | None, page: Page) -> str:
    if kernel is None or kernel.share is None:
        return ""
    return f"{100 * kernel.share:.0f}% {_shortened(kernel.kernel, page)}"


def _short(event: Event) -> str:
    return event.name.rpartition(".")[2]


def _provenance(found: Followed, page: Page) -> list[str]:
    """Where the figures come from, and what they are not."""
    by_kind: dict[str, list[str]] = {}
    for event in found.events:
        by_kind.setdefault(event.provenance, []).append(_short(event))
    words = [f"{kind}: {figures.enumerate_words(names)}" for kind, names in by_kind.items()]
    held = ""
    if found.instruction_set:
        held = (
            f"both passes were held to {found.instruction_set} and {figures.plural(found.threads or 1, 'thread')}: not"
            " the code that the other tables are about"
        )
    times = f"time: pass {found.times_from}, the same work unfollowed" if found.apart is None else found.apart
    return [f"{page.glyphs.followed} {'; '.join(words)}", held, times]


__all__ = ["build", "show"]
