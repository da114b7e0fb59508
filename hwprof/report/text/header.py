"""The head of the terminal report: what ran where, what could not be measured, and how far to trust the figures."""

from __future__ import annotations

from collections import Counter
from pathlib import PurePath
from typing import Final

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hwprof.analysis.owners import INFERENCE, UNATTRIBUTED
from hwprof.printable import one_line, printable
from hwprof.report.document.cpu_time import CpuTime
from hwprof.report.document.document import Document
from hwprof.report.document.header import PassInfo
from hwprof.report.document.overhead import Effect, Overhead
from hwprof.report.document.throughput import Throughput
from hwprof.report.text import figures, noise, variant
from hwprof.report.text.figures import Glyphs, plural
from hwprof.report.text.page import Page
from hwprof.run.manifest import VideoRecord
from hwprof.unavailable import explain

NAMES: Final = 6
"""How many names of what was not measured stand in the report, but for those that were asked for; JSON has all."""

OVERLAP: Final = -0.0005
"""Of the CPU time: a rest that is printed as less than nothing."""


def show(page: Page) -> None:
    """Prints everything above the tables."""
    document, console, glyphs = page.document, page.console, page.glyphs
    warnings = noise.warnings(document, glyphs)
    if warnings:
        console.print(Text("Noisy run", style="bold"))
        for warning in warnings:
            _item(console, warning)
        console.print()
    facts = Table.grid(padding=(0, 2, 0, 0))
    facts.add_column(no_wrap=True)
    facts.add_column(overflow="fold")
    for name, value in _facts(document, glyphs):
        facts.add_row(Text(name, style="bold"), Text(printable(value)))  # names of files may hold line ends
    console.print(facts)
    if document.not_measured:
        _title(console, "Not available")
    for gap in document.not_measured:
        passes = figures.enumerate_words(gap.passes)
        state = f"; {gap.state}" if gap.state not in ("ran", "unavailable") else ""
        where = f"{'passes' if len(gap.passes) > 1 else 'pass'} {passes}{state}" if passes else "before the passes"
        lost = figures.some(gap.lost, max(NAMES, len(gap.asked)))
        _item(console, f"{lost} ({where}): {explain(gap.reason, gap.remedy)}")
    if document.notes:
        _title(console, "Notes")
    for note in document.notes:
        _item(console, note)


def _title(console: Console, text: str) -> None:
    console.print()
    console.print(Text(text, style="bold"))


def _item(console: Console, text: str, indent: int = 2) -> None:
    """Of bounded length: a third party's may have megabytes."""
    console.print(Padding(Text(one_line(text), overflow="fold"), (0, 0, 0, indent)))


def _facts(document: Document, glyphs: Glyphs) -> list[tuple[str, str]]:
    facts = [("run", f"{document.run.name}, {document.run.created}")]
    facts += _workload(document, glyphs)
    facts.append(("machine", glyphs.separator.join(_machine(document))))
    facts += _cores(document)
    versions = [f"{name} {number}" for name, number in document.run.versions.items()]
    facts.append(("software", glyphs.separator.join([f"hwprof {document.run.hwprof_version}", *versions])))
    for number, record in enumerate(document.passes):
        facts.append(("" if number else "passes", _pass(record)))
    effects = _effects(document, glyphs)
    facts += [("" if number else "overhead", text) for number, text in enumerate(effects)]
    cpu_time = document.part(CpuTime)
    if cpu_time is not None:
        facts.append(("CPU time", _cpu_time(cpu_time, document.whole, glyphs)))
    return facts


