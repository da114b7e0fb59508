"""Which of Python's stacks led to a sample: told where it cannot have changed between the sample and a look.

Looks are milliseconds apart and lines take microseconds, so the look nearest in time met another line as often as not.
While the framework runs an operator no Python runs on that thread. So a sample within a call of one (outermost)
operator has the stack that looks at the calls of this operator in this layer agree on, whichever thread works for it;
where they do not agree, the one that a look at this very call met. Between two calls Python itself runs: there samples
go by time, and by looks between the same two calls and the same two sleeps only. Of all others the stack is not known.

Where no operators were recorded, calls of leaf layers stand for them. The pipeline's line alone is known of more
samples: those of calls that nobody looked at, where ``alike_calls`` tells it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hwprof.analysis import alike_calls
from hwprof.analysis.attribution import leaf_spans
from hwprof.analysis.layer_operators import called_operators
from hwprof.analysis.python_lines import lines_of
from hwprof.analysis.python_stacks import Looks, PythonStacks
from hwprof.analysis.states import BARRIER, STOPPED
from hwprof.analysis.timeline import NONE, Timeline
from hwprof.run.manifest import PassRecord

Numbers = NDArray[np.int64]

AGREE: Final = 0.9
"""So many of the looks at calls of one kind must have met one stack, that it is taken for the stack of all of them. The
rest may be looks whose time is off by more than its error."""

LEAST_LOOKS: Final = (1, 3)
"""At calls of a kind, and at the n-th call of one in several iterations: fewer agree by chance where the order of calls
differs from iteration to iteration."""

SAME_CODE: Final = ("GIL", BARRIER, STOPPED)
"""What a thread waits for where it is in Python's code, or in none: it goes on there, and its team waits within one
call. Who looks may stop it for that."""

CERTAIN: Final = 3
"""Mean distances between looks, within which there was one: 95%, where they come at random."""

_CALLS: Final = pl.Schema({"begin_ns": pl.Int64, "end_ns": pl.Int64, "kind": pl.Int64, "nth": pl.Int64})
_KINDS: Final = ("layer", "operator")


class SampledStacks:
    """Of one pass."""

    def __init__(
        self,
        python: PythonStacks,
        looks: Looks,
        record: PassRecord,
        spans: pl.DataFrame,
        layers: pl.DataFrame,
        switches: pl.DataFrame,
    ) -> None:
        """``spans`` and ``switches`` are the pass's, ``layers`` the run's."""
        self._main_tid = NONE if record.main_tid is None else record.main_tid
        called = _called(spans.filter(tid=self._main_tid), layers)
        kinds = called.select(_KINDS).unique(maintain_order=True)
        calls = _calls(called, kinds)
        self._lines = _lines(python.stacks)
        self._kinds = kinds.join(alike_calls.groups(layers), on="layer", how="left", maintain_order="left")
        asleep = switches.filter(~pl.col("preempted") & ~pl.col("reason").is_in(SAME_CODE).fill_null(False)).select(
            "tid", begin_ns="out_ns", end_ns="in_ns"
        )
        self._threads: dict[int, _Thread] = {}
        for (tid,), met in python.times.partition_by("tid", as_dict=True, maintain_order=True).items():
            own = calls if tid == self._main_tid else calls.clear()
            sleeps = asleep.filter(tid=tid).drop("tid").drop_nulls()
            self._threads[int(tid)] = _Thread.of(own, sleeps, met, looks)

    def at(self, samples: pl.DataFrame) -> pl.Series:
        """Of each sample (``time_ns``, ``tid``) the stack (null: not known). A thread that runs no Python at all has
        that of the one that calls the model while this one is within a call."""
        return self._of_each(samples, _Thread.stacks)

    def lines_at(self, samples: pl.DataFrame) -> pl.Series:
        """Of each sample a stack that has the pipeline's line in common with its own, as ``python_lines.lines_of``
        tells it; the lines above it may be others. Null: not known."""
        alike = self._alike
        return self._of_each(samples, lambda *sampled: sampled[0].lines(*sampled[1:], alike))

    def by_time(self, samples: pl.DataFrame) -> pl.Series:
        """Of each sample whether its stack goes by time: no call tells it."""
        told = self._of_each(samples, lambda thread, times_ns, _: thread.kinds[thread.stretch(times_ns)])
        return told.is_null()

    @cached_property
    def _alike(self) -> Numbers:
        """Of each kind of calls a stack with the line that alike calls have, or ``NONE``."""
        main = self._threads.get(self._main_tid)
        if main is None or self._kinds.is_empty():
            return np.full(self._kinds.height, NONE, dtype=np.int64)
        looked = self._kinds[main.looked_kinds].hstack(self._lines[main.met[main.looks_in_calls]])
        return alike_calls.agreed(looked, self._kinds).fill_null(NONE).to_numpy()

    def _of_each(self, samples: pl.DataFrame, told: Callable[[_Thread, Numbers, bool], Numbers]) -> pl.Series:
        """What ``told`` tells of a thread at times, and whether other threads work for it then, asked for each."""
        times, tids = samples["time_ns"].to_numpy(), samples["tid"].to_numpy()
        found = np.full(len(times), NONE, dtype=np.int64)
        for tid in np.unique(tids):
            own = self._threads.get(int(tid))
            thread = own or self._threads.get(self._main_tid)
            if thread is not None:
                chosen = tids == tid
                found[chosen] = told(thread, times[chosen], own is None)
        return pl.Series(found, dtype=pl.Int32).replace(NONE, None)


@dataclass(frozen=True)
class _Thread:
    """A thread's time, cut at ``edges`` (ascending) into stretches; the first one is before all of them."""

    edges: Numbers
    kinds: Numbers  # of each stretch that of the call, or NONE
    usual: Numbers  # the stack that other calls of its kind have, or NONE
    begins: Numbers  # of each look that tells: since when it does,
    ends: Numbers  # until when, where Python runs,
    stretches: Numbers  # its stretch,
    met: Numbers  # and its stack

    @classmethod
    def of(cls, calls: pl.DataFrame, sleeps: pl.DataFrame, times: pl.DataFrame, looks: Looks) -> _Thread:
        """``calls`` in ``_CALLS``; ``times`` as ``python_stacks.TIMES``, the thread's."""
        in_call = Timeline.of(calls)
        waking = sleeps.sort("begin_ns")
        waking = waking.filter(pl.Series(in_call.at(waking["begin_ns"].to_numpy()) == NONE, dtype=pl.Boolean))
        cuts = pl.concat([calls, waking.with_columns(kind=pl.lit(None, pl.Int64), nth=pl.lit(None, pl.Int64))])
        timeline = Timeline.of(cuts)
        rows = np.concatenate(([NONE], timeline.owner))
        kinds = cuts.select(pl.col("kind", "nth").gather(pl.Series(rows).replace(NONE, None)))
        at_ns, error_ns = times["begin_ns"].to_numpy(), looks.error_ns
        first, last = (np.searchsorted(timeline.edges, at_ns + by, side="right") for by in (-error_ns, error_ns))
        tells = (first == last) | _goes_on(timeline.edges, last, times, looks)
        stretches, met = last[tells], times["stack"].cast(pl.Int64).to_numpy()[tells]
        starts = np.concatenate(([np.iinfo(np.int64).min], timeline.edges))
        return cls(
            edges=timeline.edges,
            kinds=kinds["kind"].fill_null(NONE).to_numpy(),
            usual=_usual(kinds, stretches, met),
            begins=np.maximum(at_ns[tells] - looks.lag_ns, starts[stretches]),
            ends=times["end_ns"].to_numpy()[tells],
            stretches=stretches,
            met=met,
        )

    @property
    def looks_in_calls(self) -> NDArray[np.bool_]:
        """Of the looks, which met a call."""
        called: NDArray[np.bool_] = self.kinds[self.stretches] != NONE
        return called

    @property
    def looked_kinds(self) -> Numbers:
        """The kind of each call that a look met."""
        return self.kinds[self.stretches][self.looks_in_calls]

    def stretch(self, times_ns: Numbers) -> Numbers:
        """In which each of the times lies."""
        return np.searchsorted(self.edges, times_ns, side="right")

    def lines(self, times_ns: Numbers, working_for_it: bool, alike: Numbers) -> Numbers:
        """As ``stacks``, and in calls that nobody looked at what their kind has in ``alike``."""
        known = self.stacks(times_ns, working_for_it)
        kinds = self.kinds[self.stretch(times_ns)]
        told = np.concatenate((alike, [NONE]))[kinds]  # that of NONE is the last
        return np.where(known == NONE, told, known)

    def stacks(self, times_ns: Numbers, working_for_it: bool) -> Numbers:
        """At each of the times, in any order, or ``NONE``; of threads that work for it within calls only."""
        here = self.stretch(times_ns)
        called = self.kinds[here] != NONE
        found = np.full(len(here), NONE, dtype=np.int64)
        if len(self.met):
            place = np.searchsorted(self.begins, times_ns, side="right") - 1
            for look in (np.minimum(place + 1, len(self.met) - 1), np.maximum(place, 0)):
                tells = (self.stretches[look] == here) & (called | (times_ns < self.ends[look]))
                found = np.where(tells, self.met[look], found)
        agreed = self.usual[here]
        found = np.where(agreed == NONE, found, agreed)
        return np.where(called | (not working_for_it), found, NONE)


