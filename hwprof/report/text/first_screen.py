"""The first screen: how fast, where the time goes, what to do, which layers; what is behind it, on request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.text import Text

from hwprof.printable import printable
from hwprof.report.document.document import Document
from hwprof.report.document.findings import Action, Findings
from hwprof.report.document.kernels import Kernels
from hwprof.report.document.layers import Layer
from hwprof.report.document.noise import Noise
from hwprof.report.document.roofline import Roofline
from hwprof.report.document.stages import Stages
from hwprof.report.document.threads import Threads
from hwprof.report.document.time_budget import Budget, TimeBudget
from hwprof.report.text import figures, noise
from hwprof.report.text.grid import Column, fit, table
from hwprof.report.text.kernel_cells import LEAST_SAMPLES
from hwprof.report.text.layers import rows_sum_ns
from hwprof.report.text.page import Page
from hwprof.report.text.time_budget import LETTERS
from hwprof.report.text.trials import change_text
from hwprof.run.trials import Change
from hwprof.unavailable import explain

ACTIONS: Final = 4
MARGIN: Final = 7
"""Characters before a line's text: its name."""

LEAST_GFLOPS: Final = 0.01
"""A model that computes less is not about arithmetic."""

QUIET_SHARE: Final = 0.05
"""Of the processors, that others may have while the peaks are measured."""

DISTURBED: Final = 0.2
"""Of the elapsed time: with more of it taken by others, rules that find nothing say nothing."""

BAR: Final = 10
"""Characters of a layer's budget."""

MOST_LOST: Final = 2

NO_BREAK: Final = "\N{NO-BREAK SPACE}"
"""Within a line's words that stay together."""

GAPS: Final = 4
"""Names of what could not be measured."""

PATH: Final = 22
KERNEL: Final = 18
ACTION: Final = 30
WEIGHTS: Final = 30
CPI: Final = "cpi"

LEAST_COMPUTE: Final = 0.2

APART: Final = 0.2
"""So far the sum of the rows may be from the whole without a word."""


def show(page: Page) -> None:
    """Some twenty lines."""
    document = page.document
    _say(page, Text(_headline(page), style="bold"))
    _say(page, Text(_circumstances(page)))
    for warning in noise.warnings(document, page.glyphs)[:1]:
        _named(page, "NOISY", warning, whole=True)
    for text in _lost(page)[:MOST_LOST]:
        _named(page, "LOST", text, whole=True)
    _where(page)
    _do(page)
    rows = page.hottest()
    if rows:
        page.console.print()
        page.console.print(table(fit(_columns(rows, page), page.console.width), page.glyphs))
    page.console.print()
    _shares(page)
    _missing(page)
    _say(page, Text(f"run {document.run.name}; everything: hwprof report --all; causes: --findings", "dim"))


def _headline(page: Page) -> str:
    """``yolov7 1x3x640x480 · 2 images · 632 ms ±1.1 · 3.2 images/s · 223 GFLOP/s, 61% of the GEMM peak``."""
    document, workload = page.document, page.document.workload
    words = []
    if workload is not None:
        shapes = workload.input_shapes
        further = f" +{len(shapes) - 1}" if len(shapes) > 1 else ""
        words.append(f"{workload.name} {shapes[0]}{further}" if shapes else workload.name)
        if workload.sources:
            words.append(figures.plural(len(workload.sources), "image"))
    if page.whole is not None and page.whole.time is not None:
        words.append(f"{figures.time_with_spread(page.whole.time, page.glyphs)} ms")
    roofs = page.part(Roofline)
    if roofs is not None and roofs.images_per_s is not None:
        words.append(f"{figures.three_digits(roofs.images_per_s)} images/s")
    if roofs is not None and roofs.analytic_gflops is not None and roofs.analytic_gflops >= LEAST_GFLOPS:
        quiet = (roofs.others_share or 0.0) <= QUIET_SHARE  # else the peaks are too low
        of_peak = f", {roofs.share_of_gemm:.0%} of GEMM peak" if roofs.share_of_gemm is not None and quiet else ""
        words.append(f"{figures.three_digits(roofs.analytic_gflops)} GFLOP/s{of_peak}")
    return page.glyphs.separator.join(words) or document.run.name


def _circumstances(page: Page) -> str:
    """``AMD EPYC (KVM, no PMU) · 2 threads, efficiency 80% · 18 iterations, quiet``."""
    document, machine = page.document, page.document.machine
    about = [_core(page), machine.hypervisor or "", "" if machine.has_core_pmu else "no PMU"]
    told = ", ".join(one for one in about if one)
    words = [machine.processor + (f" ({told})" if told else "")]
    if document.workload is not None:
        threads = page.part(Threads)
        efficiency = threads.efficiency if threads is not None else None
        shared = f", efficiency {figures.at_most_all(efficiency):.0%}" if efficiency is not None else ""
        words.append(figures.plural(document.workload.threads, "thread") + shared)
        words.append(_weights(document.workload.weights, page))
    found = page.part(Noise)
    if found is not None:
        calm = not noise.warnings(document, page.glyphs) and _preempted(page) < DISTURBED
        words.append(f"{figures.plural(found.timed, 'iteration')}{', quiet' if calm else ''}")
    return page.glyphs.separator.join(words)


