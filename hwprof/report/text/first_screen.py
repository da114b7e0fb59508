"""The first screen: how fast, where the time goes, what to do, which layers; what is behind it, on request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.text import Text

from hwprof.printable import printable
from hwprof.report.document.document import Document
from hwprof.report.document.noise import Noise
from hwprof.report.document.overhead import Overhead
from hwprof.report.document.roofline import Roofline
from hwprof.report.document.stages import Stages
from hwprof.report.document.threads import Threads
from hwprof.report.document.throughput import Throughput
from hwprof.report.document.time_budget import TimeBudget
from hwprof.report.text import alike_layers, figures, first_layers, noise, roofline, to_do, variant
from hwprof.report.text.grid import fit, table
from hwprof.report.text.layers import rows_sum_ns, shares_of
from hwprof.report.text.named_lines import DISTURBED, NO_BREAK, absent, by_few_samples, facts, named, preempted
from hwprof.report.text.page import Page
from hwprof.report.text.time_budget import LETTERS
from hwprof.unavailable import explain

LEAST_GFLOPS: Final = 0.01
"""A model that computes less is not about arithmetic."""

MOST_LOST: Final = 2
NO_REASON: Final = "no reason given"
USUAL_ROWS: Final = 8
FEWEST_ROWS: Final = 5

GAPS: Final = 4
"""Names of what could not be measured."""

WEIGHTS: Final = 30
OTHER_TIME: Final = 0.1
"""So far may a pass with samples be from one without, for their shares to be of the same."""

WORTH_A_WORD: Final = 1.05
"""So many times as long as without it has a model to be before watching is worth a line."""

APART: Final = 0.05
"""So far the sum of the rows may be from the whole without a word."""


def show(page: Page) -> None:
    """Some twenty lines."""
    document = page.document
    facts(page, _headline(page), "bold")
    facts(page, _circumstances(page))
    changed = document.workload.variant if document.workload is not None else None
    if changed is not None and (outputs := variant.agreement(changed, page.glyphs)):
        named(page, "AGREES" if variant.agrees(changed) else "DIFFER", outputs, whole=True)
    for number, warning in enumerate(noise.brief(document, page.glyphs) or _disturbed_shares(page)):
        named(page, "" if number else "NOISY", warning, whole=True)
    unsound = document.workload.weights_unsound if document.workload is not None else None
    if unsound is not None:
        named(page, "NaN", unsound, whole=True)
    watched = _watched(page)
    if watched is not None:
        named(page, "SLOWED", watched, whole=True)
    for text in _lost(page)[:MOST_LOST]:
        named(page, "LOST", text, whole=True)
    rows = _that_fit(alike_layers.hottest(page), to_do.lines_to_adopt(page))
    _where(page, rows)
    _outside(page)
    to_do.show(page)
    if rows:
        page.console.print()
        page.console.print(table(fit(first_layers.columns(rows, page), page.console.width), page.glyphs))
    page.console.print()
    _shares(page)
    _missing(page)
    run, further = f"run {document.run.name}", "everything: hwprof report --all; causes: --findings"
    for line in [f"{run}; {further}"] if len(f"{run}; {further}") <= page.console.width else [run, further]:
        _say(page, Text(line, "dim"))


def _that_fit(rows: Sequence[alike_layers.Alike], lines: int) -> Sequence[alike_layers.Alike]:
    """Fewer by as many as what there is to adopt takes, of the usual number; who asks for more has them all."""
    return rows if len(rows) > USUAL_ROWS else rows[: max(FEWEST_ROWS, USUAL_ROWS - lines)]


def _headline(page: Page) -> list[str]:
    """``yolov7 1x3x640x480 · 2 images · 632 ms ±1.1 · 3.2 images/s · 223 GFLOP/s, 61% of the GEMM peak``."""
    document, workload = page.document, page.document.workload
    words = []
    if workload is not None:
        shapes = workload.input_shapes
        further = f" +{len(shapes) - 1}" if len(shapes) > 1 else ""
        title = workload.name if workload.variant is None else f"{workload.name} {variant.name(workload.variant)}"
        words.append(f"{title} {shapes[0]}{further}" if shapes else title)
        if workload.sources:
            words.append(figures.images(workload))
    if page.whole is not None and page.whole.time is not None:
        words.append(f"{figures.time_with_spread(page.whole.time, page.glyphs)} ms")
    rates, roofs = page.part(Throughput), page.part(Roofline)
    modelled = page.whole.metrics.get("gflops") if page.whole is not None else None
    gflops = modelled if roofs is None or modelled is None else roofline.of_inference(roofs)[0]
    if rates is not None:
        words.append(f"{figures.three_digits(rates.inference_per_s)} {figures.noun_of_images(workload)}s/s")
    if gflops is not None and gflops >= LEAST_GFLOPS:
        words.append(f"{figures.three_digits(gflops)} GFLOP/s{_of_peak(roofs)}")
    return words or [document.run.name]


def _of_peak(roofs: Roofline | None) -> str:
    """Of what the library's large product attains; where other kernels attain more, of the processor's own; nothing
    where there are no peaks, these are too low, or are not of what it multiplies."""
    gflops, share = roofline.of_inference(roofs) if roofs is not None else (None, None)
    if roofs is None or gflops is None or share is None:
        return ""
    if share <= 1:
        return f", {share:.0%} of GEMM peak"
    of_fp32 = gflops / roofs.fp32_gflops
    return f", {of_fp32:.0%} of FP32 peak" if of_fp32 <= 1 else ""


def _circumstances(page: Page) -> list[str]:
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
        calm = not noise.warnings(document, page.glyphs) and preempted(page) < DISTURBED
        known = noise.precision(found, page.glyphs)
        timed = [
            figures.plural(found.timed, "timed iteration"),
            *([known] if known else []),
            *(["quiet"] if calm else []),
        ]
        words.append(", ".join(timed))
    return words


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


def _watched(page: Page) -> str | None:
    """Where timing every layer makes a model of many small ones slower: how long it takes by itself."""
    effect = page.part(Overhead)
    found = effect.watching if effect is not None else None
    if found is None or not found.distinguishable or found.ratio < WORTH_A_WORD:
        return None
    slower, bare = figures.times_as_long(found.ratio, page.glyphs), figures.milliseconds(found.base_ns)
    return f"{slower} by timing each layer; without that {page.document.whole} takes {bare}{NO_BREAK}ms"


def _lost(page: Page) -> list[str]:
    """What should have been there: passes that did not end well, collectors that failed."""
    passes = [
        f"pass {one.name} {'ended early' if one.status == 'completed' else one.status}: {one.reason or NO_REASON}"
        for one in page.document.passes
        if one.status != "completed" or one.reason
    ]
    return passes + [
        f"{', '.join(gap.lost[:GAPS])}: {explain(gap.reason, gap.remedy)}"
        for gap in page.document.not_measured
        if gap.state == "failed"
    ]


def _disturbed_shares(page: Page) -> list[str]:
    """Where the times are quiet ones, and others had the processor in the pass that was sampled."""
    part = page.part(TimeBudget)
    if part is None or preempted(page) < DISTURBED:
        return []
    disturbed = f"others had the processor for {preempted(page):.0%} of pass {part.pass_}"
    return [explain(f"{disturbed}: WHERE, bounds and causes are of that", noise.QUIETER)]


def _where(page: Page, rows: Sequence[alike_layers.Alike]) -> None:
    """The budget in letters, which the layers' bars are made of."""
    part = page.part(TimeBudget)
    if part is None or not part.whole.parts:
        absent(page, "WHERE", "time_budget")
        return
    known = {one.part: one.share for one in part.whole.parts}
    in_bars = first_layers.letters(rows, page)
    percents = {name: f"{share:.0%}".removesuffix("%") for name, share in known.items()}  # as every other page rounds
    shares = [
        f"{letter}{NO_BREAK}{name.replace('_', NO_BREAK)}{NO_BREAK}{percents.get(name, '0')}"
        for name, letter in sorted(LETTERS.items(), key=lambda item: -known.get(item[0], 0.0))
        if percents.get(name, "0") != "0" or name in in_bars
    ]
    named(page, "WHERE", f"{', '.join(shares)} ({_of_what(page, part)})", whole=True)


