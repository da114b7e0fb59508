"""Marks for py-spy's clock: functions of names of their own, each of which runs for a known while.

py-spy's stamps begin when it does, which nobody else knows. A look that meets a mark's function fell into the time in
which this ran. They are shorter than the distance of two looks, so that each look meets another one.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Final

from collectors.pyspy.stacks import Frame
from hwprof.collector import clocks
from hwprof.errors import HwprofError
from hwprof.run.manifest import ClockRecord

NAME: Final = "hwprof_clock_mark"

TOKEN_BYTES: Final = 8
"""Of what is drawn for the names of a pass: no function of the user's has such a name."""

CLOCK: Final = "py-spy"

LOOKS: Final = 12
"""Of py-spy's, at least so many meet marks at the begin of a pass, and as many at its end."""

PER_LOOK: Final = 8
"""Marks in the distance of two looks: how exactly each tells the time."""

EXACT: Final = 2
"""Marks of up to so many times the length that they should have are as good as any."""

MOST_DRIFT: Final = 1e-3
"""Relative; clocks of one machine differ by some 1e-4 at most. A fit that needs more was given wrong marks."""


def _mark(until_ns: int, clock_ns: Callable[[], int]) -> None:
    while clock_ns() < until_ns:
        pass


FILE: Final = _mark.__code__.co_filename


class Marks:
    """The marks of a pass; ``times_ns`` by name: CLOCK_MONOTONIC before and after each."""

    def __init__(self, rate_hz: int, clock_ns: Callable[[], int] = time.monotonic_ns) -> None:
        """``clock_ns``: bound before the model's code runs, which may put another one into ``time`` for its tests."""
        self.rate_hz = rate_hz
        self._clock_ns = clock_ns
        self._prefix = f"{NAME}_{secrets.token_hex(TOKEN_BYTES)}_"
        self._length_ns = 1_000_000_000 // (rate_hz * PER_LOOK)
        self.times_ns: dict[str, tuple[int, int]] = {}

    def make(self) -> None:
        """Takes ``LOOKS`` distances of two looks."""
        for _ in range(LOOKS * PER_LOOK):
            name = f"{self._prefix}{len(self.times_ns)}"
            function = _called(name)
            begin_ns = self._clock_ns()
            function(begin_ns + self._length_ns, self._clock_ns)
            self.times_ns[name] = (begin_ns, self._clock_ns())

    def has(self, frame: Frame) -> bool:
        """Whether it is one of these marks."""
        return frame.function in self.times_ns and frame.file == FILE

    def clock(self, frames: Iterable[Frame]) -> ClockRecord:
        """The conversion of py-spy's clock. Raises ``HwprofError`` where the marks do not tell it."""
        frames = list(frames)
        met = self.met(frames)
        if not met:
            raise HwprofError("py-spy met none of the marks that tell its clock", "a higher --pyspy-rate")
        last = set(list(self.times_ns)[-LOOKS * PER_LOOK :])
        if not any(frame.function in last for frame in frames):
            raise HwprofError("py-spy met no mark at the end of the pass: it had ended, or stood still")
        clock = clocks.fit(CLOCK, met)
        if clock.error_ns > 1e9 / self.rate_hz:
            raise HwprofError(
                f"py-spy's clock is known to {clock.error_ns / 1e6:.1f} ms, no closer than its looks lie to each other",
                "a quieter machine, or a lower --pyspy-rate",
            )
        if abs(clock.drift) > MOST_DRIFT:
            raise HwprofError(f"py-spy's clock cannot be told: by the marks it drifts by {clock.drift * 1e6:.0f} ppm")
        return clock

    def met(self, frames: Iterable[Frame]) -> list[tuple[int, int, int]]:
        """The looks that met a mark, as ``clocks.fit`` wants them: (py-spy's ns, earliest, latest). Marks in which
        others had the processor tell less, and stay out where there are better ones."""
        made: dict[int, list[tuple[int, int, int]]] = {}  # at the begin of the pass, and at its end
        numbers = {name: number for number, name in enumerate(self.times_ns)}
        for frame in filter(self.has, frames):
            mark = frame.begin_ns, *self.times_ns[frame.function]
            made.setdefault(numbers[frame.function] // (LOOKS * PER_LOOK), []).append(mark)
        met = [mark for marks in made.values() for mark in self._in_time(marks)]
        exact = [mark for mark in met if mark[2] - mark[1] <= EXACT * self._length_ns]
        return exact if len(exact) >= LOOKS // 2 else met

    def _in_time(self, marks: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
        """Without those whose stamp, by another one, is late by more than the distance of two looks: py-spy stamps a
        look when it is over, and may lose the processor before. What is late by less makes the clock's error."""
        least = max(low - at for at, low, _ in marks)
        return [mark for mark in marks if least - (mark[2] - mark[0]) <= 1e9 / self.rate_hz]


def _called(name: str) -> Callable[[int, Callable[[], int]], None]:
    """``_mark`` under another name."""
    code = _mark.__code__.replace(co_name=name, co_qualname=name)
    return FunctionType(code, _mark.__globals__, name)
