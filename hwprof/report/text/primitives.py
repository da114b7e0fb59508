"""The section on oneDNN's primitives: where it fell back, what bypassed it, layout changes, and what hot layers ran."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Final

from rich.padding import Padding
from rich.text import Text

from hwprof.report.document.layers import Layer
from hwprof.report.document.primitives import REORDER, Bypass, Fallback, Primitive, Primitives, Reorders
from hwprof.report.text import figures, kernel_cells, roofline
from hwprof.report.text.figures import plural
from hwprof.report.text.footnotes import of_columns
from hwprof.report.text.grid import Column
from hwprof.report.text.page import PATH, Page

NAMES: Final = 3
"""How many layers of a finding are named; JSON and CSV have all."""

SMALL: Final = 0.001
"""Findings of a smaller share of the whole are left out of the text."""

FEW_REORDERS: Final = 0.02
"""Of the CPU time: where samples say that reorders take less, there is nothing to gain."""

TITLE: Final = "oneDNN primitives"

MS: Final = "ms"
OF_LAYER: Final = "of layer"
REORDERS: Final = "reorders"

LAYOUTS: Final = 30
PROBLEM: Final = 30
"""To how many characters layouts and problems may be cut."""


def show(page: Page) -> None:
    """The section, where oneDNN reported."""
    found = page.part(Primitives)
    if found is None or not (found.executed or found.bypasses):
        return
    version = (found.version or "").partition(" ")[0]  # the commit follows
    page.title(f"oneDNN {version} primitives" if version else TITLE)
    fallbacks = [fallback for fallback in found.fallbacks if _matters(fallback)]
    for fallback in fallbacks:
        what = f"{fallback.primitive} by {fallback.implementation}, {fallback.kind}"
        why = f"why: {fallback.reason}"
        _item(page, "warning: ", f"{what}: {_extent(fallback, found, page)}", why, _remedy(fallback.remedy))
    if not fallbacks and found.executed:
        narrower = f", none narrower than {found.vector_bits} bits" if found.vector_bits else ""
        _item(page, "", f"no reference, plain or generic implementation{narrower}")
    told: set[str | None] = set()
    for bypass in found.bypasses:
        if bypass.reason is not None and _matters(bypass):
            why = f"why: {bypass.reason}"
            _item(
                page, "", f"{bypass.type} without oneDNN: {_extent(bypass, found, page)}", why, _remedy(bypass.remedy)
            )
            told.add(bypass.type)
    _reorders(found, page)
    _not_joined(found, page)
    page.console.print()
    table(found, page, told)


def show_hottest(page: Page) -> None:
    """What concerns the page's hottest layers alone, where it is about these: its findings, and what they executed."""
    found = page.part(Primitives)
    if found is None:
        return
    paths = {layer.path for layer in page.hottest()}
    fallbacks = [fallback for fallback in found.fallbacks if paths & set(fallback.layers)]
    bypasses = [bypass for bypass in found.bypasses if bypass.reason is not None and paths & set(bypass.layers)]
    if not (fallbacks or bypasses or any(row.layer in paths for row in found.by_layer)):
        return
    page.title(TITLE)
    for fallback in fallbacks:
        what = f"{fallback.primitive} by {fallback.implementation}, {fallback.kind}"
        _item(page, "warning: ", what, f"why: {fallback.reason}", _remedy(fallback.remedy))
    for bypass in bypasses:
        _item(page, "", f"{bypass.type} without oneDNN", f"why: {bypass.reason}", _remedy(bypass.remedy))
    table(found, page, {bypass.type for bypass in bypasses})


def _matters(found: Fallback | Bypass | Reorders) -> bool:
    return found.share is None or found.share >= SMALL


def _extent(one: Fallback | Bypass, found: Primitives, page: Page) -> str:
    """How much it is, and in which layers most."""
    layers = one.layers
    more = f" and {len(layers) - NAMES} more" if len(layers) > NAMES else ""
    names = f"{', '.join(layers[:NAMES])}{more}"
    return f"{_of_whole(one.time_ns, one.share, found, page)} in {plural(len(layers), 'layer')} ({names})"


