"""What became of remedies that were tried: the same workload with and without them."""

from __future__ import annotations

import math
from typing import Annotated, Final

import msgspec

from hwprof.run.peaks import Share

WORTH: Final = 0.05
"""A gain that would be worth a word."""


NOTHING_KNOWN: Final = 2.0
"""Of an interval with 0 in it: what is in its middle means nothing."""

SAME: Final = 1e-3
"""Of the largest magnitude: sums in another order, of many layers."""

MOST_ROWS: Final = 200
MOST_REMEDIES: Final = 10
"""Together, in one row."""

MUCH_MEMORY: Final = 0.1

INTERRUPTED: Final = "interrupted"
TIME_OVER: Final = "the time was over"
"""Why it ended before it was done, where more time would help."""


MOST_CHANGE: Final = 1e9
"""Who says that a time has grown by more has not measured it."""

LONGEST_S: Final = 1e7

Name = Annotated[str, msgspec.Meta(max_length=64)]
Amount = Annotated[int, msgspec.Meta(ge=0, le=1 << 53)]
Positive = Annotated[int, msgspec.Meta(gt=0, le=1 << 53)]


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """Of a time: -0.23 is 23% less, with the ends of its 95% interval."""

    value: float
    low: float
    high: float

    def __post_init__(self) -> None:
        """Raises ``ValueError`` for what is no interval."""
        if not (-1 <= self.low <= self.value <= self.high <= MOST_CHANGE):
            raise ValueError(f"{self.low} to {self.high} is no interval around {self.value}")

    @property
    def helps(self) -> bool:
        """Whether less time is certain."""
        return self.high < 0

    @property
    def harms(self) -> bool:
        """Whether more time is certain."""
        return self.low > 0

    @property
    def too_noisy(self) -> bool:
        """Whether it could as well be several times as long as shorter."""
        return self.high - self.low > NOTHING_KNOWN and not self.helps and not self.harms

    @property
    def in_vain(self) -> bool:
        """Whether it is certain not to help: more time, or no gain that is worth a word."""
        return self.harms or (not self.helps and self.low > -WORTH)


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """Between what a model gives with and without: the largest over the largest magnitude of the same tensor."""

    largest: Annotated[float, msgspec.Meta(ge=0)]
    mean: Annotated[float, msgspec.Meta(ge=0)] | None = None  # of all their elements; null: an older version's
    tensors: Amount  # that could be compared
    unequal: Amount = 0  # of another shape or type, or not a number or infinite in other places
    others: Amount = 0  # that are no numbers


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One remedy, or several together. Where it was not measured, or failed after that, ``reason`` says why."""

    remedies: Annotated[list[Name], msgspec.Meta(max_length=MOST_REMEDIES)]
    titles: list[str]
    adopt: list[str] = []  # lines that do the same in the user's own program
    inference: Change | None = None
    iteration: Change | None = None
    processes: Amount = 0  # fresh ones, each beside one without the remedy
    calls: Amount = 0  # iterations that were measured, of all of them
    inference_ns: Positive | None = None  # of an iteration, where nobody disturbs it
    peak_bytes: Positive | None = None  # resident, of the process
    peak_without_bytes: Positive | None = None
    outputs: Difference | None = None
    exact: bool = True  # results may differ by the order of sums at most
    reason: str | None = None
    earlier: str | None = None  # when it was tried (ISO 8601), where that was before the others; null: with them

    def __post_init__(self) -> None:
        """Raises ``ValueError`` for one of nothing."""
        if not self.remedies or len(self.titles) != len(self.remedies):
            raise ValueError("a trial has remedies, each with a title")

    @property
    def works(self) -> bool:
        """Whether it was measured, and did not fail after that."""
        return self.inference is not None and self.reason is None

    @property
    def takes_memory(self) -> bool:
        """Whether its peak is larger by more than a word's worth."""
        if self.peak_bytes is None or self.peak_without_bytes is None:
            return False
        return self.peak_bytes > (1 + MUCH_MEMORY) * self.peak_without_bytes

    @property
    def keeps_results(self) -> bool:
        """By its nature, and by what came out, where that could be compared."""
        found = self.outputs
        return self.exact and (found is None or (not found.unequal and found.largest <= SAME))


