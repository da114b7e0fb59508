"""What became of remedies that were tried: the same workload with and without them."""

from __future__ import annotations

from typing import Final

import msgspec

WORTH: Final = 0.05
"""A gain that would be worth a word."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """Of a time: -0.23 is 23% less, with the ends of its 95% interval."""

    value: float
    low: float
    high: float

    @property
    def helps(self) -> bool:
        """Whether less time is certain."""
        return self.high < 0

    @property
    def harms(self) -> bool:
        """Whether more time is certain."""
        return self.low > 0

    @property
    def in_vain(self) -> bool:
        """Whether it is certain not to help: more time, or no gain that is worth a word."""
        return self.harms or (not self.helps and self.low > -WORTH)


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """Between what a model gives with and without: the largest over the largest magnitude of the same tensor."""

    largest: float
    tensors: int  # that could be compared
    others: int = 0  # of other shapes or types, or not finite


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One remedy, or several together. Where it was not measured, ``reason`` says why."""

    remedies: list[str]
    titles: list[str]
    adopt: list[str] = []  # lines that do the same in the user's own program
    inference: Change | None = None
    iteration: Change | None = None
    processes: int = 0  # fresh ones, each beside one without the remedy
    calls: int = 0  # iterations that were measured, of all of them
    inference_ns: int | None = None  # of an iteration, where nobody disturbs it
    peak_bytes: int | None = None  # resident, of the process
    peak_without_bytes: int | None = None
    outputs: Difference | None = None
    exact: bool = True  # results may differ by the order of sums at most
    reason: str | None = None


class Trials(msgspec.Struct, frozen=True, kw_only=True):
    """Of one run's workload, on the machine that it was measured on."""

    created: str  # ISO 8601 with offset
    seconds: float
    inference_ns: int | None  # of an iteration, without remedies
    rows: list[Trial]
    others_share: float | None = None  # of all processors' time, that others used meanwhile; None: not told
    ended: str | None = None  # why before it was done: "interrupted", "the time was over"

    @property
    def best(self) -> Trial | None:
        """What is certain to help, and helps most, of what leaves results as they are; no more than it takes."""
        return self._best(exact=True)

    @property
    def best_inexact(self) -> Trial | None:
        """What helps more than that, and changes results."""
        found, exact = self._best(exact=False), self.best
        if found is None or exact is None or found.inference is None or exact.inference is None:
            return found
        return found if found.inference.value < exact.inference.value else None

    def _best(self, *, exact: bool) -> Trial | None:
        """Of those that are as good as the best one, as far as its interval tells, the one with the fewest remedies."""
        helping = [
            (one.inference, one)
            for one in self.rows
            if one.exact is exact and one.inference is not None and one.inference.helps
        ]
        if not helping:
            return None
        limit = min(helping, key=lambda item: item[0].value)[0].high
        as_good = [item for item in helping if item[0].value <= limit]
        return min(as_good, key=lambda item: (len(item[1].remedies), item[0].value))[1]
