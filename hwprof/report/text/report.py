"""The report on a terminal: readable at 80 columns, rich from 120 on, the same words without colours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.console import Console

from hwprof.report.document.schema import Document, Energy, Layer, LayerType, Operator, Stage
from hwprof.report.text import (
    choice,
    columns,
    dram,
    figures,
    flops,
    header,
    instrumented,
    kernels,
    primitives,
    threads,
    topdown,
)
from hwprof.report.text.figures import Glyphs, plural
from hwprof.report.text.grid import Column
from hwprof.report.text.page import PATH, Page

BAR: Final = 8
"""Characters of a share bar; the longest of a table fills them."""


def render(document: Document, console: Console, metrics: Sequence[str] | None = None) -> None:
    """Prints the whole report in the console's width. ``metrics``: the columns of metrics; None: the usual ones."""
    Printer(document, console, metrics).report()


def make_console(width: int | None = None) -> Console:
    """A console on standard output that takes text as it is; NO_COLOR and pipes switch colours off."""
    return Console(width=width, highlight=False, markup=False, emoji=False)


class Printer:
    """Prints a document section by section."""

    def __init__(self, document: Document, console: Console, metrics: Sequence[str] | None = None) -> None:
        self.page = Page(document, console, metrics)
        self.document = document
        self.glyphs = self.page.glyphs

    def report(self) -> None:
        """All sections that have something to show."""
        header.show(self.document, self.page.console, self.glyphs)
        if self.document.stages:
            self.stages()
        if self.document.layers:
            self.hottest()
            topdown.show(self.page)
            flops.show(self.page)
            self.layer_types()
        kernels.show(self.page)
        threads.show(self.page)
        if self.document.operators:
            self.operators()
        if self.document.energy:
            self.energy()
        dram.show(self.page)
        primitives.show(self.page)
        instrumented.show(self.page)

    def stages(self) -> None:
        """The stages table."""
        rows: list[Stage] = self.document.stages
        calls = [row.call for row in rows]
        dash = self.glyphs.dash

        def times(name: str) -> list[str]:
            found = [getattr(call, name, None) for call in calls]
            return ["" if call is None else dash if ns is None else figures.milliseconds(ns)
                    for call, ns in zip(calls, found, strict=True)]  # fmt: skip

        self.page.table(
            [
                Column("stage", [_stage_name(row) for row in rows], right=False, least=12),
                Column("calls", ["" if row.calls is None else str(row.calls) for row in rows], 1),
                Column("total ms", [figures.milliseconds(row.total_ns) for row in rows]),
                Column("mean ms", times("mean_ns")),
                Column("std", times("std_ns"), 1),
                Column("min", times("min_ns"), 1),
                Column("max", times("max_ns"), 1),
                Column("share", [figures.percent(row.share, self.glyphs) for row in rows]),
                *columns.metric_columns([row if row.counters else None for row in rows], self.page, modelled=False),
            ],
            "Stages",
        )
        self.page.notes(["share of the iterations' time; a stage inside another (nms) is part of it"])

    def hottest(self) -> None:
        """The hottest layers, what the others took, and the whole."""
        document, glyphs = self.document, self.glyphs
        rows = self.page.hottest()
        rest = [layer for layer in document.layers if layer.path not in set(document.hottest.layers)]
        sums = [layer for layer in (document.unattributed, document.inference) if layer is not None]
        header, names = self.page.names(rows)
        below: list[Layer | None] = [*sums]
        below_names = [document.whole if layer is document.inference else layer.path for layer in sums]
        if rest:
            below, below_names = [None, *below], [f"{plural(len(rest), 'other layer')}", *below_names]
        every: list[Layer | None] = [*rows, *below]
        rest_share = sum(layer.share or 0 for layer in rest)
        shares = [rest_share if row is None else row.share for row in every]
        bars = [*_bars([row.share for row in rows], glyphs), *("" for _ in below)]
        later = 0 if self.page.metrics is None else choice.AFTER_CHOSEN
        metrics = columns.metric_columns(every, self.page)

        def layer() -> Column:
            return Column(header, [*names, *below_names], right=False, least=PATH)

        shown = self.page.table(
            [
                layer(),
                Column("type", [row.type or "" if row else "" for row in every], later + 3, right=False, least=9),
                Column("calls", ["" if row is None else _count(row.calls, glyphs) for row in every], later + 13),
                Column("time ms", ["" if row is None else figures.time_with_spread(row.time, glyphs) for row in every]),
                Column("share", [figures.percent(share, glyphs) for share in shares], later),
                Column("", bars, later + 8, right=False),
                Column("MACs", ["" if row is None else _macs(row.macs, glyphs) for row in every], later + 1),
                *metrics,
                *kernels.layer_columns(every, self.page, later),
                Column(
                    "output",
                    [row.output_shapes or "" if row else "" for row in every],
                    later + 15,
                    right=False,
                    least=12,
                ),
            ],
            f"Hottest layers by {document.hottest.sort} ({len(rows)} of {len(document.layers)})",
            footer_rows=len(below),
        )
        if self.page.metrics is not None:
            while left := [column for column in metrics if column not in shown]:
                further = self.page.table([layer(), *left], "The same layers: further metrics", footer_rows=len(below))
                if len(further) < 2:
                    break
                shown += further
        self.page.notes(
            [self._repetitions(), *columns.footnotes(shown, self.page), *kernels.layer_notes(shown, self.page)]
        )

    def layer_types(self) -> None:
        """Time per layer type."""
        rows: list[LayerType] = self.document.layer_types
        glyphs = self.glyphs
        self.page.table(
            [
                Column("type", [row.type for row in rows], right=False, least=12),
                Column("layers", ["" if row.layers is None else str(row.layers) for row in rows]),
                Column("calls", [_count(row.calls, glyphs) for row in rows], 13),
                Column("time ms", [figures.time_with_spread(row.time, glyphs) for row in rows]),
                Column("share", [figures.percent(row.share, glyphs) for row in rows]),
                Column("", _bars([row.share for row in rows], glyphs), 8, right=False),
                Column("MACs", [_macs(row.macs, glyphs) for row in rows], 1),
                *columns.metric_columns(rows, self.page),
            ],
            "Time per layer type",
        )

    def operators(self) -> None:
        """The top operators of the trace pass."""
        top = self.document.hottest.top
        rows: list[Operator] = self.document.operators[:top]
        glyphs = self.glyphs
        whole = sum(row.self_ns for row in self.document.operators)
        inclusive = [figures.percent(row.inclusive_ns / whole if whole else None, glyphs) for row in rows]
        self.page.table(
            [
                Column("operator", [row.name for row in rows], right=False, least=26),
                Column("input shapes", [row.input_shapes or "" for row in rows], right=False, least=32),
                Column("calls", [str(row.count) for row in rows]),
                Column("self", [figures.percent(row.share, glyphs) for row in rows]),
                Column("", _bars([row.share for row in rows], glyphs), 2, right=False),
                Column("inclusive", inclusive, 1),
                Column("self ms", [figures.milliseconds(row.self_ns) for row in rows], 4),
            ],
            f"Top operators by input shapes ({len(rows)} of {len(self.document.operators)})",
        )
        coverage = self.document.operators_coverage
        within = f"; operators cover {coverage:.0%} of its time" if coverage is not None else ""
        self.page.notes([f"share of all operators' self time in the trace pass, which is slower{within}"])

    def energy(self) -> None:
        """Joules and watts of the stages; dashes where the window is shorter than the meter can tell."""
        rows: list[Energy] = self.document.energy
        glyphs = self.glyphs
        vague = [row.joules_error is None or row.joules_error >= row.joules for row in rows]

        def known(texts: Sequence[str]) -> list[str]:
            return [glyphs.dash if hidden else text for text, hidden in zip(texts, vague, strict=True)]

        self.page.table(
            [
                Column("zone", [row.zone for row in rows], right=False, least=8),
                Column("stage", [row.stage for row in rows], right=False, least=11),
                Column("J", known([_with_error(row.joules, row.joules_error, glyphs) for row in rows])),
                Column("W", known([_with_error(row.watts, row.watts_error, glyphs) for row in rows])),
                Column("J/iteration", known([figures.three_digits(row.joules_per_iteration) for row in rows]), 1),
                Column("J above idle", known([_optional(row.joules_above_idle, glyphs) for row in rows]), 2),
                Column("idle W", [_optional(row.idle_watts, glyphs) for row in rows], 3),
            ],
            "Energy of the whole machine",
        )
        notes = ["the error bounds the meter's refresh and reading interval at every stage edge"]
        if any(vague):
            notes.append(f"{glyphs.dash} not resolved: the error is larger than the value. Remedy: more iterations")
        if all(row.idle_watts is None for row in rows):
            notes.append("no idle baseline: the idle machine's power is in the figures")
        self.page.notes(notes)

    def _repetitions(self) -> str:
        record = next((found for found in self.document.passes if found.name == self.document.figures_from), None)
        if record is None:
            return ""
        spread = f"time: median {self.glyphs.plus_minus} median absolute deviation"
        if not record.timed:
            return f"{spread} of {plural(record.counted, 'iteration')} that count layers"
        sets = len(record.event_sets)
        turns = f", {sets} event sets in turn" if sets > 1 else ""
        counts = f"; counts: median of {record.counted} that count them{turns}" if record.counted else ""
        return f"{spread} of {plural(record.timed, 'iteration')} that only time layers{counts}"


def _stage_name(stage: Stage) -> str:
    return f"  {stage.name}" if stage.inside else stage.name


def _count(calls: float | None, glyphs: Glyphs) -> str:
    return glyphs.dash if calls is None else f"{calls:g}"


def _macs(macs: int | None, glyphs: Glyphs) -> str:
    return figures.amount(macs or None, glyphs)


def _bars(shares: Sequence[float | None], glyphs: Glyphs) -> list[str]:
    """Bars in proportion to the largest share."""
    largest = max((share for share in shares if share is not None), default=0.0)
    return [figures.bar(share / largest if share and largest else 0.0, BAR, glyphs) for share in shares]


def _optional(value: float | None, glyphs: Glyphs) -> str:
    return glyphs.dash if value is None else figures.three_digits(value)


def _with_error(value: float | None, error: float | None, glyphs: Glyphs) -> str:
    if value is None or error is None:
        return glyphs.dash
    return f"{figures.three_digits(value)} {glyphs.plus_minus}{figures.three_digits(error)}"
