"""All remedies one by one, until it is sure enough what each of them does; then those together that help."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

from hwprof.analysis.trials import LEAST_GENERATIONS, Pair, change, is_enough, spread, undisturbed
from hwprof.errors import HwprofError
from hwprof.printable import one_line
from hwprof.remedies.catalogue import Ready, ready, title_of, together
from hwprof.remedies.told import to_adopt
from hwprof.run.trials import INTERRUPTED, TIME_OVER, Change, Difference, Trial, Trials
from hwprof.session.progress import Progress
from hwprof.session.quiet import Others
from hwprof.session.trials import outputs
from hwprof.session.trials.generation import (
    WITHOUT,
    Contestant,
    Found,
    Name,
    Place,
    again_file,
    carry_out,
    no_room,
    outputs_file,
)
from hwprof.unavailable import Unavailable
from hwprof.workload.contest import Measured
from hwprof.workload.spec import WorkloadSpec

ALONE_SHARE: Final = 0.6
"""Of the time, for remedies one by one; what is left is for several together."""

REPEATED: Final = 1e-6
"""Threads may add up in another order."""

MOST_TOGETHER: Final = 3
"""Combinations that are tried."""


@dataclass
class _Record:
    """Of one contestant, generation by generation."""

    contestant: Contestant
    inference: list[Pair] = field(default_factory=list)
    iteration: list[Pair] = field(default_factory=list)
    inference_ns: list[float] = field(default_factory=list)
    peaks: list[tuple[int, int]] = field(default_factory=list)  # with, without
    calls: int = 0
    outputs: Difference | None = None
    failure: HwprofError | None = None

    def add(self, measured: Sequence[Measured], without: Sequence[Measured]) -> None:
        """What one generation has found."""
        here, there = ([one.inference_ns for one in turns] for turns in (measured, without))
        self.inference.append(Pair(undisturbed(here), undisturbed(there)))
        self.inference_ns.append(undisturbed(here))
        whole = [[one.iteration_ns for one in turns] for turns in (measured, without)]
        self.iteration.append(Pair(*map(undisturbed, whole)))
        self.calls += sum(map(len, here))
        peaks = [max((one.peak_bytes or 0 for one in turns), default=0) for turns in (measured, without)]
        if all(peaks):
            self.peaks.append((peaks[0], peaks[1]))


class Campaign:
    """The remedies of one workload; ``trials`` tells at any time what is known."""

    def __init__(
        self,
        spec: WorkloadSpec,
        folder: Path,
        progress: Progress,
        limit_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``folder``: for orders and logs; exists."""
        self._spec = spec
        self._folder = folder
        self._progress = progress
        self._clock = clock
        self._began_s = clock()
        self._limit_s = limit_s
        self._records: dict[Name, _Record] = {}
        self._without_ns: list[float] = []
        self._missing: list[Trial] = []
        self._ended: str | None = None
        self._least_s = 0.0  # so much longer it takes, however little time there is
        self.failure: KeyboardInterrupt | HwprofError | None = None
        self._others = Others()
        self._repeatable: bool | None = None

    def carry_out(self, names: Sequence[str]) -> Trials:
        """Tries the remedies of these names. Ctrl-C, the workload itself that fails, and a full disk end it: what is
        known by then is returned, where anything is, and ``failure`` tells. Else raises ``HwprofError``,
        ``KeyboardInterrupt`` and ``OSError``."""
        offered = self._offered(names)
        try:
            with tempfile.TemporaryFile(dir=self._folder) as weights:
                place = Place(
                    self._spec, self._folder, weights.fileno(), self._report, self._progress.step, self._left_s
                )
                singles = [Contestant((one,)) for one in offered]
                self._compare(place, singles, ALONE_SHARE * self._limit_s)
                several = combinations(self._that_help(singles))
                if self._ended is not None:
                    several = several[-1:]  # all that help
                if self._passed_s() < self._limit_s:
                    self._compare(place, several, self._limit_s)
        except (KeyboardInterrupt, HwprofError, OSError) as failure:
            if not any(len(record.inference) > 1 for record in self._records.values()):
                raise
            self.failure = told = no_room(self._folder, failure) if isinstance(failure, OSError) else failure
            self._ended = one_line(told.message) if isinstance(told, HwprofError) else INTERRUPTED
        return self.trials()

    def trials(self) -> Trials:
        """What helps most first, what could not be tried last."""
        rows = [self._trial(record) for record in self._records.values()]
        rows.sort(key=lambda row: row.inference.value if row.inference is not None else float("inf"))
        return Trials(
            created=datetime.now().astimezone().isoformat(timespec="seconds"),
            seconds=self._passed_s(),
            inference_ns=round(statistics.median(self._without_ns)) if self._without_ns else None,
            rows=[*rows, *self._missing],
            others_share=self._others.share(),
            repeatable=self._repeatable,
            ended=self._ended,
        )

    def _offered(self, names: Sequence[str]) -> list[Ready]:
        found = []
        for name in dict.fromkeys(names):
            one = ready(name)
            if isinstance(one, Unavailable):
                reason = one.reason if one.remedy is None else f"{one.reason}. Try: {one.remedy}"
                self._missing.append(Trial(remedies=[name], titles=[title_of(name)], reason=reason))
            else:
                found.append(one)
        return found

    def _report(self, text: str, total: int | None) -> None:
        left_s, least_s = self._left_s(), self._least_s
        if least_s > max(0.0, left_s):
            text = f"{text}, at least {least_s:.0f} s more: {LEAST_GENERATIONS} processes of each"
        known = least_s > 0 and left_s > least_s  # in the first round nobody knows how long one takes
        self._progress.phase("try", f"{text}, {left_s:.0f} s left" if known else text, total)

    def _compare(self, place: Place, contestants: Sequence[Contestant], until_s: float) -> None:
        """Generation after generation, of those of which too little is known yet."""
        self._records |= {one.name: _Record(one) for one in contestants}
        left, number, longest_s = list(contestants), 0, 0.0
        while left:
            if number >= LEAST_GENERATIONS and self._passed_s() + longest_s > until_s:
                self._ended = TIME_OVER
                return
            began_s, todo = self._passed_s(), left
            while todo:
                found = carry_out(place, [Contestant(), *todo], number)
                self._keep(found, number)
                todo = [one for one in todo if one.name in found.waiting]
            number, longest_s = number + 1, max(longest_s, self._passed_s() - began_s)
            self._least_s = longest_s * (LEAST_GENERATIONS - number)
            left = [one for one in left if self._wants_more(self._records[one.name])]

    def _change(self, record: _Record) -> Change | None:
        return change(record.inference, spread([one.inference for one in self._records.values()]))

    def _left_s(self) -> float:
        return self._limit_s - self._passed_s()

    def _passed_s(self) -> float:
        return self._clock() - self._began_s

    def _wants_more(self, record: _Record) -> bool:
        return record.failure is None and not is_enough(self._change(record), len(record.inference))

    def _keep(self, found: Found, number: int) -> None:
        without = found.turns[WITHOUT]
        if number == 1:
            self._compare_without()
        self._without_ns.append(undisturbed([one.inference_ns for one in without]))
        for name, error in found.failed.items():
            self._records[name].failure = error
        for name, turns in found.turns.items():
            if name != WITHOUT:
                self._records[name].add(turns, without)
                if number == 0:
                    files = [outputs_file(self._folder, one) for one in (name, WITHOUT)]
                    self._records[name].outputs = outputs.difference(*files)

    def _compare_without(self) -> None:
        """A model that draws numbers gives others each time, with whatever remedy."""
        found = outputs.difference(again_file(self._folder), outputs_file(self._folder, WITHOUT))
        if found is not None:
            self._repeatable = not found.unequal and found.largest <= REPEATED

    def _that_help(self, contestants: Iterable[Contestant]) -> list[Ready]:
        """Most first; not one in which the workload fails now and then."""
        gains = []
        for one in contestants:
            record = self._records[one.name]
            found = self._change(record)
            if found is not None and found.helps and record.failure is None:
                gains.append((found.value, one.remedies[0]))
        return [remedy for _, remedy in sorted(gains, key=lambda item: item[0])]

    def _trial(self, record: _Record) -> Trial:
        name = record.contestant.name
        failure = record.failure
        found = self._change(record)
        return Trial(
            remedies=list(name),
            titles=[one.title for one in record.contestant.remedies],
            adopt=to_adopt(name),
            inference=found,
            iteration=change(record.iteration, spread([one.iteration for one in self._records.values()])),
            processes=len(record.inference),
            calls=record.calls,
            inference_ns=round(statistics.median(record.inference_ns)) if record.inference_ns else None,
            peak_bytes=max((one for one, _ in record.peaks), default=None),
            peak_without_bytes=max((one for _, one in record.peaks), default=None),
            outputs=record.outputs if self._repeatable is not False else None,
            exact=all(one.exact for one in record.contestant.remedies),
            reason=str(failure) if failure is not None else None,
        )


def combinations(helping: Sequence[Ready]) -> list[Contestant]:
    """The best with the second, with the third, …, as far as they go together; what changes results comes last."""
    ordered = sorted(helping, key=lambda one: not one.exact)  # stable: most first
    chain: list[Ready] = []
    found = []
    for one in ordered:
        if together(one, chain):
            chain.append(one)
            if len(chain) > 1:
                found.append(Contestant(tuple(chain)))
    return found[-MOST_TOGETHER:]
