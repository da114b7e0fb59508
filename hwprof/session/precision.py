"""How well the times of layers are known while a pass goes on, so that it may end when they are known well enough."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import Final

from hwprof.analysis.disturbed import ENOUGH
from hwprof.analysis.intervals import MAD_TO_SIGMA, MEDIAN_TO_MEAN, student_95
from hwprof.analysis.precision import FEWEST, SMALLEST_SHARE
from hwprof.run.manifest import PrecisionRecord

AGAIN_AFTER: Final = 1.1
"""Times as many iterations: a look takes longer the more there are."""


class Precision:
    """Of the times of layers by iteration: of the disturbed ones too while there are too few others, as in the report's
    medians."""

    def __init__(self, wanted: float) -> None:
        """``wanted``: half of the 95% interval of each median, of the median."""
        self._wanted = wanted
        self._layers: tuple[str, ...] = ()  # of the first iteration
        self._times_ns: list[array[int]] = []  # of those, by iteration; -1: not called
        self._disturbed: list[array[int]] = []  # the same of disturbed iterations
        self._next_look = FEWEST

    def add(self, times_ns: Mapping[str, int], *, disturbed: bool = False) -> None:
        """Those of one more iteration."""
        if not (self._times_ns or self._disturbed):
            self._layers = tuple(times_ns)
        kept = self._disturbed if disturbed else self._times_ns
        kept.append(array("q", (times_ns.get(name, -1) for name in self._layers)))

    @property
    def _kept(self) -> list[array[int]]:
        return self._times_ns if len(self._times_ns) >= ENOUGH else self._times_ns + self._disturbed

    def is_reached(self) -> bool:
        """Whether every layer is known so well; asked after each iteration, it looks now and then."""
        number = len(self._kept)
        if number < self._next_look:
            return False
        self._next_look = max(number + 1, int(number * AGAIN_AFTER))
        found = self.look()
        return found is not None and found.error <= self._wanted

    def is_in_reach(self, times: float) -> bool:
        """Whether every layer would be known so well by so many times as many iterations: errors fall with their
        root."""
        found = self.look()
        return found is not None and found.error <= self._wanted * times**0.5

    def look(self) -> PrecisionRecord | None:
        """At the iterations so far; None: too few. Layers that some of them did not call are not asked for."""
        kept = self._kept
        if len(kept) < 2:
            return None
        import numpy as np  # its library starts threads: not before torch's is there

        every = np.array(kept, dtype=np.float64).reshape(len(kept), -1)
        called = np.flatnonzero((every >= 0).all(axis=0))
        times = every[:, called]
        medians = np.median(times, axis=0)
        large = np.flatnonzero((medians > 0) & (medians >= SMALLEST_SHARE * medians.sum()))
        if not len(large):
            return None
        mads = np.median(np.abs(times[:, large] - medians[large]), axis=0)
        errors = _standard_errors(len(times)) * mads / medians[large]
        worst = int(errors.argmax())
        return PrecisionRecord(
            self._wanted, float(errors[worst]), self._layers[called[large[worst]]], len(large), len(times)
        )


def _standard_errors(values: int) -> float:
    """What a MAD of so many values is to be multiplied by for half of their median's 95% interval."""
    return float(student_95(values - 1) * MEDIAN_TO_MEAN * MAD_TO_SIGMA / values**0.5)
