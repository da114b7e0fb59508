"""What a power meter's lines say: watts, or a time and watts."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Final

SEPARATOR: Final = re.compile(r"[\s,;]+")

MOST_WATTS: Final = 1e6
"""A machine takes less; what is above is another unit, or no power."""

LEAST_UNIX_S: Final = 1_000_000_000
"""2001: a smaller number is no unix time."""


@dataclass
class Read:
    """The readings of a meter: (unix time in ns or None, watts), and how many lines were none."""

    readings: list[tuple[int | None, float]] = field(default_factory=list)
    refused: int = 0


def read(lines: Iterable[str]) -> Read:
    """Empty lines, comments (``#``) and what stands before the first reading (a header) are none, and not counted."""
    found = Read()
    for line in lines:
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        reading = parse(text)
        if reading is not None:
            found.readings.append(reading)
        else:
            found.refused += bool(found.readings)
    return found


def parse(line: str) -> tuple[int | None, float] | None:
    """``36.5``, ``36.5 W``, ``1790000000.25,36.5``, ``2026-11-25T08:00:00.25Z;36.5``, ``2026-11-25 08:00:00.25 36.5``;
    what stands behind the watts is not read. A time without a zone is the machine's own. None: it is no reading."""
    fields = [field for field in SEPARATOR.split(line.strip()) if field]
    for first in (2, 1):  # a date and a time are two fields
        time_ns = _time_ns(" ".join(fields[:first])) if len(fields) > first else None
        if time_ns is not None:
            watts = _watts(fields[first])
            return None if watts is None else (time_ns, watts)
    watts = _watts(fields[0]) if fields else None
    alone = len(fields) == 1 or (len(fields) == 2 and fields[1].upper() in ("W", "WATT", "WATTS"))
    return (None, watts) if watts is not None and alone else None


def _time_ns(text: str) -> int | None:
    """Unix nanoseconds; None: it is no time of these years."""
    try:
        seconds = Decimal(text)  # a float would be off by up to 0.2 us
    except InvalidOperation:
        try:
            seconds = Decimal(str(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()))
        except (ValueError, OverflowError, OSError):
            return None
    known = seconds.is_finite() and LEAST_UNIX_S <= seconds < 10 * LEAST_UNIX_S
    return int(seconds * 1_000_000_000) if known else None


def _watts(text: str) -> float | None:
    try:
        watts = float(text.rstrip("Ww"))
    except ValueError:
        return None
    return watts if math.isfinite(watts) and 0 <= watts <= MOST_WATTS else None
