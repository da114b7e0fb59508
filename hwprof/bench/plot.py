"""A bench as a picture: latency against the model's size, and how images a second grow with batch and threads."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from typing import Any, Final

from hwprof.bench.matrix import EAGER
from hwprof.bench.rows import Row
from hwprof.c_compiler import NoLibraryError, own_cache_folder
from hwprof.printable import one_line
from hwprof.remedies import catalogue

LIBRARY: Final = "matplotlib"
FOLDER: Final = "MPLCONFIGDIR"
"""The variable that names the folder where the library keeps what it found of fonts."""

INCHES: Final = (5.5, 4.0)
"""Of one panel."""

GAP: Final = 1
"""Pixels between two labels."""

POINTS: Final = 72
"""Of an inch."""

MOST_LABELS: Final = 40
DECADES: Final = 20
"""How many times the least the largest is from which on an axis is logarithmic."""


def drawing(rows: Sequence[Row]) -> str | None:
    """SVG; None without the library, or where nothing was measured."""
    measured = [row for row in rows if row.forward_ns is not None]
    if not measured or find_spec(LIBRARY) is None:
        return None
    with _own_folder():
        import matplotlib as mpl
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure

    scaling = [name for name in ("threads", "batch") if len(_known(measured, name)) > 1]
    with mpl.rc_context({"svg.hashsalt": "hwprof", "svg.fonttype": "none"}):  # the same bytes each time
        figure = Figure(figsize=(INCHES[0] * (1 + len(scaling)), INCHES[1]), layout="constrained")
        FigureCanvasSVG(figure)
        axes = figure.subplots(1, 1 + len(scaling), squeeze=False)[0]
        labels = _latency(axes[0], measured)
        for one, name in zip(axes[1:], scaling, strict=True):
            _scaling(one, measured, name)
        _apart(figure, labels)
        written = io.StringIO()
        figure.savefig(written, format="svg", metadata={"Date": None})
    text = written.getvalue()
    return text[text.index("<svg") :]


@contextmanager
def _own_folder() -> Iterator[None]:
    """While the library is imported, it has its folder in hwprof's cache instead of the user's home, unless the user
    names one. What is measured later has the user's again."""
    if FOLDER in os.environ:
        yield
        return
    with ExitStack() as until_then:
        try:
            folder = str(own_cache_folder() / LIBRARY)
        except NoLibraryError:
            folder = until_then.enter_context(tempfile.TemporaryDirectory())
        os.environ[FOLDER] = folder
        try:
            yield
        finally:
            del os.environ[FOLDER]


def _latency(axes: Any, rows: Sequence[Row]) -> list[Any]:
    """The labels of its points."""
    for variant, some in _grouped(rows, lambda row: row.variant):
        known = [at for row in some if (at := _place(row)) is not None]
        axes.plot([x for x, _ in known], [y for _, y in known], "o", label=_text(variant))
    several = [name for name in ("imgsz", "batch", "threads") if len(_known(rows, name)) > 1]
    labels = []
    for row in list(rows)[:MOST_LABELS]:
        if (at := _place(row)) is not None:
            apart = [f"{name} {value}" for name in several if (value := getattr(row, name)) is not None]
            told = _text(" ".join([row.model, *apart]))
            labels.append(axes.annotate(told, at, fontsize=7, xytext=(3, 3), textcoords="offset points"))
    axes.set(xlabel="parameters, millions", ylabel="median of a forward, ms")
    axes.margins(x=0.2)  # names stand to the right of their points
    places = [at for row in rows if (at := _place(row)) is not None]
    _scaled(axes.set_xscale, axes.xaxis, [x for x, _ in places])
    _scaled(axes.set_yscale, axes.yaxis, [y for _, y in places])
    axes.legend(fontsize=8)
    return labels


def _apart(figure: Any, labels: Sequence[Any]) -> None:
    """Moves up what would stand over another label: the variants of a model are one above the other."""
    figure.draw_without_rendering()
    placed: list[Any] = []
    for label in sorted(labels, key=lambda one: one.xy[1]):
        box = label.get_window_extent()
        right, up = label.xyann
        while (other := next((one for one in placed if one.overlaps(box)), None)) is not None:
            higher = other.y1 - box.y0 + GAP
            box = box.translated(0, higher)
            up += higher * POINTS / figure.dpi
        label.xyann = (right, up)
        placed.append(box)


def _place(row: Row) -> tuple[float, float] | None:
    """Millions of parameters, and milliseconds; None where an axis by decades has no such number: results are read from
    files."""
    parameters, forward_ns = row.parameters or 0, row.forward_ns or 0
    return (parameters / 1e6, forward_ns / 1e6) if min(parameters, forward_ns) > 0 else None


def _scaled(scale: Callable[[str], Any], axis: Any, values: Sequence[float]) -> None:
    """By decades, where there are some."""
    if values and max(values) >= DECADES * min(values):
        scale("log")
        axis.set_major_formatter(lambda value, _: f"{value:g}")


def _scaling(axes: Any, rows: Sequence[Row], name: str) -> None:
    """A line for each model and variant with several of them, all else the same."""
    others = [one for one in ("threads", "batch", "imgsz") if one != name]
    rows = [row for row in rows if getattr(row, name) is not None]
    several = {one for one in others if len(_known(rows, one)) > 1}
    for key, some in _grouped(
        rows, lambda row: (row.model, _without_threads(row.variant), *(getattr(row, one) for one in others))
    ):
        if len(some) < 2:
            continue
        ordered = sorted(some, key=lambda row: getattr(row, name))
        further = [f"{one} {value}" for one, value in zip(others, key[2:], strict=True) if one in several]
        x, y = [getattr(row, name) for row in ordered], [row.images_per_s or row.forwards_per_s for row in ordered]
        axes.plot(x, y, "o-", label=_text(" ".join([key[0], key[1], *further])))
    what = "images/s" if any(row.images_per_s for row in rows) else "forwards/s"
    axes.set(xlabel=name, ylabel=what, xscale="log")
    axes.set_xticks(sorted(_known(rows, name)), minor=False)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.minorticks_off()
    if axes.lines:
        axes.legend(fontsize=7)


def _without_threads(variant: str) -> str:
    """Their number is what a line goes along."""
    return "+".join(name for name in variant.split("+") if not catalogue.threads_of(name)) or EAGER


def _known(rows: Sequence[Row], name: str) -> set[int]:
    """Models of the user's have sizes of their own."""
    return {value for row in rows if (value := getattr(row, name)) is not None}


def _grouped(rows: Sequence[Row], key: Callable[[Row], Any]) -> list[tuple[Any, list[Row]]]:
    found: dict[Hashable, list[Row]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return list(found.items())


def _text(name: str) -> str:
    """No mathematics of matplotlib's: names come from outside."""
    return one_line(name).replace("$", r"\$")
