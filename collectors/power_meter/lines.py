"""What a power meter's lines say: watts, or a time and watts."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Final

SEPARATOR: Final = re.compile(r"[\s,]+")
OF_SEMICOLONS: Final = re.compile(r"[\s;]+")
"""In lines that have any: there a comma may begin the decimals."""

DECIMAL_COMMA: Final = re.compile(r"([+-]?\d+),(\d+[A-Za-z]*)")

MOST_WATTS: Final = 1e6
"""A machine takes less; what is above is another unit, or no power."""

SCALES: Final = {"": 1.0, "w": 1.0, "watt": 1.0, "watts": 1.0, "mw": 1e-3, "kw": 1e3}
"""Watts of a unit; a megawatt is none of a machine's."""

NUMBER: Final = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)([A-Za-z]*)")

POWER: Final = re.compile(r"watt|power|^\W*p?\W*w\W*$", re.IGNORECASE)
"""In the name of a column."""

LEAST_UNIX_S: Final = 1_000_000_000
"""2001: a smaller number is no unix time."""


@dataclass
class Read:
    """The readings of a meter: (unix time in ns or None, watts), and how many lines were none."""

    readings: list[tuple[int | None, float]] = field(default_factory=list)
    refused: int = 0


class Reader:
    """Of lines one after the other. Empty lines, comments (``#``) and what stands before the first reading are none,
    and not ``refused``; of these a header may say which column is the power."""

    def __init__(self) -> None:
        self.refused = 0
        self._from_last: int | None = None  # the power's column: a time may have taken two fields
        self._began = False

    def reading(self, line: str) -> tuple[int | None, float] | None:
        """What a line says."""
        text = line.strip()
        if not text or text.startswith("#"):
            return None
        found = parse(text, self._from_last)
        if found is not None:
            self._began = True
        elif self._began:
            self.refused += 1
        else:
            self._from_last = _named(_fields(text))
        return found


def read(lines: Iterable[str]) -> Read:
    """All of them."""
    reader = Reader()
    readings = [found for found in map(reader.reading, lines) if found is not None]
    return Read(readings, reader.refused)


def parse(line: str, from_last: int | None = None) -> tuple[int | None, float] | None:
    """``36.5``, ``36.5 W``, ``36500 mW``, ``1790000000.25,36.5``, ``2026-11-25T08:00:00.25Z;36,5``,
    ``2026-11-25 08:00:00.25 36.5``. A time without a zone is the machine's own.

    ``from_last``: where the power stands among several columns behind the time, counted from the last one (1). None: it
    is no reading; also where there are more numbers and nobody says which one is the power.
    """
    fields = _fields(line)
    for first in (2, 1):  # a date and a time are two fields
        time_ns = _time_ns(" ".join(fields[:first])) if len(fields) > first else None
        if time_ns is not None:
            behind = fields[first:]
            if from_last is not None and 1 < len(behind) >= from_last:
                behind = [behind[-from_last]]
            watts = _power(behind)
            return None if watts is None else (time_ns, watts)
    watts = _power(fields)
    return None if watts is None else (None, watts)


def _fields(line: str) -> list[str]:
    separator = OF_SEMICOLONS if ";" in line else SEPARATOR
    fields = [field for field in separator.split(line.strip()) if field]
    if separator is OF_SEMICOLONS:
        return [DECIMAL_COMMA.sub(r"\1.\2", field) if DECIMAL_COMMA.fullmatch(field) else field for field in fields]
    return fields


def _named(header: list[str]) -> int | None:
    """Which column of a header is the only one that is named as a power, from the last one."""
    found = [place for place, name in enumerate(reversed(header), 1) if POWER.search(name)]
    return found[0] if len(found) == 1 else None


def _power(fields: list[str]) -> float | None:
    """Watts of ``36.5``, ``36.5W``, ``36.5 W``, ``36500 mW``."""
    number = NUMBER.fullmatch(fields[0]) if fields else None
    if number is None or len(fields) > 2 or (len(fields) == 2 and number[2]):
        return None
    unit = fields[1] if len(fields) == 2 else number[2]
    scale = SCALES.get(unit.lower())
    if scale is None:
        return None
    watts = float(number[1]) * scale
    return watts if math.isfinite(watts) and 0 <= watts <= MOST_WATTS else None


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