def _outside(page: Page) -> None:
    """What an iteration has beside the inference, and how many images a second it is with that."""
    stages = page.part(Stages)
    outside = [one for one in stages.rows if one.inside is None and one.name != "inference"] if stages else []
    told = [f"{one.name} {one.share:.0%}" for one in outside if one.share is not None and one.share >= 0.01]
    rates = page.part(Throughput)
    end_to_end = ""
    if rates is not None:
        noun = figures.noun_of_images(page.document.workload)
        end_to_end = f": {figures.three_digits(rates.end_to_end_per_s)} {noun}s/s end to end"
    if (told or end_to_end) and page.document.whole == "inference":
        named(page, "", f"and of an iteration: {', '.join(told) or 'nothing else'}{end_to_end}", whole=True)


def _of_what(page: Page, part: TimeBudget) -> str:
    """``% of inference``; where samples were taken in a pass that took another time, of how long in that."""
    timed, whole = page.whole.time if page.whole is not None else None, part.whole.elapsed_ns
    few = by_few_samples(page)
    if timed is None or abs(whole - timed.median_ns) <= OTHER_TIME * timed.median_ns:
        return f"% of {page.document.whole}{few}"
    return f"% of {figures.milliseconds(whole)}{NO_BREAK}ms, as pass {part.pass_} took{few}"


def _shares(page: Page) -> None:
    """Where medians of layers add up to something else than the median of the whole."""
    sum_ns, whole = rows_sum_ns(page), page.whole.time if page.whole is not None else None
    if sum_ns is not None and whole is not None and abs(sum_ns - whole.median_ns) > APART * whole.median_ns:
        _say(page, Text(f"share: {shares_of(page, sum_ns)}", "dim"))


def _missing(page: Page) -> None:
    """One line on what could not be measured, whatever it was."""
    names = [name for gap in page.document.not_measured for name in gap.lost]
    if names:
        told = figures.some(list(dict.fromkeys(names)), GAPS)
        _say(page, Text(f"not available: {told}: hwprof report --all says why", "dim"))


def _say(page: Page, text: Text) -> None:
    page.console.print(text)


def has_one(document: Document) -> bool:
    """Whether there is anything to show on it: a run without a completed pass has no figures."""
    return document.figures_from is not None
