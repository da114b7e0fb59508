"""What remedies brought that were tried: the answer of ``hwprof try``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from hwprof.remedies.catalogue import lines
from hwprof.report.text import figures
from hwprof.report.text.console import make_console
from hwprof.report.text.figures import Glyphs, glyphs_of
from hwprof.report.text.grid import Column, fit, table
from hwprof.run.peaks import NOISY
from hwprof.run.trials import INTERRUPTED, TIME_OVER, Change, Difference, Trial, Trials
from hwprof.unavailable import explain

REMEDY: Final = 40
"""To how many characters a row's remedies may be cut before a column goes instead."""

WIDE: Final = 0.4
"""Of an interval: it is no longer the same on both sides."""

LONGER: Final = 2
"""How many times as long who wants to know more may try it."""

STEP_S: Final = 10

TOO_FEW: Final = "ended before two processes of each"
TOO_NOISY: Final = "not known: too noisy"

EXACT: Final = 1e-4
"""Of the largest magnitude: sums in another order."""


def show(found: Trials, console: Console | None = None, run: str | None = None) -> None:
    """A row for each, those that help first, then what to type for the best. ``run``: as it is typed."""
    console = console or make_console()
    glyphs = glyphs_of(console.encoding)
    tried = [one for one in found.rows if one.inference is not None]
    if tried:
        console.print(table(fit(_columns(tried, glyphs), console.width), glyphs))
    for one in found.rows:
        if not one.works:
            _say(console, f"{_failed(one)}: {' + '.join(one.titles)}: {one.reason or TOO_FEW}")
    console.print()
    _say_what_to_adopt(found, console)
    for note in _notes(found, glyphs, run):
        _say(console, note)


def _failed(one: Trial) -> str:
    """Without the reason."""
    if one.inference is None:
        return "not tried"
    return f"fails{'' if one.earlier is None else ' now'}, though it was measured"


def again(found: Trials, run: str | None) -> str:
    """The command that tries the same for longer; names that are no remedy's are not typed."""
    names = [
        one.remedies[0] for one in found.rows if len(one.remedies) == 1 and one.earlier is None and one.reason is None
    ]
    known = ",".join(name for name in names if lines(name))
    seconds = math.ceil(LONGER * found.seconds / STEP_S) * STEP_S
    parts = ["hwprof try", run or "", f"--remedies {known}" if known else "", f"--time {seconds}"]
    return " ".join(part for part in parts if part)


def _say_what_to_adopt(found: Trials, console: Console) -> None:
    """Of what leaves results as they are, and of what changes them."""
    exact, inexact = found.best, found.best_inexact
    still = "faster still" if exact is not None else "faster"
    for text, best in (("to adopt", exact), (f"{still}, and results change", inexact)):
        if best is not None:
            console.print(Text.assemble(f"{text}: ", (" + ".join(best.titles), "bold"), why_it(found, best)))
            say_lines(best, console)
            console.print()
    if exact is None and any(one.inference is not None for one in found.rows):
        which = "what was tried" if inexact is None else "what leaves results as they are"
        _say(console, f"of {which}, nothing is certain to help", indent=0)


def say_lines(best: Trial, console: Console) -> None:
    """What does the same in the user's own program, to be copied."""
    for line in best.adopt:
        _say(console, line)


def why_it(found: Trials, best: Trial) -> str:
    """And not what gained more; empty where nothing did."""
    largest = found.largest_beside(best)
    if largest is None:
        return ""
    fewer = len(best.remedies) < len(largest.remedies)
    why = "fewer changes" if fewer else "less memory" if largest.takes_memory else "a surer gain"
    return f" (as good as {' + '.join(largest.titles)} as far as is known, with {why})"


