"""What ``hwprof report --layer`` prints: all that is known of a layer, or of the layers within a module."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from rich.table import Table
from rich.text import Text

from hwprof.analysis.owners import UNATTRIBUTED
from hwprof.report.document.hottest import Hottest
from hwprof.report.document.instrumented import Instrumented
from hwprof.report.document.kernels import SampledLayer, Sampling
from hwprof.report.document.layers import Layer
from hwprof.report.document.one_layer import OneLayer
from hwprof.report.text import (
    choice,
    columns,
    figures,
    hot_kernels,
    instrumented,
    kernel_cells,
    layer_rows,
    operators,
    primitives,
)
from hwprof.report.text.footnotes import of_columns, unavailable
from hwprof.report.text.grid import Column
from hwprof.report.text.layers import sum_of_times
from hwprof.report.text.page import PATH, Page
from hwprof.report.text.threads import ROLES


def show(found: OneLayer, page: Page, *, full_names: bool = False) -> None:
    """Section by section what there is."""
    page.console.print(Text(found.path, style="bold"))
    _facts(found, page)
    if found.leaf is None:
        _layers(found, page)
    if found.sampling is not None:
        _kernels(found, found.sampling, page)
    else:
        _by_instructions(found, page)
    _operators(found, page)
    _threads(found, page)
    primitives.show_hottest(_narrowed(found, page))
    if full_names:
        kernel_cells.full_names(found.kernels, page)


def _facts(found: OneLayer, page: Page) -> None:
    """What the layer is, and what was measured of it as a whole."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    separator = page.glyphs.separator
    facts = _of_one(found.leaf, page) if found.leaf is not None else _of_module(found, page)
    for name, words in [("run", [found.run]), *facts]:
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
        what = [f"a {layer.type}'s own code, between the modules that it calls", calls]
        model = [f"{figures.amount(layer.macs, glyphs)} MACs"] if layer.macs else []
        measured = [("time", time), ("metrics", _metrics(layer, page)), ("counts", _no_counts(layer))]
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
        ("counts", _no_counts(layer)),
    ]


def _no_counts(layer: Layer) -> list[str]:
    if layer.uncounted_ns is None:
        return []
    took = f"{figures.milliseconds(layer.uncounted_ns)} ms of CPU time"
    return [f"not available: uninstrumented code ran in it ({took})"]


def _time(layer: Layer, page: Page) -> list[str]:
    if layer.time is None:
        return []
    least = [f"min {figures.milliseconds(layer.time.min_ns)}"] if layer.time.repetitions > 1 else []
    return [f"{figures.time_with_spread(layer.time, page.glyphs)} ms", *least, *_share(layer.share, page)]


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
    return [] if share is None else [f"{figures.percent(share, page.glyphs)} of the {page.document.whole}"]


def _metrics(layer: Layer, page: Page) -> list[str]:
    """Those that have a value, with the marks of their provenance."""
    return [
        f"{metric.title}{columns.marks(metric, page.glyphs)} {figures.decimal(value, metric.digits, page.glyphs)}"
        for metric, _ in choice.choose(page.document, page.metrics)
        if (value := layer.metrics.get(metric.name)) is not None
    ]


def _layers(found: OneLayer, page: Page) -> None:
    """The leaves, in order of execution."""
    glyphs = page.glyphs
    rows = found.layers
    shown = page.table(
        [
            Column("layer", [layer.path for layer in rows], right=False, least=PATH, among=page.paths),
            Column("type", [layer.type or "" for layer in rows], 3, right=False, least=9),
            Column("time ms", [figures.time_with_spread(layer.time, glyphs) for layer in rows]),
            *columns.minimum([layer.time for layer in rows], glyphs),
            Column("share", [figures.percent(layer.share, glyphs) for layer in rows]),
            Column("MACs", [figures.amount(layer.macs or None, glyphs) for layer in rows], 1),
            *columns.metric_columns(rows, page),
        ],
        "Layers, in order of execution",
    )
    shares = sum_of_times(page) if any(layer.share is not None for layer in rows) else ""
    page.notes([shares, *columns.footnotes(shown, page, whole=False), columns.not_shown(shown, page)])


def _kernels(found: OneLayer, sampling: Sampling, page: Page) -> None:
    """Of all together, and of each leaf within a module."""
    if not found.kernels:
        page.title("Kernels, sampled")
        page.notes(["no samples"])
        return
    several = ": share of its layers together" if found.leaf is None else ""
    kernels = hot_kernels.kernel_columns(found.kernels, sampling, page)
    shown = page.table(kernels, f"Kernels, sampled{several}") if kernels else []
    if not kernels:
        page.title("Kernels, sampled")
        samples = figures.plural(sum(kernel.samples for kernel in found.kernels), "sample")
        page.notes([f"{samples} in {figures.plural(len(found.kernels), 'kernel')}, too few to name one"])
    if found.by_layer:
        shown += page.table(
            hot_kernels.of_layers(found.by_layer, sampling, page),
            f"Kernels of each layer: share of the {found.whole}, and of the layer",
        )
    if shown:
        page.notes(kernel_cells.footnotes(sampling, page, shown, found.sampled))
    page.notes(hot_kernels.layer_notes(found.by_layer, sampling, page, shown))