def _goes_on(edges: Numbers, stretches: Numbers, times: pl.DataFrame, looks: Looks) -> NDArray[np.bool_]:
    """Whether rows of ``python_stacks.TIMES`` lie in the ``stretches`` for so long that looks there met the stack
    again: a row has the first look of several in a row alone."""
    far = np.iinfo(np.int64).max // 2
    starts, ends = np.concatenate(([-far], edges))[stretches], np.concatenate((edges, [far]))[stretches]
    since = np.maximum(times["begin_ns"].to_numpy() + looks.error_ns, starts)
    until = np.minimum(times["end_ns"].to_numpy() - looks.error_ns, ends)
    found: NDArray[np.bool_] = (looks.lag_ns > 0) & (until - since >= CERTAIN * looks.lag_ns)
    return found


def _lines(stacks: pl.DataFrame) -> pl.DataFrame:
    """Of each stack the first one that has its line, as ``line``, and the ``function`` of this."""
    place = ("file", "line", "function")
    first = pl.when(pl.col("file").is_not_null()).then(pl.col("stack").first().over(place))
    return lines_of(stacks).select(first.cast(pl.Int64).alias("line"), "function")


def _called(spans: pl.DataFrame, layers: pl.DataFrame) -> pl.DataFrame:
    """The calls in which no Python runs, of ``spans`` of one thread: iteration, begin, end, and ``_KINDS``."""
    found = called_operators(spans, layers)
    if found.is_empty():
        found = leaf_spans(spans, layers).select("iteration", "begin_ns", "end_ns", layer="path", operator="path")
    return found


