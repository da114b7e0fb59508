"""Figures as people read them: units that fit, as many digits as mean something, a dash for what was not measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from hwprof.report.document.figures import Times
from hwprof.run.manifest import WorkloadRecord

SCALES: Final = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
LEAST: Final = 1e-4
"""Figures that are smaller than that are not worth their digits."""

ALIKE: Final = 0.01
"""Average images that differ by no more pixels are called alike."""

NEAR: Final = 0.1
"""To 1: ratios of which the third decimal is of interest."""

BAR: Final = 8
"""Characters of a share's bar in a table."""

EIGHTHS: Final = " ▏▎▍▌▋▊▉"


class Glyphs(NamedTuple):
    """The characters beyond ASCII, for terminals that have them and for those that have not."""

    dash: str
    plus_minus: str
    ellipsis: str
    block: str
    modelled: str
    multiplexed: str
    instrumented: str
    different_iterations: str
    separator: str
    times: str  # of a ratio
    slots: str  # parts of a stacked bar
    rule: str  # below a table's header
    point: str  # in a plot
    heights: str  # of a value over time, from the lowest to the highest


UNICODE: Final = Glyphs("–", "±", "…", "█", "°", "†", "~", "‡", " · ", "×", "█▓▒░·", "─", "∘", "▁▂▃▄▅▆▇█")
ASCII: Final = Glyphs("-", "+-", "..", "#", "*", "+", "~", "^", ", ", "x", "#x=.'", "-", "o", "_.-~=+*#")


def glyphs_of(encoding: str) -> Glyphs:
    """Those that a terminal with this encoding has."""
    return UNICODE if encoding.lower().startswith("utf") else ASCII


MOST_DECIMALS: Final = 3
"""Of milliseconds."""


def milliseconds(ns: float) -> str:
    """Nanoseconds as milliseconds with three digits (below 1 ms: microseconds are the last)."""
    ms = ns / 1e6
    return f"{ms:,.0f}" if ms >= 99.95 else f"{ms:.1f}" if ms >= 9.995 else f"{ms:.2f}" if ms >= 0.9995 else f"{ms:.3f}"


def time_with_spread(times: Times | None, glyphs: Glyphs) -> str:
    """The median with the median absolute deviation, in the median's own decimals, or as many as a smaller deviation
    needs: ``12.3 ±0.1``, ``140.1 ±0.3``; of one repetition the time alone."""
    if times is None:
        return glyphs.dash
    median = milliseconds(times.median_ns)
    if times.mad_ns is None:
        return median
    spread_ms, own = times.mad_ns / 1e6, len(median.partition(".")[2])
    decimals = next((more for more in range(own, MOST_DECIMALS) if round(spread_ms, more)), MOST_DECIMALS)
    if decimals > own and spread_ms > 0:
        median = f"{times.median_ns / 1e6:,.{decimals}f}"
    else:
        decimals = own
    return f"{median} {glyphs.plus_minus}{spread_ms:,.{decimals}f}"


def amount(value: float | None, glyphs: Glyphs) -> str:
    """A count with three digits and its scale: ``36.9 M``; with an exponent where no scale is large enough. A dash for
    what is no number."""
    if value is None or not math.isfinite(value):
        return glyphs.dash
    if abs(value) >= 1000 * SCALES[0][0]:
        return f"{value:.3g}"
    for size, unit in SCALES:
        if abs(value) >= 0.9995 * size:
            return f"{three_digits(value / size)} {unit}"
    return f"{value:.3g}"


def reading(value: float, glyphs: Glyphs) -> str:
    """A measured value with three digits, zeros among them, and its scale: ``3.90``; whole numbers below 1000 whole."""
    small = LEAST <= abs(value) < 0.9995 * SCALES[-1][0]
    return three_digits(value) if small and not value.is_integer() else amount(value, glyphs)


def macs(number: int | None, glyphs: Glyphs) -> str:
    """Multiply-accumulates; a dash where a layer has none."""
    return amount(number or None, glyphs)


def calls(number: float | None, glyphs: Glyphs) -> str:
    """How often something is called in an iteration."""
    return glyphs.dash if number is None else f"{number:g}"


def three_digits(value: float) -> str:
    """Three significant digits, never an exponent."""
    if value == 0 or not math.isfinite(value):
        return f"{value:.0f}"
    decimals = max(0, 2 - math.floor(math.log10(abs(float(f"{value:.2e}")))))
    return f"{value:,.{decimals}f}"


def at_most_all(share: float | None) -> float | None:
    """Of an efficiency, busy time by samples over elapsed time by the clock: a little more than all is all."""
    return None if share is None else min(share, 1.0)


def percent(share: float | None, glyphs: Glyphs) -> str:
    """A share as a percentage."""
    return glyphs.dash if share is None else f"{100 * share:.1f}%"