def _weights(weights: str, page: Page) -> str:
    for said, words in (("random", "random weights"), ("the factory's own", "weights of the factory")):
        if weights.startswith(said):
            return words
    return f"weights {figures.shorten(printable(weights), WEIGHTS, page.glyphs.ellipsis)}"


def _core(page: Page) -> str:
    """``Zen 5``; nothing where the processor's name says it."""
    processor = page.document.machine.processor
    name = next((kind.name for kind in page.document.cores if kind.name is not None), "")
    return " ".join(word for word in name.split() if word not in processor.split())


def _preempted(page: Page) -> float:
    """Of the time that the budget is of."""
    part = page.part(TimeBudget)
    return part.whole.share("preempted") if part is not None else 0.0


def _lost(page: Page) -> list[str]:
    """What should have been there: passes that did not end well, collectors that failed."""
    passes = [
        f"pass {one.name} {one.status}: {one.reason or 'no reason given'}"
        for one in page.document.passes
        if one.status != "completed"
    ]
    return passes + [
        f"{', '.join(gap.lost[:GAPS])}: {explain(gap.reason, gap.remedy)}"
        for gap in page.document.not_measured
        if gap.state == "failed"
    ]


def _where(page: Page) -> None:
    """The budget in letters, which the layers' bars are made of."""
    part = page.part(TimeBudget)
    if part is None or not part.whole.parts:
        _absent(page, "WHERE", "time_budget")
        return
    known = {one.part: one.share for one in part.whole.parts}
    shown = {layer.path for layer in page.hottest()}
    in_bars = {name for one in part.layers if one.path in shown for name in LETTERS if one.share(name) >= 0.5 / BAR}
    named = [
        f"{letter}{NO_BREAK}{name.replace('_', NO_BREAK)}{NO_BREAK}{100 * known.get(name, 0.0):.0f}"
        for name, letter in sorted(LETTERS.items(), key=lambda item: -known.get(item[0], 0.0))
        if known.get(name, 0.0) >= 0.005 or name in in_bars
    ]
    _named(page, "WHERE", f"{', '.join(named)} (% of {page.document.whole})", whole=True)
    stages = page.part(Stages)
    outside = [one for one in stages.rows if one.inside is None and one.name != "inference"] if stages else []
    told = [f"{one.name} {one.share:.0%}" for one in outside if one.share is not None and one.share >= 0.01]
    if told and page.document.whole == "inference":
        _named(page, "", f"and of an iteration: {', '.join(told)}", whole=True)


def _do(page: Page) -> None:
    part = page.part(Findings)
    if part is None:
        _absent(page, "DO", "findings")
        return
    if part.missing is not None:
        _named(page, "DO", f"no findings: {explain(part.missing.reason, part.missing.remedy)}", whole=True)
    changes = [(one, change) for one in part.actions if (change := _change(one)) is not None]
    done = [one for one, change in changes if not change.helps]
    helpful = [one for one in part.actions if one not in done][:ACTIONS]
    if not helpful and part.missing is None:
        _named(page, "DO", _nothing(part, page), whole=True)
    width = min(ACTION, max((len(one.title) for one in helpful), default=0))
    for number, one in enumerate(helpful, 1):
        title = figures.shorten(one.title, width, page.glyphs.ellipsis, head=width - len(page.glyphs.ellipsis))
        _named(
            page,
            "" if number > 1 or part.missing is not None else "DO",
            f"{number} {title:<{width}}  {_gain(one, page):<18}  {_why(one)}",
        )
    if part.together is not None and part.together.inference is not None:
        tried = f"tried {change_text(part.together.inference, page.glyphs)}"
        _named(page, "", f"together: {' + '.join(part.together.titles)}: {tried} (--findings: what to type)")
    for name, in_vain in (("not certain", False), ("no gain", True)):
        told = [
            f"{one.title} {change_text(change, page.glyphs)}"
            for one, change in changes
            if not change.helps and change.in_vain is in_vain
        ]
        if told:
            _named(page, "", f"{name}: {', '.join(told)}")
    if part.trials is None and any(one.remedy is not None for one in helpful):
        _named(page, "", "up to: what the cause takes of the time; what remedies bring: hwprof try")


def _nothing(part: Findings, page: Page) -> str:
    if part.rows:
        return "no remedy helped"
    if _preempted(page) >= DISTURBED:
        others = f"others had the processor for {_preempted(page):.0%} of the time"
        return explain(f"not known: {others}, and no rule found a cause in the rest", "collect with --wait-quiet")
    return "no rule found a cause of lost time"


def _change(one: Action) -> Change | None:
    return one.tried.inference if one.tried is not None else None


