"""What a layer or module is, and what was measured of it as a whole: the first lines of ``hwprof report --layer``."""

from __future__ import annotations

from typing import Final

from rich.table import Table
from rich.text import Text

from hwprof.analysis.owners import UNATTRIBUTED
from hwprof.report.document.layers import Layer
from hwprof.report.document.one_layer import OneLayer
from hwprof.report.text import choice, columns, figures, layer_rows
from hwprof.report.text.layers import rows_sum_ns
from hwprof.report.text.metric_notes import marks
from hwprof.report.text.page import Page

LONG: Final = 2
"""So many times the median at the most is an ordinary spread; a longer call is told."""


def show(found: OneLayer, page: Page) -> None:
    """What the layer is, and what was measured of it as a whole."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    separator = page.glyphs.separator
    facts = _of_one(found.leaf, page) if found.leaf is not None else _of_module(found, page)
    for name, words in [("run", [found.run]), *facts, ("bound", _bound(found))]:
        if words:
            grid.add_row(Text(name, style="bold"), Text(separator.join(words)))
    page.console.print(grid)


def _of_one(layer: Layer, page: Page) -> list[tuple[str, list[str]]]:
    glyphs = page.glyphs
    static = {"parameters": layer.parameters, "MACs": layer.macs, "bytes": layer.bytes}
    more = [f"{figures.plural(layer.more_shapes, 'other input shape')}"] if layer.more_shapes else []
    time = _time(layer, page)
    calls = f"{figures.calls(layer.calls, glyphs)} {'call' if layer.calls == 1 else 'calls'} per iteration"
    if layer.path == UNATTRIBUTED:
        what = ["outside of the model's modules: Python, operators, counter reads"]
        return [("what", what), ("time", time), ("metrics", _metrics(layer, page))]
    if layer.own:
        what = [f"own code of {layer.type or 'the model'}, between the modules that it calls", calls]
        model = [f"{figures.amount(layer.macs, glyphs)} MACs"] if layer.macs else []
        measured = [("time", time), ("metrics", _metrics(layer, page)), ("counts", _no_counts(layer, page))]
        return [("what", what), ("model", model), *measured]
    return [
        ("type", [layer.type or "not known", calls if layer.calls else "never called"]),
        ("shapes", [f"{layer.input_shapes or '?'} to {layer.output_shapes or '?'}", *more]),
        (
            "model",
            [
                f"{name} not known" if value is None else f"{figures.amount(value, glyphs)} {name}"
                for name, value in static.items()
                if value != 0 and (value is not None or layer.calls)
            ],
        ),
        ("time", time),
        ("metrics", _metrics(layer, page)),
        ("FLOPs", [layer.flops.reason] if layer.flops is not None and layer.flops.reason else []),
        ("counts", _no_counts(layer, page)),
    ]


def _bound(found: OneLayer) -> list[str]:
    """``compute (confidence: high)``, ``83% of the FP32 roof``; of a module with layers that is its own code's."""
    under = found.roofline
    if under is None:
        return []
    of_own = "of its own code: " if under.path not in (found.path, None) and len(found.layers) > 1 else ""
    return [f"{of_own}{under.bound} (confidence: {under.confidence})", under.evidence]


def _no_counts(layer: Layer, page: Page) -> list[str]:
    """In which pass, where the run has several: another may have counted it."""
    found = []
    if layer.uncounted_ns is not None:
        took = f"{figures.milliseconds(layer.uncounted_ns)} ms of CPU time"
        where = columns.in_pass(columns.counting_pass(page), page)
        found.append(f"not available{where}: code that is not counted ran in it ({took})")
    if layer.uncounted_caller_ns is not None:
        took = f"{figures.milliseconds(layer.uncounted_caller_ns)} ms"
        where = columns.in_pass(page.document.figures_from, page)
        found.append(f"not available{where}: called by a thread that was not counted yet ({took})")
    return found


def _time(layer: Layer, page: Page) -> list[str]:
    if layer.time is None:
        return []
    least = [f"min {figures.milliseconds(layer.time.min_ns)}"] if layer.time.repetitions > 1 else []
    if layer.time.max_ns > LONG * layer.time.median_ns:
        least.append(f"max {figures.milliseconds(layer.time.max_ns)}")
    ratio = layer_rows.sampled_ratio(layer, page)
    traced = []
    if ratio is not None:
        longer = figures.times_as_long(ratio, page.glyphs)
        traced.append(f"{longer} in pass trace, which kernels and threads are of")
    return [f"{figures.time_with_spread(layer.time, page.glyphs)} ms", *least, *_share(layer.share, page), *traced]


def _of_module(found: OneLayer, page: Page) -> list[tuple[str, list[str]]]:
    types: dict[str, int] = {}
    for layer in found.layers:
        if layer.own:
            continue
        types[layer.type or "not known"] = types.get(layer.type or "not known", 0) + 1
    calls = ["never called"] if found.type and found.calls is None else []
    return [
        ("type", [found.type, *calls] if found.type else []),
        ("layers", [f"{number} {name}" for name, number in types.items()]),
        ("model", _model(found, page)),
        ("time", _times(found, page)),
    ]


def _model(found: OneLayer, page: Page) -> list[str]:
    """The module's parameters and MACs; where it is not known as one, or its MACs are not, what is known of its
    layers."""
    parameters = found.parameters
    if parameters is None:
        parameters = sum(layer.parameters or 0 for layer in found.layers)
    called = [layer.macs for layer in found.layers if layer.calls]
    known = [macs for macs in called if macs is not None]
    macs = sum(known) if found.macs is None else found.macs
    unknown = len(called) - len(known) if found.macs is None else 0
    return [
        *(
            f"{figures.amount(value, page.glyphs)} {name}"
            for name, value in (("parameters", parameters), ("MACs", macs))
            if value
        ),
        *([f"MACs of {unknown} not known"] if unknown else []),
    ]


def _times(found: OneLayer, page: Page) -> list[str]:
    """By the module's own calls, beside what its leaf layers add up to; only these where nobody timed it as one."""
    words = []
    if found.median_ns is not None:
        calls = f" in {figures.calls(found.calls, page.glyphs)} calls" if found.calls not in (None, 1) else ""
        words += [f"{figures.milliseconds(found.median_ns)} ms{calls} (median)", *_share(found.share, page)]
    if found.leaves_median_ns is not None:
        leaves = f"in its leaf layers {figures.milliseconds(found.leaves_median_ns)} ms"
        share = figures.percent(found.leaves_share, page.glyphs)
        words += [f"{leaves} ({share})"] if words else [f"{leaves} (median)", *_share(found.leaves_share, page)]
    return words


def _share(share: float | None, page: Page) -> list[str]:
    if share is None:
        return []
    of = "all rows' time" if rows_sum_ns(page) is not None else f"the {page.document.whole}"
    return [f"{figures.percent(share, page.glyphs)} of {of}"]


def _metrics(layer: Layer, page: Page) -> list[str]:
    """Those that have a value, with the marks of their provenance."""
    return [
        f"{metric.title}{marks(metric, page.glyphs)} {figures.decimal(value, metric.digits, page.glyphs)}"
        for metric, _ in choice.choose(page.document, page.metrics)
        if (value := layer.metrics.get(metric.name)) is not None
    ]