def _workload(document: Document, glyphs: Glyphs) -> list[tuple[str, str]]:
    workload = document.workload
    if workload is None:
        return [("workload", "not available: no pass built it")]
    words = [
        workload.name,
        f"{figures.amount(workload.parameters, glyphs)} parameters{' (fused)' if workload.fused else ''}",
        f"weights: {workload.weights}",
        f"batch {workload.batch}",
        plural(workload.threads, "thread"),
    ]
    facts = [("workload", glyphs.separator.join(words))]
    if workload.variant is not None:
        differs = variant.agreement(workload.variant, glyphs)
        facts.append(("variant", f"{variant.name(workload.variant)}{f': outputs agree {differs}' if differs else ''}"))
    if workload.sources:
        shapes = f" as {', '.join(workload.input_shapes)}" if workload.input_shapes else ""
        names = ", ".join(PurePath(source).name for source in workload.sources[:3])
        images = f"{figures.images(workload)} per iteration"
        if workload.images_there is not None:
            images += f" (--all-images: all {workload.images_there:,})"
        facts.append(("inputs", f"{names}{_more(workload.sources)}{shapes}{glyphs.separator}{images}"))
        facts += _video(workload.video)
        facts += _rate(document, glyphs)
    elif workload.input_shapes:
        facts.append(("inputs", ", ".join(workload.input_shapes)))
    if workload.results:
        facts.append(("results", "; ".join(workload.results[:3]) + _more(workload.results)))
    return facts


def _video(video: VideoRecord | None) -> list[tuple[str, str]]:
    """``640x480, 25 fps, 300 frames, h264``, as far as it says so itself."""
    if video is None:
        return []
    words = [f"{video.width}x{video.height}"]
    words += [f"{video.fps:g} fps"] if video.fps is not None else []
    words += [plural(video.frames, "frame")] if video.frames is not None else []
    return [("video", ", ".join([*words, *filter(None, [video.codec])]))]


def _rate(document: Document, glyphs: Glyphs) -> list[tuple[str, str]]:
    rates = document.part(Throughput)
    if rates is None:
        return []
    per_s = f"{figures.noun_of_images(document.workload)}s/s"
    words = [
        f"{figures.three_digits(rates.inference_per_s)} {per_s} of the inference",
        f"{figures.three_digits(rates.end_to_end_per_s)} {per_s} end to end",
    ]
    return [("rate", glyphs.separator.join(words))]


def _more(items: list[str]) -> str:
    return f" and {len(items) - 3} more" if len(items) > 3 else ""


def _machine(document: Document) -> list[str]:
    machine = document.machine
    cores = f" ({plural(machine.physical_cores, 'core')})" if machine.physical_cores else ""
    words = [
        machine.processor,
        f"{plural(machine.logical_processors, 'CPU')}{cores}",
        f"{machine.memory_bytes / (1 << 30):.1f} GiB",
        machine.system,
        f"Linux {machine.kernel}",
    ]
    if machine.usable_processors < machine.logical_processors:
        words.append(f"{machine.usable_processors} of its CPUs allowed")
    if machine.cpu_limit is not None:
        words.append(f"limited to {machine.cpu_limit:.3g} CPUs")
    if machine.hypervisor:
        words.append(f"virtual ({machine.hypervisor})")
    if machine.governor:
        words.append(f"governor {machine.governor}")
    if not machine.has_core_pmu:
        words.append("no hardware counters")
    return words


def _cores(document: Document) -> list[tuple[str, str]]:
    """The kinds of core where there are several; which processor's events were counted with; that it is unknown."""
    kinds = document.cores
    if len(kinds) > 1:
        words = [f"{kind.name or 'unknown'} ({kind.pmu}): {figures.ranges(kind.cpus)}" for kind in kinds]
        return [("" if number else "cores", text) for number, text in enumerate(words)]
    if any(kind.name is None for kind in kinds):
        return [("cores", "not in the event catalogue: generic events only")]
    return [("cores", kind.name) for kind in kinds if kind.name is not None]


def _pass(record: PassInfo) -> str:
    took = f" in {record.seconds:.1f} s" if record.seconds is not None else ""
    if record.status != "completed":
        return f"{record.name}: {record.status}{took}: {record.reason or 'no reason recorded'}"
    kinds = [(record.warmup, "warm-up"), (record.timed, "timed"), (record.counted, "counted"), (record.bare, "bare")]
    words = [f"{number} {kind}" for number, kind in kinds if number]
    words += [f"{number} {name} only" for name, number in Counter(record.alone).items()]
    early = f"; {record.reason}" if record.reason else ""
    return f"{record.name}: {record.status}{took}; iterations: {', '.join(words) or 'none'}{early}"