def _gain(one: Action, page: Page) -> str:
    change = _change(one)
    if change is not None:
        return f"tried {change_text(change, page.glyphs)}"
    whole = "" if one.gain_of == page.document.whole else f" of {one.gain_of}"
    if one.gain_low > 0:
        return f"{one.gain_low:.0%} to {one.gain_high:.0%}{whole}"
    return f"up to {one.gain_high:.0%}{whole}"


def _why(one: Action) -> str:
    """The causes by the names of their rules, with the figures of the largest."""
    rules = ", ".join(rule.replace("_", " ") for rule in one.rules)
    return f"{rules}: {one.evidence}" if rules else ""


def _columns(rows: Sequence[Layer], page: Page) -> list[Column]:
    glyphs = page.glyphs
    budgets = {one.path: one for one in found.layers} if (found := page.part(TimeBudget)) is not None else {}
    roofs = {one.path: one for one in roofline.rows} if (roofline := page.part(Roofline)) is not None else {}
    sampled = page.part(Kernels)
    hottest: dict[str | None, str] = {}
    for kernel in sampled.kernels if sampled is not None else ():
        if kernel.waits is None and kernel.samples >= LEAST_SAMPLES:
            hottest.setdefault(kernel.layer, kernel.kernel)
    cpi = {one.path: one.cpi for one in sampled.layers} if sampled is not None else {}
    counted = [layer.metrics.get(CPI) for layer in rows]
    cpis = [
        (one if one is not None else cpi.get(layer.path)) if _computes(budgets.get(layer.path)) else None
        for one, layer in zip(counted, rows, strict=True)
    ]
    columns = [
        Column("layer", [one.path for one in rows], right=False, least=PATH, among=page.paths),
        Column("type", [one.type or glyphs.dash for one in rows], 5, right=False),
        Column("ms", [figures.milliseconds(one.time.median_ns) if one.time else glyphs.dash for one in rows]),
        Column("share", [figures.percent(one.share, glyphs) for one in rows]),
        Column("budget", [bar(budgets.get(one.path), glyphs) for one in rows], 1, right=False),
        Column("CPI", [figures.decimal(one, 2, glyphs) for one in cpis], 4),
        Column("bound", [roofs[one.path].bound if one.path in roofs else glyphs.dash for one in rows], 2, right=False),
        Column("hottest kernel", [hottest.get(one.path, glyphs.dash) for one in rows], 3, right=False, least=KERNEL),
    ]
    empty = {glyphs.dash, ""}
    return [one for one in columns if set(one.cells) - empty]


def _computes(budget: Budget | None) -> bool:
    """Of a layer that does hardly anything of its own cycles per instruction say nothing: they are the kernel's."""
    return budget is None or budget.share("compute") >= LEAST_COMPUTE


def bar(budget: Budget | None, glyphs: figures.Glyphs) -> str:
    """``ccccccclpw``: a letter is 10%."""
    if budget is None:
        return glyphs.dash
    text, reached = "", 0.0
    for part, letter in LETTERS.items():
        reached += budget.share(part)
        text += letter * (min(round(BAR * reached), BAR) - len(text))
    return text


def _shares(page: Page) -> None:
    """Where medians of layers add up to something else than the median of the whole."""
    sum_ns, whole = rows_sum_ns(page), page.whole.time if page.whole is not None else None
    if sum_ns is not None and whole is not None and abs(sum_ns - whole.median_ns) > APART * whole.median_ns:
        _say(page, Text(f"share: of all rows' sum, {figures.milliseconds(sum_ns)} ms", "dim"))


def _missing(page: Page) -> None:
    """One line on what could not be measured, whatever it was."""
    names = [name for gap in page.document.not_measured for name in gap.lost]
    if names:
        told = figures.some(list(dict.fromkeys(names)), GAPS)
        _say(page, Text(f"not available: {told}: hwprof report --all says why", "dim"))


def _absent(page: Page, name: str, section: str) -> None:
    why = page.document.absent.get(section)
    _named(
        page, name, f"not available: {explain(why.reason, why.remedy)}" if why is not None else "not available", True
    )


def _named(page: Page, name: str, text: str, whole: bool = False) -> None:
    """One line behind its name; ``whole``: as many as it takes."""
    room, ellipsis = page.console.width - MARGIN, page.glyphs.ellipsis
    text = printable(text, kept=NO_BREAK)
    lines = _wrapped(text, room) if whole else [figures.shorten(text, room, ellipsis, head=room - len(ellipsis))]
    for number, line in enumerate(lines):
        page.console.print(Text.assemble((f"{'' if number else name:<{MARGIN}}", "bold"), line, no_wrap=True))


def _wrapped(text: str, width: int) -> list[str]:
    import textwrap

    return [line.replace(NO_BREAK, " ") for line in textwrap.wrap(text, width)] or [""]


def _say(page: Page, text: Text) -> None:
    page.console.print(text)


def has_one(document: Document) -> bool:
    """Whether there is anything to show on it: a run without a completed pass has no figures."""
    return document.figures_from is not None