def share(value: float | None, low: float | None, high: float | None, glyphs: Glyphs) -> str:
    """A share with half of its interval, where it has one, in percent: ``35.2% ±0.8``."""
    if value is None or low is None or high is None:
        return percent(value, glyphs)
    return f"{100 * value:.1f}% {glyphs.plus_minus}{50 * (high - low):.1f}"


def decimal(value: float | None, digits: int, glyphs: Glyphs) -> str:
    """A figure with a fixed number of decimals; what is not 0 never reads as 0: very small ones keep one digit, and
    those below ``LEAST`` are said to be below it."""
    if value is None:
        return glyphs.dash
    text = f"{value:,.{digits}f}"
    if value == 0 or text.strip("-0.,"):
        return text
    if abs(value) < LEAST:
        return f"<{LEAST:g}" if value > 0 else f">-{LEAST:g}"
    return f"{value:.1g}"


def bar(share: float | None, width: int, glyphs: Glyphs) -> str:
    """A share of 0…1 as a bar of at most ``width`` characters."""
    eighths = round(8 * width * min(max(share or 0.0, 0.0), 1.0))
    if glyphs.block != "█":
        return glyphs.block * round(eighths / 8)
    return "█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()


def bars(shares: Sequence[float | None], glyphs: Glyphs, width: int = BAR) -> list[str]:
    """Bars in proportion to the largest share, which fills the ``width``."""
    largest = max((share for share in shares if share is not None), default=0.0)
    return [bar(share / largest if share and largest else 0.0, width, glyphs) for share in shares]


def stacked_bar(shares: Sequence[float], width: int, glyphs: Glyphs) -> str:
    """Shares of one whole, one after the other, each in a character of its own; they fill ``width`` where they add up
    to 1. Shares below 0 take no room."""
    text, reached = "", 0.0
    for place, share in enumerate(shares):
        reached += max(share, 0.0)
        end = min(round(width * reached), width)
        text += slot_glyph(place, glyphs) * (end - len(text))
    return text


def level(share: float, glyphs: Glyphs) -> str:
    """The character of a height of 0…1."""
    return glyphs.heights[min(int(share * len(glyphs.heights)), len(glyphs.heights) - 1)]


def levels(glyphs: Glyphs) -> tuple[str, str]:
    """The lowest and the highest."""
    return glyphs.heights[0], glyphs.heights[-1]


def slot_glyph(place: int, glyphs: Glyphs) -> str:
    """The character of a part of a stacked bar."""
    return glyphs.slots[place % len(glyphs.slots)]


def times_as_long(ratio: float, glyphs: Glyphs) -> str:
    """A ratio of times, with more digits where it is near 1: ``×1.013``, ``×2.49``, ``×11.1``."""
    return f"{glyphs.times}{ratio:,.{ratio_decimals(ratio)}f}"


def ratio_decimals(ratio: float) -> int:
    """How many a ratio of times is shown with."""
    return 3 if abs(ratio - 1) < NEAR else 2 if ratio < 9.995 else 1


def shorten(text: str, width: int, ellipsis: str, head: int | None = None) -> str:
    """The text in at most ``width`` characters: cut in the middle, where paths say least. ``head``: how many characters
    stay before the cut; None: a third."""
    if len(text) <= width:
        return text
    if width <= len(ellipsis):
        return text[:width]
    kept = width - len(ellipsis)
    if head is None:
        head = kept // 3
    return text[:head] + ellipsis + text[len(text) - (kept - head) :]


def plural(number: int, noun: str, plural_form: str | None = None) -> str:
    """``1 layer``, ``2 layers``."""
    return f"{number:,} {noun if number == 1 else plural_form or noun + 's'}"


def noun_of_images(workload: WorkloadRecord | None) -> str:
    """What its inputs are: images, or a video's frames."""
    return "frame" if workload is not None and workload.video is not None else "image"


def images(workload: WorkloadRecord) -> str:
    """Of an iteration: ``2 images``, ``16 of 5,000 frames``, ``8 of 60 images, which have 11% fewer pixels``."""
    taken, noun = len(workload.sources), noun_of_images(workload)
    if workload.images_there is None:
        return plural(taken, noun)
    text, more = f"{taken:,} of {plural(workload.images_there, noun)}", workload.more_pixels or 0.0
    if abs(more) <= ALIKE:
        return text
    return f"{text}, which have {abs(more):.0%} {'more' if more > 0 else 'fewer'} pixels"


def enumerate_words(words: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def some(names: Sequence[str], most: int) -> str:
    """A list of names; of a long one its beginning and its length."""
    hidden = len(names) - most
    return ", ".join(names) if hidden < 2 else f"{', '.join(names[:most])} and {hidden} more"


def ranges(numbers: Sequence[int]) -> str:
    """Processor numbers as the kernel lists them: ``CPUs 0-3,8``."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and number == parts[-1][-1] + 1:
            parts[-1] = [parts[-1][0], number]
        else:
            parts.append([number])
    return "CPUs " + ",".join("-".join(map(str, part)) for part in parts)
