"""The section on oneDNN's primitives: where it fell back, what bypassed it, layout changes, and what hot layers ran."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.padding import Padding
from rich.text import Text

from hwprof.analysis.reorders import REORDER
from hwprof.report import figures
from hwprof.report.figures import plural
from hwprof.report.grid import Column
from hwprof.report.page import PATH, Page
from hwprof.report.primitives_schema import Bypass, Fallback, Primitive, Primitives, Reorders

NAMES: Final = 3
"""How many layers of a finding are named; JSON and CSV have all."""

SMALL: Final = 0.001
"""Findings of a smaller share of the whole are left out of the text."""

LAYOUT: Final = 18
PROBLEM: Final = 30


def show(page: Page) -> None:
    """The section, where oneDNN reported."""
    found = page.document.primitives
    if found is None or not (found.executed or found.bypasses):
        return
    page.title("oneDNN primitives" + (f" ({found.version})" if found.version else ""))
    if not any(fallback.share is None or fallback.share >= SMALL for fallback in found.fallbacks):
        bits = f" or to vectors shorter than the processor's {found.vector_bits} bits" if found.vector_bits else ""
        _item(page, "", f"no primitive fell back to reference, plain or generic code{bits}")
    for fallback in found.fallbacks:
        _fallback(fallback, page)
    for bypass in found.bypasses:
        _bypass(bypass, page)
    _reorders(found.reorders, page)
    _not_joined(found, page)
    _table(found, page)


def _fallback(found: Fallback, page: Page) -> None:
    if found.share is not None and found.share < SMALL:
        return
    told = f"{found.primitive} by {found.implementation} ({found.kind}): {_part(found.layers, found, page)}"
    _item(page, "warning: ", f"{told}: {found.reason}", found.remedy)


def _bypass(found: Bypass, page: Page) -> None:
    if found.reason is None or (found.share is not None and found.share < SMALL):
        return
    of_type = f"{found.type} without oneDNN: {_part(found.layers, found, page)}"
    _item(page, "", f"{of_type}: {found.reason}", found.remedy)


def _part(layers: Sequence[str], found: Fallback | Bypass, page: Page) -> str:
    """How much it is, and in which layers most."""
    more = f" and {len(layers) - NAMES} more" if len(layers) > NAMES else ""
    names = f"{', '.join(layers[:NAMES])}{more}"
    share = (
        "" if found.share is None else f" ({figures.percent(found.share, page.glyphs)} of the {page.document.whole})"
    )
    return f"{figures.milliseconds(found.time_ns)} ms{share} in {plural(len(layers), 'layer')}, {names}"


def _reorders(found: Sequence[Reorders], page: Page) -> None:
    """The time that went into changing layouts, by tensor."""
    if not found:
        return
    share = sum(row.share or 0.0 for row in found)
    whole = f"{figures.percent(share, page.glyphs)} of the {page.document.whole}"
    executions = plural(sum(row.executions for row in found), "reorder")
    parts = [f"{row.tensor or 'other tensors'} {figures.milliseconds(row.time_ns)} ms" for row in found]
    time_ms = figures.milliseconds(sum(row.time_ns for row in found))
    by_remedy: dict[str, list[str]] = {}
    for row in found:
        if row.remedy is not None and (row.share or 0.0) >= SMALL:
            by_remedy.setdefault(row.remedy, []).append(row.tensor or "")
    remedies = [f"{figures.enumerate_words(tensors)}: {remedy}" for remedy, tensors in by_remedy.items()]
    _item(page, "", f"changing layouts: {time_ms} ms ({whole}) in {executions}: {', '.join(parts)}", *remedies)


def _not_joined(found: Primitives, page: Page) -> None:
    left = found.executed - found.joined
    if left:
        reasons = ", ".join(f"{number} {reason}" for reason, number in found.not_joined.items())
        _item(page, "", f"{left} of {plural(found.executed, 'primitive')} belong to no layer for certain: {reasons}")


def _item(page: Page, mark: str, text: str, *remedies: str | None) -> None:
    line = Text.assemble((mark, "bold red"), text, overflow="fold")
    page.console.print(Padding(line, (0, 0, 0, 2)))
    for remedy in remedies:
        if remedy:
            page.console.print(Padding(Text(f"remedy: {remedy}", overflow="fold"), (0, 0, 0, 4)))


def _table(found: Primitives, page: Page) -> None:
    """One row for each primitive of the hottest layers that computes; reorders are summed beside."""
    layers = page.hottest()
    by_layer: dict[str, list[Primitive]] = {layer.path: [] for layer in layers}
    moved: dict[str, float] = {}
    for row in found.by_layer:
        if row.primitive == REORDER:
            moved[row.layer] = moved.get(row.layer, 0.0) + row.share
        elif row.layer in by_layer:
            by_layer[row.layer].append(row)
    header, names = page.names(layers)
    cells: list[tuple[str, str, Primitive | None]] = []
    for path, name in zip(by_layer, names, strict=True):
        rows: list[Primitive | None] = [*by_layer[path]]
        cells += [(name if not number else "", path, row) for number, row in enumerate(rows or [None])]
    if not any(row is not None for _, _, row in cells):
        return
    glyphs = page.glyphs
    rows = [row for _, _, row in cells]
    reorders = [moved.get(path) if name else None for name, path, _ in cells]
    page.console.print()
    page.rows(
        [
            Column(header, [name for name, _, _ in cells], right=False, least=PATH),
            Column("primitive", [row.primitive if row else glyphs.dash for row in rows], 1, right=False),
            Column("implementation", [row.implementation if row else glyphs.dash for row in rows], right=False),
            Column("data", [_data_types(row.data_types) if row else "" for row in rows], 2, right=False),
            Column(
                "layouts: src wei dst", [_layouts(row) if row else "" for row in rows], 4, right=False, least=LAYOUT
            ),
            Column("problem", [row.problem if row else "" for row in rows], 6, right=False, least=PROBLEM),
            Column("runs", [str(row.executions) if row else "" for row in rows], 5),
            Column("ms", [figures.milliseconds(row.time_ns) if row else "" for row in rows], 3),
            Column("of layer", [figures.percent(row.share, glyphs) if row else "" for row in rows]),
            Column("reorders", ["" if share is None else figures.percent(share, glyphs) for share in reorders]),
        ]
    )
    page.notes(
        [
            "oneDNN's own times, of one iteration of the trace pass in which it reported them; shares of the layer's"
            f" time in it; {glyphs.dash} the layer executed no primitive",
            "all layers: primitives.csv, and the report with --format json",
        ]
    )


def _data_types(told: str) -> str:
    """One type for all tensors, or each with its tensor."""
    by_tensor = dict(part.split(":", 1) for part in told.split() if ":" in part)
    return next(iter(by_tensor.values())) if len(set(by_tensor.values())) == 1 else told


def _layouts(row: Primitive) -> str:
    """Those of what goes in, of the weights and of what comes out."""
    by_tensor = dict(part.split(":", 1) for part in row.layouts.split() if ":" in part)
    return " ".join(by_tensor[name] for name in ("src", "wei", "dst") if name in by_tensor)