def _of_whole(time_ns: int, share: float | None, found: Primitives, page: Page) -> str:
    """Of one iteration, and of which: those in which oneDNN reported, which makes the whole longer than others have
    it."""
    reported = plural(found.iterations, "reported iteration")
    whole = f"{page.document.whole} in {reported} of pass {found.pass_name}"
    part = "" if share is None else f", {figures.percent(share, page.glyphs)} of the {whole},"
    return f"{figures.milliseconds(time_ns)} ms per iteration{part}"


def _reorders(found: Primitives, page: Page) -> None:
    """What changing layouts took of the processor time, by samples, and by tensor of oneDNN's own clock."""
    rows = found.reorders
    if not rows:
        return
    parts = [f"{row.tensor or 'other tensors'} {figures.milliseconds(row.time_ns)} ms" for row in rows]
    executions = plural(sum(row.executions for row in rows), "time")
    by_remedy: dict[str, list[str]] = {}
    for row in rows:
        if row.remedy is not None and row.tensor is not None and _matters(row):
            by_remedy.setdefault(row.remedy, []).append(row.tensor)
    remedies = [f"Try ({figures.enumerate_words(names)}): {remedy}" for remedy, names in by_remedy.items()]
    clock = f"{figures.milliseconds(sum(row.time_ns for row in rows))} ms per iteration by oneDNN's clock"
    whole = next((one for one in found.sampled_reorders if one.path is None), None)
    if whole is None:
        _item(page, "", f"reorders: {clock}, {executions}: {', '.join(parts)}", *remedies)
        return
    share = f"{kernel_cells.share(whole, page.glyphs)} of CPU time by samples of pass {found.sampled_from}"
    below = f"{clock}, elapsed: with waiting, preemption and page faults, {executions}: {', '.join(parts)}"
    _item(page, "", f"reorders: {share}", below, *(remedies if whole.share_high >= FEW_REORDERS else ()))


def _not_joined(found: Primitives, page: Page) -> None:
    left = found.executed - found.joined
    if left:
        reasons = ", ".join(f"{number} {reason}" for reason, number in found.not_joined.items())
        _item(page, "", f"{left} of {plural(found.executed, 'primitive')} in no layer: {reasons}")


def _remedy(remedy: str | None) -> str:
    return f"Try: {remedy}" if remedy is not None else ""


def _item(page: Page, mark: str, text: str, *below: str) -> None:
    """A finding, and what is said below it; empty ones of that are left out."""
    page.console.print(Padding(Text.assemble((mark, "bold red"), text, overflow="fold"), (0, 0, 0, 2)))
    for line in below:
        if line:
            page.console.print(Padding(Text(line, overflow="fold"), (0, 0, 0, 4)))


