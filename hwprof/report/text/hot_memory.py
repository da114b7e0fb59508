"""What ``hwprof report --memory`` prints: the process, its allocator, and the layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.text import Text

from hwprof.report.document.hot_memory import HotMemory
from hwprof.report.document.memory import LayerMemory, Memory, ModuleMemory
from hwprof.report.document.series import SeriesSummary
from hwprof.report.text import figures, memory
from hwprof.report.text.grid import Column
from hwprof.report.text.page import PATH, Page

UNSEEN: Final = "{}: threads of the model's own worked there: nobody sees what they allocate"


def show(found: HotMemory, page: Page) -> None:
    """Layers with new pages first."""
    part = found.memory
    page.console.print(Text(f"run {found.run}, pass {part.pass_}"))
    page.notes([memory.of_whole(part, page), *memory.fresh(part, page), *_settings(part)])
    of_layers(part.rows, page, f"Layers: memory that torch allocates in an iteration of the {found.whole}")
    if part.missing_layers is not None:
        page.notes([f"no memory by layer: {part.missing_layers.reason}"])
    _series(found.series, page)


def of_layers(rows: Sequence[LayerMemory | ModuleMemory], page: Page, title: str) -> None:
    """A row a layer, or a module with all that is in it; none of those that have nothing to do with memory."""
    rows = [row for row in rows if row.allocated_bytes != 0 or row.freed_bytes != 0 or _touches(row)]
    if not rows:
        return
    glyphs = page.glyphs
    layers = [row if isinstance(row, LayerMemory) else None for row in rows]

    def cells(values: Sequence[float | None]) -> list[str]:
        return [figures.amount(value, glyphs) for value in values]

    page.table(
        [
            Column("layer", [row.path for row in rows], right=False, least=PATH, among=page.paths),
            Column("type", [row.type or "" if row else "" for row in layers], 3, right=False, least=9),
            Column("allocated", cells([row.allocated_bytes for row in rows])),
            Column("kept", cells([row.kept_bytes for row in rows])),
            Column("peak", cells([row.peak_bytes for row in rows])),
            Column("faults", cells([row.faults if row else None for row in layers])),
            Column("fresh", [figures.percent(row.fresh if row else None, glyphs) for row in layers]),
            Column("largest", cells([row.largest_bytes for row in rows]), 1),
            Column("freed", cells([row.freed_bytes for row in rows]), 2),
            Column("allocations", cells([row.allocations for row in rows]), 4),
        ],
        title,
    )
    page.notes(
        [
            "bytes, of tensors; kept: not freed when the call ends; peak: of a call, above its begin",
            "freed: without blocks that live nearly as long as the pass was watched (hwprof explain freed)",
            "faults: of the median iteration",
            "fresh: new pages (page faults x page size) of what is allocated: memory that the process did not have",
            *([UNSEEN.format(glyphs.dash)] if any(row.allocated_bytes is None for row in rows) else []),
        ]
    )


def _touches(row: LayerMemory | ModuleMemory) -> bool:
    return isinstance(row, LayerMemory) and (row.faults or 0) >= 1


def _settings(part: Memory) -> list[str]:
    settings = ", ".join(f"{name}={value}" for name, value in part.settings.items())
    huge = f"huge pages: {part.huge_pages}" if part.huge_pages else ""
    return [text for text in (settings, huge) if text]


def _series(rows: Sequence[SeriesSummary], page: Page) -> None:
    if rows:
        glyphs = page.glyphs
        page.table(
            [
                Column("series", [row.series for row in rows], right=False, least=16),
                Column("pass", [row.pass_ for row in rows], 1, right=False),
                Column("unit", [row.unit for row in rows], right=False),
                Column("mean", [figures.reading(row.mean, glyphs) for row in rows]),
                Column("min", [figures.reading(row.min, glyphs) for row in rows]),
                Column("max", [figures.reading(row.max, glyphs) for row in rows]),
                Column("last", [figures.reading(row.last, glyphs) for row in rows], 1),
                Column("readings", [f"{row.readings:,}" for row in rows], 2),
            ],
            "The process and its allocator over time",
        )
