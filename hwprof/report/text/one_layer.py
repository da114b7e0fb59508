"""What ``hwprof report --layer`` prints: all that is known of a layer, or of the layers within a module."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec
from rich.text import Text

from hwprof.analysis.owners import UNATTRIBUTED, own
from hwprof.report.document.hottest import Hottest
from hwprof.report.document.instrumented import Instrumented
from hwprof.report.document.kernels import SampledLayer, Sampling
from hwprof.report.document.memory import LayerMemory, ModuleMemory
from hwprof.report.document.one_layer import OneLayer
from hwprof.report.document.threads import Threads
from hwprof.report.document.time_budget import TimeBudget
from hwprof.report.text import (
    columns,
    energy,
    figures,
    hot_energy,
    hot_kernels,
    hot_memory,
    instrumented,
    kernel_cells,
    layer_facts,
    layer_rows,
    lines,
    operators,
    primitives,
    time_budget,
)
from hwprof.report.text.footnotes import of_columns, unavailable
from hwprof.report.text.grid import Column
from hwprof.report.text.layers import sum_of_times
from hwprof.report.text.page import PATH, Page
from hwprof.report.text.threads import ROLES
from hwprof.unavailable import explain


def show(found: OneLayer, page: Page, *, full_names: bool = False, top: int | None = None) -> None:
    """Section by section what there is; ``top``: rows of a module's layers, None: all."""
    page.console.print(Text(found.path, style="bold"))
    layer_facts.show(found, page)
    of = _with_rows(found, top)
    if found.leaf is None:
        _layers(found, of, page)
    if found.budgets:
        budgets = [one for one in found.budgets if one.path in of]
        time_budget.of_budgets(budgets, page, f"Where the time goes: {time_budget.in_words(found.budgets[0])}")
        page.notes([time_budget.letters(budgets)])
    else:
        _no_budget(found, page)
    if found.sampling is not None:
        _kernels(found, of, found.sampling, page)
    else:
        _by_instructions(found, page)
    _operators(found, page)
    _threads(found, page)
    primitives.show_hottest(_narrowed(found, page))
    if found.lines:
        lines.of_time(found.lines, page, "Python lines of its classes, all instances together")
    memory: list[LayerMemory | ModuleMemory] = [
        *found.module_memory,
        *(row for row in found.memory if row.path in of),
    ]
    hot_memory.of_layers(memory, page, "Memory that torch allocates in an iteration")
    spent = [row for row in found.energy if row.path in of]
    hot_energy.of_layers(spent, page, f"Energy of {energy.measured(found.energy)} meanwhile")
    if full_names:
        kernel_cells.full_names(found.kernels, page)


def _no_budget(found: OneLayer, page: Page) -> None:
    """Why a layer has none, of a run that has samples."""
    threads = page.part(Threads)
    if found.leaf is None or threads is None or page.part(TimeBudget) is None:
        return
    few = f"fewer than {threads.few_samples} samples of the thread that calls it"
    page.notes([explain(f"budget not known: {few}", "--iterations or --frequency for more")])


def _with_rows(found: OneLayer, top: int | None) -> Collection[str]:
    """The paths that have rows of their own: of a module's layers as many as were asked for, those that take longest;
    and its own."""
    ordered = sorted(found.layers, key=lambda layer: -(layer.share or 0.0))
    return {found.path, own(found.path), *(layer.path for layer in ordered[:top])}


def _layers(found: OneLayer, of: Collection[str], page: Page) -> None:
    """The leaves, in order of execution."""
    glyphs = page.glyphs
    rows = [layer for layer in found.layers if layer.path in of]
    shown = page.table(
        [
            Column("layer", [layer.path for layer in rows], right=False, least=PATH, among=page.paths),
            Column("type", [layer.type or "" for layer in rows], 3, right=False, least=9),
            Column("time ms", [figures.time_with_spread(layer.time, glyphs) for layer in rows]),
            *columns.minimum([layer.time for layer in rows], page),
            Column("share", [figures.percent(layer.share, glyphs) for layer in rows]),
            Column("MACs", [figures.amount(layer.macs or None, glyphs) for layer in rows], 1),
            *columns.metric_columns(rows, page),
        ],
        "Layers, in order of execution",
    )
    shares = sum_of_times(page) if any(layer.share is not None for layer in rows) else ""
    cut = len(rows) < len(found.layers)
    longest = f"{len(rows)} of {len(found.layers):,} layers, those that take longest: --top" if cut else ""
    page.notes([longest, shares, *columns.footnotes(shown, page, whole=False), columns.not_shown(shown, page)])


def _kernels(found: OneLayer, of: Collection[str], sampling: Sampling, page: Page) -> None:
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
    by_layer = [one for one in found.by_layer if one.sampled.path in of]
    if by_layer:
        shown += page.table(
            hot_kernels.of_layers(by_layer, sampling, page),
            f"Kernels of each layer: share of the {found.whole}, and of the layer",
        )
    if shown:
        page.notes(kernel_cells.footnotes(sampling, page, shown, found.sampled))
    page.notes(hot_kernels.layer_notes(by_layer, sampling, page, shown))


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
        share = figures.percent(figures.at_most_all(layer.efficiency), page.glyphs)
        words.append(f"parallel efficiency {share} = busy / (threads x time)")
    if layer.imbalance is not None:
        words.append(f"imbalance {100 * layer.imbalance:.0f}% = busiest / mean - 1")
    return "; ".join(words)


def _narrowed(found: OneLayer, page: Page) -> Page:
    """The page for sections that are about a document's hottest layers: these are; what no layer owns is none."""
    paths: Sequence[str] = [layer.path for layer in found.layers if layer.path != UNATTRIBUTED]
    hottest = Hottest(sort="order", top=len(paths), layers=list(paths))
    return Page(msgspec.structs.replace(page.document, hottest=hottest), page.console, page.metrics)