def table(found: Primitives, page: Page, told: Collection[str | None]) -> None:
    """One row for each primitive of the hottest layers that computes, with its layer's share of samples in reorders
    beside; the reorders of a single layer in rows of their own. ``told``: types of which stands above why they have
    none."""
    layers, glyphs = page.hottest(), page.glyphs
    executed: dict[str, list[Primitive]] = {layer.path: [] for layer in layers}
    for row in found.by_layer:
        executed.get(row.layer, []).append(row)
    names = [layer.path for layer in layers]
    moving = {one.path: kernel_cells.share(one, glyphs) for one in found.sampled_reorders}
    shown: list[tuple[str, Primitive, str]] = []
    for name, own in zip(names, executed.values(), strict=True):
        computing = [row for row in own if row.primitive != REORDER]
        moved = moving.get(name, glyphs.dash)
        for number, row in enumerate(own if len(layers) == 1 else computing or own):
            shown.append(("" if number else name, row, "" if number else moved))
    rows = [row for _, row, _ in shown]
    known = any(layer.path in moving for layer in layers)
    reorders = [Column(REORDERS, [moved for _, _, moved in shown])] if known else []
    visible: list[Column] = []
    if rows:
        visible = page.rows(
            [
                Column("layer", [name for name, _, _ in shown], right=False, least=PATH, among=page.paths),
                Column("primitive", [_kind(row) for row in rows], 1, right=False),
                Column("implementation", [row.implementation for row in rows], right=False),
                Column("data", [_data_types(row.data_types) for row in rows], 2, right=False),
                Column("layouts: src wei dst", [_layouts(row) for row in rows], 4, right=False, least=LAYOUTS),
                Column("problem", [row.problem for row in rows], 6, right=False, least=PROBLEM),
                Column("runs", [str(row.executions) for row in rows], 5),
                Column(MS, [figures.milliseconds(row.time_ns) for row in rows], 3),
                Column(OF_LAYER, [figures.percent(row.share, glyphs) for row in rows]),
                *roofline.of_code([row.roofline for row in rows], page, 1),
                *reorders,
            ]
        )
    called = {path for bypass in found.bypasses for path in bypass.layers}
    bare = [layer for layer in layers if not executed[layer.path] and layer.path in called]
    without = [_without(bare, len(layers)), *_reasons({layer.type for layer in bare} - set(told), found)]
    moved_of = of_columns(
        visible,
        {REORDERS: f"{REORDERS}: of the layer's CPU time, by samples, {glyphs.plus_minus} half the 95% interval"},
    )
    below = [_times(visible, found), moved_of, roofline.code_note(visible), "all layers: primitives.csv, --format json"]
    page.notes([*without, *below] if rows else without if len(layers) > 1 else [])


def _reasons(types: Collection[str | None], found: Primitives) -> list[str]:
    """Why layers of these types have no row, where that is known; types with one reason share a line."""
    by_reason: dict[str, list[str]] = {}
    for bypass in found.bypasses:
        if bypass.type in types and bypass.reason is not None:
            by_reason.setdefault(bypass.reason, []).append(bypass.type or "")
    return [f"{figures.enumerate_words(names)}: {reason}" for reason, names in by_reason.items()]


def _times(shown: Sequence[Column], found: Primitives) -> str:
    """Which times the columns hold."""
    iteration = _iteration(found)
    whose = (
        "in the same iteration" if any(one.header == MS for one in shown) else f"elapsed by oneDNN's clock, {iteration}"
    )
    return of_columns(shown, {MS: f"{MS}: oneDNN's own, {iteration}", OF_LAYER: f"{OF_LAYER}: {whose}"})


def _without(layers: Sequence[Layer], of: int) -> str:
    """How many of so many layers were called and have no row, by type."""
    if not layers:
        return ""
    types = Counter(layer.type or "of unknown type" for layer in layers)
    named = figures.enumerate_words([f"{number} {name}" for name, number in types.most_common()])
    return f"without primitives, of these {plural(of, 'layer')}: {named}"


def _kind(row: Primitive) -> str:
    return f"{row.primitive} ({row.tensor})" if row.tensor is not None else row.primitive


def _iteration(found: Primitives) -> str:
    which = "" if found.iterations < 2 else f"median of {found.iterations} iterations, "
    return f"{which}pass {found.pass_name}"


def _data_types(data_types: str) -> str:
    """One type for all tensors, or each with its tensor."""
    by_tensor = dict(part.split(":", 1) for part in data_types.split() if ":" in part)
    return next(iter(by_tensor.values())) if len(set(by_tensor.values())) == 1 else data_types


def _layouts(row: Primitive) -> str:
    """Those of what goes in, of the weights and of what comes out."""
    by_tensor = dict(part.split(":", 1) for part in row.layouts.split() if ":" in part)
    return " ".join(by_tensor[name] for name in ("src", "wei", "dst") if name in by_tensor)
