"""What a noisy run says before everything else, and what its tables say of iterations that were left out."""

from __future__ import annotations

from hwprof.report.document.document import Document
from hwprof.report.document.noise import Noise
from hwprof.report.text import figures
from hwprof.report.text.figures import Glyphs, plural
from hwprof.unavailable import explain

QUIETER = "hwprof collect --wait-quiet"


def warnings(document: Document, glyphs: Glyphs) -> list[str]:
    """What is wrong with the times, and what to do; nothing of a quiet run."""
    found = document.part(Noise)
    if found is None:
        return []
    said = []
    if found.others:
        said.append(_others(found, document, glyphs))
    if found.spread and found.median_over_min is not None:
        median = f"times vary: the median is {figures.times_as_long(found.median_over_min, glyphs)} the minimum"
        said.append(explain(median, None if found.others else f"{QUIETER}, or more --iterations"))
    if found.drift is not None:
        change = "longer" if found.drift > 0 else "shorter"
        drift = f"times drift: the last third of the iterations takes {abs(found.drift):.0%} {change} than the first"
        said.append(explain(drift, "more --warmup"))
    return said


def _others(found: Noise, document: Document, glyphs: Glyphs) -> str:
    """What others took, how many iterations have it, and what helps."""
    shares = {"preempted": found.preempted_share, "stolen by the hypervisor": found.stolen_share}
    parts = [f"{what} {figures.percent(share, glyphs)}" for what, share in shares.items() if share is not None]
    if found.timed_left_out:
        which = f"{plural(found.timed_left_out, 'disturbed iteration')} left out, {found.timed} timed ones remain"
    else:
        which = f"{found.disturbed} of {plural(found.iterations, 'iteration')} disturbed: all are kept, see the minima"
    remedy = f"end other programs, or {QUIETER}"
    threads = document.workload.threads if document.workload is not None else 1
    if threads > document.machine.logical_processors:
        remedy = f"--threads {document.machine.logical_processors}, or {QUIETER}"
    return explain(f"other programs had the processors ({', '.join(parts)}); {which}", remedy)


def timed(document: Document, iterations: int) -> str:
    """``14 timed iterations``, and how many of them were left out. ``iterations``: as the pass has them."""
    found = document.part(Noise)
    left_out = found.timed_left_out if found is not None else 0
    if not left_out:
        return plural(iterations, "timed iteration")
    return f"{iterations - left_out} of {plural(iterations, 'timed iteration')} ({left_out} disturbed)"