def _by_instructions(found: OneLayer, page: Page) -> None:
    """Where nothing was sampled: the kernels that an instrumented pass counted in a leaf."""
    missing = kernel_cells.no_samples(page.document)
    part = page.part(Instrumented)
    passes = part.passes if part is not None else []
    shown = [one for one in passes if found.instrumented.get(one.name) and found.leaf is not None]
    for one in shown:
        instrumented.kernels(one, found.instrumented[one.name], f"Kernels by instructions, pass {one.name}", page)
    page.notes(
        [f"{page.glyphs.dash} {unavailable(['times of kernels'], missing.reason, missing.remedy, page.document)}"]
    )


def _operators(found: OneLayer, page: Page) -> None:
    """What the framework ran meanwhile, of one leaf."""
    if found.leaf is None:
        return
    rows = found.sampled[0].operators if found.sampled else []
    if not rows:
        _operators_by_clock(found, page)
        return
    page.table(
        [
            Column("operator", [row.operator or "none" for row in rows], right=False, least=26),
            Column("share", [figures.percent(row.share, page.glyphs) for row in rows]),
            Column("samples", [f"{row.samples:,}" for row in rows]),
        ],
        "Operators: share of its CPU time",
    )
    page.notes([operators.of_other_threads(found.others_share, "the layer", page)])


def _operators_by_clock(found: OneLayer, page: Page) -> None:
    """Those that it calls itself, where no sample tells which one ran."""
    rows, glyphs = layer_rows.operators_of(found.path, page), page.glyphs
    if not rows:
        return
    page.table(
        [
            Column("operator", [row.operator or layer_rows.NO_OPERATOR for row in rows], right=False, least=26),
            Column("share", [figures.percent(row.share, glyphs) for row in rows]),
            Column("calls", ["" if row.calls is None else figures.calls(row.calls, glyphs) for row in rows]),
            Column("time ms", [figures.milliseconds(row.time_ns) for row in rows], 1),
        ],
        "Operators: share of its time, pass trace",
    )


def _threads(found: OneLayer, page: Page) -> None:
    """What each thread did in it."""
    if not found.threads:
        return

    def ms(name: str) -> list[str]:
        times_ns = [getattr(thread, name) for thread in found.threads]
        return [page.glyphs.dash if ns is None else figures.milliseconds(ns) for ns in times_ns]

    threads = [f"{ROLES[thread.role]} {thread.tid}" for thread in found.threads]
    shown = page.table(
        [
            Column("thread", threads, right=False, least=22),
            Column("name", [thread.name or "" for thread in found.threads], 2, right=False),
            Column("samples", [f"{thread.samples:,}" for thread in found.threads], 1),
            Column("busy ms", ms("busy_ns")),
            Column("waits ms", ms("wait_ns")),
            Column("off-CPU ms", ms("off_cpu_ns")),
            Column("preempted ms", ms("preempted_ns")),
        ],
        "Threads, per iteration",
    )
    unknown = any(thread.off_cpu_ns is None for thread in found.threads)
    balance = found.sampled[0] if found.leaf is not None and found.sampled else None
    lost = found.critical_paths[0].largest_loss if found.critical_paths else None
    page.notes(
        [
            of_columns(
                shown,
                {
                    "waits ms": "waits: spinning in OpenMP",
                    **({"off-CPU ms": f"{page.glyphs.dash} no switches were recorded"} if unknown else {}),
                    "preempted ms": "preempted: the part of off-CPU in which others ran",
                },
            ),
            _balance(balance, page) if balance is not None else "",
            f"largest loss of threads x time: {lost}" if balance is not None and lost else "",
        ]
    )


def _balance(layer: SampledLayer, page: Page) -> str:
    words = []
    if layer.efficiency is not None:
        words.append(f"parallel efficiency {figures.percent(layer.efficiency, page.glyphs)} = busy / (threads x time)")
    if layer.imbalance is not None:
        words.append(f"imbalance {100 * layer.imbalance:.0f}% = busiest / mean - 1")
    return "; ".join(words)


def _narrowed(found: OneLayer, page: Page) -> Page:
    """The page for sections that are about a document's hottest layers: these are; what no layer owns is none."""
    paths: Sequence[str] = [layer.path for layer in found.layers if layer.path != UNATTRIBUTED]
    hottest = Hottest(sort="order", top=len(paths), layers=list(paths))
    return Page(msgspec.structs.replace(page.document, hottest=hottest), page.console, page.metrics)