def _effects(document: Document, glyphs: Glyphs) -> list[str]:
    effect = document.part(Overhead)
    if effect is None:
        return []
    of = f" of its time in {document.figures_from}"
    lines = [
        ("watching each layer", effect.watching, effect.missing_watching, ""),
        ("counter reads at layer edges", effect.counting, effect.missing_counting, ""),
        ("pass trace", effect.trace, effect.missing_trace, of),
    ]
    return [
        f"{what}: {missing}" if found is None else f"{what}: {document.whole} {slowdown(found, glyphs, of)}"
        for what, found, missing, of in lines
        if found is not None or missing is not None
    ]


UNKNOWN: Final = 1.0
"""An error of a slowdown that says nothing any more: it may as well be twice as slow."""


def slowdown(effect: Effect, glyphs: Glyphs, of: str = "") -> str:
    """``×1.013 ±0.004 (20 vs 4 iterations)``, and the layers' own; or that it cannot be told from noise."""
    iterations = f"({effect.observed_iterations} vs {effect.base_iterations} iterations)"
    if effect.error is None:
        return f"slowdown not distinguishable from noise {iterations}"
    if effect.error > UNKNOWN and not effect.distinguishable:
        return f"slowdown not known: iterations differ too much {iterations}"
    error = f"{glyphs.plus_minus}{effect.error:.{figures.ratio_decimals(effect.ratio)}f}"
    if not effect.distinguishable:
        points = f"{glyphs.plus_minus}{100 * effect.error:.1f} points"
        return f"slowdown not distinguishable from noise, {points} {iterations}"
    layers = ""
    if effect.layers_median is not None and effect.layers_p25 is not None and effect.layers_p75 is not None:
        low, middle, high = (
            figures.times_as_long(part, glyphs) for part in (effect.layers_p25, effect.layers_median, effect.layers_p75)
        )
        layers = f"; layers {middle} (quartiles {low}, {high})"
    return f"{figures.times_as_long(effect.ratio, glyphs)} {error}{of} {iterations}{layers}"


def _at_least_a_tenth(percent: float) -> str:
    return f"{percent:.1f}" if percent >= 0.05 else "<0.1"


def _cpu_time(found: CpuTime, whole: str, glyphs: Glyphs) -> str:
    per_iteration = f"{figures.milliseconds(found.process_cpu_time_ns)} ms per iteration"
    error = f" {glyphs.plus_minus}{_at_least_a_tenth(100 * found.error)}" if found.error is not None else ""
    if not found.resolved:
        tick = f"{found.tick_ns / 1e6:.3g} ms"
        known = f"known to{error}%" if error else f"and the kernel's account is right to ticks of {tick}"
        return f"accounted for {glyphs.dash}: {per_iteration}, {known}"
    shares = {"layers": found.layers, UNATTRIBUTED: found.rest_of_iteration}
    if whole == INFERENCE:
        outside = {f"outside {INFERENCE}": found.rest_of_iteration}
        shares |= {UNATTRIBUTED: found.rest_of_inference} | outside
    # beside layers that overlap, which are counted twice, the rest would be negative
    parts = ", ".join(
        f"{name} {glyphs.dash if share is None or share < OVERLAP else f'{100 * share:.1f}%'}"
        for name, share in shares.items()
    )
    overlap = any(share is not None and share < OVERLAP for share in shares.values())
    why = "; layers overlap, in threads of the model's own, and count twice" if overlap else ""
    why += f"; not known: {found.unknown}" if found.unknown is not None else ""
    return f"accounted for {100 * found.accounted_for:.1f}%{error} of {per_iteration}: {parts}{why}"
