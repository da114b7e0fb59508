"""How far a pass goes: which iterations come next, when there are enough of them, and how many are expected."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from itertools import chain

from hwprof.run.manifest import IterationRecord, PrecisionRecord
from hwprof.session import over_time
from hwprof.session.messages import Reached
from hwprof.session.plan import FEWEST, PassPlan, schedule, that_fit, with_bare
from hwprof.session.precision import Precision
from hwprof.session.turn import Turn


class Extent:
    """Of the iterations after the warm-up."""

    def __init__(self, plan: PassPlan, turn: Turn, clock_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._plan = plan
        self._clock_ns = clock_ns  # the model's code may put another one in its place
        self._turn = turn
        self._precision = Precision(plan.precision) if plan.precision is not None else None
        self._begin_ns: int | None = None
        self.once_s: float | None = None
        """What the last iteration of the warm-up took."""

    def begin(self, now_ns: int) -> None:
        """The first iteration after the warm-up does."""
        self._begin_ns = now_ns

    def pieces(self, calls: int, event_sets: int) -> Iterator[list[IterationRecord]]:
        """The iterations, of which each calls layers so often: all of them at once, but of a pass that goes on for some
        time, or until layers are known well enough."""
        plan = self._plan
        if plan.time_s is not None and self.once_s:
            return over_time.iterations(plan, self.once_s, calls, event_sets, self._elapsed_s)
        number = that_fit(plan, self.once_s, calls, event_sets)
        planned = schedule(plan.warmup, number, event_sets, alternate=plan.alternate)[plan.warmup :]
        if plan.bare_too:
            planned = with_bare(planned)
        further = over_time.further(plan, planned, calls, event_sets, self._elapsed_s, self._would_be_precise)
        return chain([planned], further)

    def is_over(self, done: int, planned: int) -> bool:
        """After so many iterations, of which the first piece has ``planned``: the user has enough, the time is over, or
        each layer's time is known as well as the user wants it."""
        if self._plan.halts and not self._plan.slow and done and self._turn.is_told_to_stop():
            return True
        time_s = self._plan.time_s
        if time_s is None and done >= planned:  # and these are further ones
            time_s = self._plan.enough_s
        if time_s is not None and done >= FEWEST and self._elapsed_s() >= time_s:
            return True
        return done >= planned and self._precision is not None and self._precision.is_reached()

    @property
    def is_by_precision(self) -> bool:
        """Whether it is of use to ``add`` times."""
        return self._precision is not None

    def add(self, times_ns: Mapping[str, int], *, disturbed: bool) -> None:
        """What the layers of one more iteration took."""
        if self._precision is not None:
            self._precision.add(times_ns, disturbed=disturbed)

    def reached(self, iterations: int) -> Reached | None:
        """Where the time is what ends the pass: so many are done, and as many are expected as fit into it by these: how
        long they take is planned once, and an hour is long."""
        time_s = self._plan.time_s
        if time_s is None:
            return None
        expected = round(iterations * time_s / max(self._elapsed_s(), 1e-9))
        return Reached(iterations, max(iterations, expected))

    def precision(self) -> PrecisionRecord | None:
        """That was come to, where the user has asked for some time."""
        if self._precision is None or self._plan.time_s is None:
            return None
        return self._precision.look()

    def _elapsed_s(self) -> float:
        """Since the first iteration after the warm-up began; nothing before that."""
        return 0.0 if self._begin_ns is None else (self._clock_ns() - self._begin_ns) / 1e9

    def _would_be_precise(self, times: float) -> bool:
        """With so many times as many iterations."""
        return self._precision is not None and self._precision.is_in_reach(times)
