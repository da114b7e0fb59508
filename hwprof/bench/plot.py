"""A bench as a picture: latency against the model's size, and how images a second grow with batch and threads."""

from __future__ import annotations

import io
from collections.abc import Callable, Hashable, Sequence
from importlib.util import find_spec
from typing import Any, Final

from hwprof.bench.rows import Row
from hwprof.printable import one_line

LIBRARY: Final = "matplotlib"
INCHES: Final = (5.5, 4.0)
"""Of one panel."""

MOST_LABELS: Final = 40


def drawing(rows: Sequence[Row]) -> str | None:
    """SVG; None without the library, or where nothing was measured."""
    measured = [row for row in rows if row.forward_ns is not None]
    if not measured or find_spec(LIBRARY) is None:
        return None
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    scaling = [name for name in ("threads", "batch") if len({getattr(row, name) for row in measured}) > 1]
    with mpl.rc_context({"svg.hashsalt": "hwprof", "svg.fonttype": "none"}):  # the same bytes each time
        figure = Figure(figsize=(INCHES[0] * (1 + len(scaling)), INCHES[1]), layout="constrained")
        FigureCanvasSVG(figure)
        axes = figure.subplots(1, 1 + len(scaling), squeeze=False)[0]
        _latency(axes[0], measured)
        for one, name in zip(axes[1:], scaling, strict=True):
            _scaling(one, measured, name)
        written = io.StringIO()
        figure.savefig(written, format="svg", metadata={"Date": None})
    text = written.getvalue()
    return text[text.index("<svg") :]


def _latency(axes: Any, rows: Sequence[Row]) -> None:
    for variant, some in _grouped(rows, lambda row: row.variant):
        known = [row for row in some if row.parameters and row.forward_ns]
        axes.plot(
            [row.parameters / 1e6 for row in known if row.parameters],
            [row.forward_ns / 1e6 for row in known if row.forward_ns],
            "o",
            label=_text(variant),
        )
    several = [name for name in ("imgsz", "batch", "threads") if len({getattr(row, name) for row in rows}) > 1]
    for row in list(rows)[:MOST_LABELS]:
        if row.parameters and row.forward_ns:
            told = _text(" ".join([row.model, *(f"{name} {getattr(row, name)}" for name in several)]))
            at = (row.parameters / 1e6, row.forward_ns / 1e6)
            axes.annotate(told, at, fontsize=7, xytext=(3, 3), textcoords="offset points")
    axes.set(xlabel="parameters, millions", ylabel="median of a forward, ms", xscale="log", yscale="log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.legend(fontsize=8)


def _scaling(axes: Any, rows: Sequence[Row], name: str) -> None:
    """A line for each model and variant with several of them, all else the same."""
    others = [one for one in ("threads", "batch", "imgsz") if one != name]
    lines = _grouped(rows, lambda row: (row.model, row.variant, *(getattr(row, one) for one in others)))
    several = {one for one in others if len({getattr(row, one) for row in rows}) > 1}
    for key, some in lines:
        if len(some) < 2:
            continue
        ordered = sorted(some, key=lambda row: getattr(row, name))
        further = [f"{one} {value}" for one, value in zip(others, key[2:], strict=True) if one in several]
        x, y = ([getattr(row, what) for row in ordered] for what in (name, "images_per_s"))
        axes.plot(x, y, "o-", label=_text(" ".join([key[0], key[1], *further])))
    axes.set(xlabel=name, ylabel="images/s", xscale="log")
    axes.set_xticks(sorted({getattr(row, name) for row in rows}), minor=False)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.minorticks_off()
    if axes.lines:
        axes.legend(fontsize=7)


def _grouped(rows: Sequence[Row], key: Callable[[Row], Any]) -> list[tuple[Any, list[Row]]]:
    found: dict[Hashable, list[Row]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return list(found.items())


def _text(name: str) -> str:
    """No mathematics of matplotlib's: names come from outside."""
    return one_line(name).replace("$", r"\$")