class Trials(msgspec.Struct, frozen=True, kw_only=True):
    """Of one run's workload, on the machine that it was measured on: the latest trial, with the rows of earlier ones
    that it had nothing on."""

    created: str  # ISO 8601 with offset
    seconds: Annotated[float, msgspec.Meta(ge=0, le=LONGEST_S)]
    inference_ns: Positive | None  # of an iteration, without remedies
    rows: Annotated[list[Trial], msgspec.Meta(max_length=MOST_ROWS)]
    others_share: Share | None = None  # of all processors' time, that others used meanwhile; None: not told
    repeatable: bool | None = None  # whether the model gives the same twice, without a remedy; None: not compared
    ended: str | None = None  # why before it was done: "interrupted", "the time was over", a failure

    def __post_init__(self) -> None:
        """Raises ``ValueError`` for a remedy that is there twice."""
        if len({tuple(one.remedies) for one in self.rows}) < len(self.rows):
            raise ValueError("a remedy is there twice")

    @property
    def best(self) -> Trial | None:
        """What is certain to help, and helps most, of what leaves results as they are: of several that are as good the
        one with the fewest remedies, that takes no memory, whose gain is surest."""
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
        helping = self._helping(exact=exact)
        if not helping:
            return None
        limit = min(helping, key=lambda item: item[0].value)[0].high
        as_good = [item for item in helping if item[0].value <= limit]
        return min(as_good, key=lambda item: (len(item[1].remedies), item[1].takes_memory, item[0].high))[1]

    def largest_beside(self, best: Trial) -> Trial | None:
        """What gained more than the best one, though not for certain, and leaves results as it does; None: nothing."""
        _, largest = min(self._helping(exact=best.keeps_results), key=lambda item: item[0].value)
        return largest if largest is not best else None

    def _helping(self, *, exact: bool) -> list[tuple[Change, Trial]]:
        return [
            (one.inference, one)
            for one in self.rows
            if one.keeps_results is exact and one.works and one.inference is not None and one.inference.helps
        ]


def merged(earlier: Trials | None, later: Trials) -> Trials:
    """What is known of a run: a remedy's later trial in the place of an earlier one. Where nothing was measured this
    time, or too much else ran beside it, the earlier figures stay, and the reason stands beside them. Combinations with
    what fails now go."""
    if earlier is None:
        return later
    before = {tuple(one.remedies): one for one in earlier.rows}
    new = [_now(before.get(tuple(one.remedies)), one, earlier.created) for one in later.rows]
    names = {tuple(one.remedies) for one in new}
    fail = {one.remedies[0] for one in new if len(one.remedies) == 1 and one.reason is not None}
    kept = [
        _of(one, earlier.created)
        for name, one in before.items()
        if name not in names and not (len(name) > 1 and fail.intersection(name))
    ]
    rows = sorted([*new, *kept], key=lambda one: one.inference.value if one.inference is not None else math.inf)
    return msgspec.structs.replace(later, rows=rows[:MOST_ROWS])


def _now(before: Trial | None, now: Trial, created: str) -> Trial:
    """Of one remedy, with the figures of before where it has none."""
    if before is None or before.inference is None:
        return now
    if now.inference is not None and (before.inference.too_noisy or not now.inference.too_noisy):
        return now
    reason = now.reason if now.reason is not None else before.reason
    return msgspec.structs.replace(_of(before, created), reason=reason)


def _of(one: Trial, created: str) -> Trial:
    """As one of an earlier trial; of a still earlier one it remains."""
    return one if one.earlier is not None else msgspec.structs.replace(one, earlier=created)