def change_text(change: Change, glyphs: Glyphs) -> str:
    """``-23.4% ±1.1``, the wider side of the interval; ``-73% (-96 to +93)`` of one that is too wide for that; no
    figure where it could as well be several times as long as shorter."""
    if change.too_noisy:
        return TOO_NOISY
    if change.high - change.low > WIDE:
        return f"{change.value:+.0%} ({100 * change.low:+.0f} to {100 * change.high:+.0f})"
    half = max(change.high - change.value, change.value - change.low)
    return f"{change.value:+.1%} {glyphs.plus_minus}{100 * half:.1f}"


def verdict(change: Change | None) -> str:
    """What the interval allows to say."""
    if change is None:
        return "not known"
    if change.helps:
        return "faster"
    return "slower" if change.harms else "no gain" if change.in_vain else "not certain"


def outputs_text(found: Difference | None, glyphs: Glyphs) -> str:
    """How far results are from those without."""
    if found is None or not (found.tensors or found.unequal):
        return glyphs.dash
    if found.unequal:
        return "not equal"
    return f"{found.largest:.0e}" if found.largest else "0"


def _columns(rows: Sequence[Trial], glyphs: Glyphs) -> list[Column]:
    times = [one.inference for one in rows if one.inference is not None]
    whole = [change_text(one.iteration, glyphs) if one.iteration is not None else glyphs.dash for one in rows]
    inference = [change_text(one, glyphs) for one in times]
    columns = [
        Column("remedy", [" + ".join(one.titles) for one in rows], right=False, least=REMEDY),
        Column("inference", inference),
        Column("", [verdict(one.inference) if one.works else "fails" for one in rows], right=False),
        Column("iteration", whole, 2),
        Column("peak memory", [_memory(one, glyphs) for one in rows], 1),
        Column("outputs differ", [outputs_text(one.outputs, glyphs) for one in rows], 1),
        Column("processes", [str(one.processes) for one in rows], 3),
    ]
    return [column for column in columns if column.header != "iteration" or column.cells != inference]


def _memory(one: Trial, glyphs: Glyphs) -> str:
    if one.peak_bytes is None or one.peak_without_bytes is None:
        return glyphs.dash
    return f"{one.peak_bytes / one.peak_without_bytes - 1:+.0%}"


def _notes(found: Trials, glyphs: Glyphs, run: str | None) -> list[str]:
    without = f", {figures.milliseconds(found.inference_ns)} ms of inference without" if found.inference_ns else ""
    notes = []
    earlier = [one for one in found.rows if one.earlier is not None]
    if any(one.inference is not None for one in found.rows):
        latest = "; the latest trial" if earlier else ""
        notes.append(
            f"change of the time with its 95% interval: fresh processes with and without, in turn{latest}{without};"
            f" {found.seconds:.0f} s in all"
        )
    if earlier:
        names = ", ".join(" + ".join(one.titles) for one in earlier)
        notes.append(f"of an earlier trial, of which the rest that stands here is not: {names}")
    peaks = [one.peak_without_bytes for one in found.rows if one.peak_without_bytes is not None]
    if peaks:
        notes.append(f"peak memory: resident, against {figures.amount(max(peaks), glyphs)}B without")
    if any(one.outputs is not None and one.outputs.largest > EXACT for one in found.rows):
        notes.append("outputs differ: the largest difference over the largest value of the same tensor")
    if any(one.outputs is not None and one.outputs.unequal for one in found.rows):
        notes.append("not equal: other shapes, or not a number where there was one: results change")
    if found.repeatable is False:
        notes.append("outputs are not compared: without a remedy two calls give different ones")
    if found.ended is not None:
        more = again(found, run) if found.ended in (INTERRUPTED, TIME_OVER) else None
        notes.append(explain(f"ended before every interval was narrow: {found.ended}", more))
    if found.others_share is not None and found.others_share > NOISY:
        notes.append(f"others used {found.others_share:.0%} of the processors meanwhile: intervals are wider for it")
    return notes


def _say(console: Console, text: str, indent: int = 2) -> None:
    console.print(Padding(Text(text, overflow="fold"), (0, 0, 0, indent)))