def _calls(called: pl.DataFrame, kinds: pl.DataFrame) -> pl.DataFrame:
    """``called`` in ``_CALLS``: ``kind`` is the row in ``kinds``, ``nth`` which of these in its iteration."""
    numbers = kinds.with_row_index("kind")
    numbered = called.join(numbers, on=_KINDS, how="left", nulls_equal=True).sort("begin_ns")
    nth = pl.int_range(pl.len(), dtype=pl.Int64).over("kind", "iteration")
    return numbered.select("begin_ns", "end_ns", "kind", nth=nth).cast(_CALLS)


def _usual(kinds: pl.DataFrame, stretches: Numbers, met: Numbers) -> Numbers:
    """Of each stretch the stack that looks at calls of its kind agree on, else looks at the ``nth`` calls of its kind,
    or ``NONE``. ``kinds``: a row a stretch."""
    looked = kinds[stretches].with_columns(stack=pl.Series(met, dtype=pl.Int64)).drop_nulls("kind")
    told = kinds.select(stack=pl.lit(None, pl.Int64))
    for keys in (["kind"], ["kind", "nth"]):
        counts = looked.group_by(*keys, "stack").len().sort("len", descending=True)
        share, enough = pl.col("len").first() / pl.col("len").sum(), pl.col("len").sum() >= LEAST_LOOKS[len(keys) - 1]
        agreed = counts.group_by(keys).agg(stack=pl.when((share >= AGREE) & enough).then(pl.col("stack").first()))
        found = kinds.join(agreed, on=keys, how="left", maintain_order="left")
        told = told.select(pl.coalesce("stack", found["stack"]))
    return told["stack"].fill_null(NONE).to_numpy()
