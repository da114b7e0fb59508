"""What ``hwprof report --roofline`` prints: the roofs over the operational intensity, layers as marks, and a table of
these."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from rich.text import Text

from hwprof.analysis.roofline import COMPUTE, LATENCY, LEVELS, OVERHEAD, WAITING
from hwprof.report.document.hot_roofline import HotRoofline
from hwprof.report.document.roofline import Roofline, UnderRoofs
from hwprof.report.text import figures, roofline
from hwprof.report.text.grid import Column
from hwprof.report.text.layers import are_of_means
from hwprof.report.text.log_plot import LABEL, Axis, LogPlot
from hwprof.report.text.page import PATH, Page

MARKS: Final = "123456789abcdefghijkmnpqrstuvwxyz"
"""No l and no o: one looks like a 1, the other like the mark of all further layers."""

WIDEST: Final = 120
ROWS: Final = 17
ROWS_WIDE: Final = 22

BEYOND: Final = 1.6
"""How far axes reach beyond what is drawn."""

LEAST_HEIGHT: Final = 20
"""Of the roof over the lowest that is drawn, so that slopes are seen."""

LOWEST: Final = 1e-4
"""Of the FP32 roof: layers with less are not drawn, or all others would be in a corner."""

FARTHEST: Final = 1e3
"""Of the intensity at which the slowest level's slope meets the roof, and the other way round of the fastest one's."""

STYLES: Final = {COMPUTE: "bold green", LATENCY: "bold magenta", WAITING: "bold blue", OVERHEAD: "bold blue"}
BANDWIDTH: Final = "bold yellow"
ROOF: Final = "cyan"
LIBRARY: Final = "dim cyan"


class Drawn(NamedTuple):
    """Of the layers in the table: by path the mark, and how many have none."""

    marks: dict[str | None, str]
    without: int = 0  # operations or bytes
    far: int = 0  # below the roofs
    hidden: int = 0  # behind others


def show(found: HotRoofline, page: Page) -> None:
    """The plot where any layer has operations and bytes, and the table."""
    part = found.roofline
    page.console.print(Text(f"run {found.run}, {roofline.in_words(part, page)}"))
    drawn = _draw(found, found.level, page) if found.level is not None else None
    _table(found, drawn.marks if drawn is not None else {}, page)
    rates = ["ms, share: of mean times; GFLOP/s, of roof: by median times"] if are_of_means(page) else []
    page.notes([*_notes(found, drawn, page), *rates, *roofline.notes(part)])


def _draw(found: HotRoofline, level: str, page: Page) -> Drawn:
    """Prints the plot."""
    part = found.roofline
    every = [(number, one, _place(one, level)) for number, one in enumerate([*part.rows, *found.others])]
    x, y = _axes(part, [place for _, _, place in every if place is not None])
    columns = min(page.console.width, WIDEST) - LABEL - 1
    plot = LogPlot(columns, ROWS_WIDE if page.wide else ROWS, x, y, page.glyphs)
    _roofs(plot, part)
    marks: dict[str | None, str] = {}
    left: Counter[str] = Counter()
    for number, one, place in every:
        listed = number < len(part.rows)
        mark = MARKS[len(marks)] if listed and len(marks) < len(MARKS) else ""
        if place is None or plot.cell(*place) is None:
            left["without" if place is None else "far"] += listed
        elif not plot.mark(*place, mark or page.glyphs.point, _style(one), move=bool(mark)):
            left["hidden"] += bool(mark)
        elif mark:
            marks[one.path] = mark
    page.console.print()
    page.console.print(plot.text(f"FLOP/byte of {level}", "GFLOP/s"))
    return Drawn(marks, **left)


def _place(one: UnderRoofs, level: str) -> tuple[float, float] | None:
    """Intensity and rate; None without operations, or bytes of that level."""
    intensity = one.intensity.get(level)
    return (intensity, one.gflops) if intensity and one.gflops else None


def _axes(part: Roofline, places: Sequence[tuple[float, float]]) -> tuple[Axis, Axis]:
    """With all of these on them, and where the slopes meet the roof; but for those that are far away."""
    ridges = [part.fp32_gflops / gbytes for gbytes in part.level_gbytes.values()]
    least, most = min(ridges) / FARTHEST, max(ridges) * FARTHEST
    near = [(x, y) for x, y in places if least <= x <= most and y >= part.fp32_gflops * LOWEST]
    xs = [*(x for x, _ in near), *ridges]
    ys = [*(y for _, y in near), part.fp32_gflops / LEAST_HEIGHT]
    return Axis(min(xs) / BEYOND, max(xs) * BEYOND), Axis(min(ys) / BEYOND, part.fp32_gflops * BEYOND)


def _roofs(plot: LogPlot, part: Roofline) -> None:
    """The slopes with their names where they enter the plot, one in a row; the ceilings with theirs at their ends."""
    peak = part.fp32_gflops
    slopes = {level: part.level_gbytes[level] for level in LEVELS if level in part.level_gbytes}
    plot.line((peak / max(slopes.values()), peak), (plot.x.high, peak), ROOF)
    _name(plot, f"FP32 {figures.three_digits(peak)}", peak)
    if part.gemm_gflops is not None:
        begin = max(part.gemm_gflops / max(slopes.values()), plot.x.low)
        plot.line((begin, part.gemm_gflops), (plot.x.high, part.gemm_gflops), LIBRARY, every=3)
        _name(plot, f"GEMM {figures.three_digits(part.gemm_gflops)}", part.gemm_gflops)
    for level, gbytes in slopes.items():
        plot.line((plot.x.low, gbytes * plot.x.low), (peak / gbytes, peak), ROOF)
        for row in range(plot.rows - 2, 0, -1):
            x = plot.y.value(plot.rows - row - 0.5, plot.rows) / gbytes
            column = int(plot.x.place(x, plot.columns)) if x > plot.x.low else -1
            if column >= 1 and x * gbytes < peak and plot.label(level, column, row, ROOF):
                break


def _name(plot: LogPlot, text: str, gflops: float) -> None:
    """At the right end of a ceiling, on it."""
    cell = plot.cell(plot.x.high, gflops)
    if cell is not None:
        plot.label(text, plot.columns - len(text), cell[1], ROOF)


def _style(one: UnderRoofs) -> str:
    return STYLES.get(one.bound, BANDWIDTH if one.bound.endswith("bandwidth") else "bold")


def _table(found: HotRoofline, marks: dict[str | None, str], page: Page) -> None:
    part, glyphs, level = found.roofline, page.glyphs, found.level or ""
    rows = [*([part.whole] if part.whole is not None else []), *part.rows]
    intensities = [one.intensity.get(level) for one in rows]
    of_means = are_of_means(page)  # as the shares beside them
    means = _means_ns(page)
    taken = [means.get(one.path) if of_means else one.time_ns for one in rows]
    page.table(
        [
            Column("mark", [marks.get(one.path, "") for one in rows], right=False),
            Column("layer", [one.path or found.whole for one in rows], right=False, least=PATH, among=page.paths),
            Column(
                "mean ms" if of_means else "ms",
                [glyphs.dash if one is None else figures.milliseconds(one) for one in taken],
                1,
            ),
            Column("share", [figures.percent(one.share, glyphs) for one in rows], 3),
            Column("GFLOP/s", [roofline.rate(one, page) for one in rows], 1),
            Column("FLOP/B", [glyphs.dash if one is None else figures.three_digits(one) for one in intensities], 2),
            Column("of roof", [figures.percent(one.share_of_roof, glyphs) for one in rows]),
            Column("bound", [one.bound for one in rows], right=False),
            Column("confidence", [one.confidence for one in rows], 4, right=False),
            Column("evidence", [one.evidence for one in rows], 3, right=False, least=16),
        ],
        f"Layers below the roofs ({len(part.rows)} of {len(part.rows) + len(found.others)})",
    )


def _means_ns(page: Page) -> dict[str | None, float]:
    """By path; None: the inference's."""
    known = [*((layer.path, layer.time) for layer in page.layers), (None, page.whole.time if page.whole else None)]
    return {path: time.mean_ns for path, time in known if time is not None}


def _notes(found: HotRoofline, drawn: Drawn | None, page: Page) -> list[str]:
    """What is drawn, and what is not."""
    rows, level = found.roofline.rows, found.level
    if drawn is None or level is None:
        return ["not drawn: no layer has both operations and bytes (hwprof explain roofline)"]
    sources = sorted({one.bytes_from[level] for one in rows if level in one.bytes_from})
    legend = f"{page.glyphs.point}: further layers; what shares a place stands side by side; bytes of {level}: "
    reasons = {
        "without operations or bytes": drawn.without,
        "far below the roofs": drawn.far,
        "behind others": drawn.hidden,
    }
    left = [f"{number} {why}" for why, number in reasons.items() if number]
    return [legend + figures.enumerate_words(sources), f"not drawn: {', '.join(left)}" if left else ""]
