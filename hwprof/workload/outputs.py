"""What a workload gives: whether two runs of it came to the same, to the bit."""

from __future__ import annotations

from typing import Any

from hwprof.workload.checksum import Checksum


class Outputs:
    """What one iteration gives, output by output. The last one is held until the iteration is over, whether anyone asks
    for its checksum or not: an iteration's time has no checksum in it, and memory is given back behind each alike."""

    def __init__(self, *, timed: bool) -> None:
        """``timed``: of several outputs nothing is added up within the iteration, for somebody asks for its time, or
        nobody for its checksum."""
        self._timed = timed
        self._last: Any = None
        self._number = 0
        self._found = Checksum()

    def add(self, output: Any) -> None:
        """An output of the model."""
        if self._number and not self._timed:
            self._found.add(self._last)
        self._last = output
        self._number += 1

    def checksum(self) -> str | None:
        """16 hexadecimal digits, of all that were added, when they are over; None: they were too many to be held, or
        one of them has none."""
        if self._timed and self._number > 1:
            return None
        if self._number:
            self._found.add(self._last)
        return self._found.text()


def checksum(output: Any) -> str | None:
    """Of one output: 16 hexadecimal digits; None where it has none."""
    found = Checksum()
    found.add(output)
    return found.text()
