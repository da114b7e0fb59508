"""How long each layer takes in some forwards of one input, in this process and with nothing else measured."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from time import monotonic
from typing import Final

import msgspec

from hwprof import processes
from hwprof.analysis.owners import INFERENCE
from hwprof.run.manifest import IterationRecord, PassRecord
from hwprof.run.passes import MEASURE
from hwprof.session import disturbance
from hwprof.session.copy_of_process import Tell
from hwprof.session.messages import Phase, PhaseBegins, Step
from hwprof.session.plan import FEWEST, schedule, with_bare
from hwprof.session.recorder import SpanRecorder
from hwprof.workload.layer_hooks import LayerHooks
from hwprof.workload.protocol import Workload

WARMUP: Final = 2
"""Forwards before those that are timed: the first ones fill caches, and choose their kernels."""

LIMIT_S: Final = 20.0
"""After that no further forward begins, as soon as ``FEWEST`` are timed."""


class LayerTimes:
    """The times of a workload's modules in forwards of its first input: ``recorder`` has the spans, ``record`` the
    forwards as iterations. Some watch no layer, where ``plan.with_bare`` has them among the others."""

    def __init__(self, workload: Workload) -> None:
        self.recorder = SpanRecorder()
        self.record = PassRecord(name=MEASURE, pid=os.getpid(), main_tid=os.getpid())
        self._workload = workload
        self._pid = os.getpid()

    def measure(self, runs: int, tell: Tell) -> list[str]:
        """Warms up and times ``runs`` forwards, or as many as ``LIMIT_S`` has room for; ``tell`` hears how far it is.
        Returns the paths of modules of which not all calls were seen. What the model raises is raised."""
        hooks = LayerHooks(self._workload.modules, self.recorder)
        try:
            tell(PhaseBegins(Phase.WARMING_UP, WARMUP))
            hooks.time_only()
            for iteration in schedule(WARMUP, 0, 0, alternate=False):
                self._iterate(iteration)
                tell(Step())
            gc.collect()
            gc.freeze()  # as in a pass: a collection in one forward of ten would look like a slow layer
            tell(PhaseBegins(Phase.MEASURING, runs))
            for iteration in _within_limit(schedule(WARMUP, runs, 0, alternate=False)[WARMUP:]):
                if iteration.bare:
                    hooks.rest()
                else:
                    hooks.time_only()
                self._iterate(iteration)
                if not iteration.bare:
                    tell(Step())
            return hooks.unseen()
        finally:
            hooks.remove()
            self.recorder.close()

    def _iterate(self, iteration: IterationRecord) -> None:
        call = self._workload.forwards()[0]
        before = disturbance.read()
        with (
            self.recorder.iteration(iteration.index, warmup=iteration.warmup, event_set=None),
            self.recorder.stage(INFERENCE),
        ):
            output = call.run_as_measured()
            processes.end_copy(self._pid)
        del output  # what that takes is no layer's
        found = disturbance.between(before, disturbance.read())
        self.record.iterations.append(msgspec.structs.replace(iteration, disturbance=found))


def _within_limit(planned: list[IterationRecord]) -> Iterator[IterationRecord]:
    """Those of the planned iterations, and bare ones among them, that begin in time."""
    began_s, timed = monotonic(), 0
    for iteration in with_bare(planned):
        if timed >= FEWEST and monotonic() - began_s > LIMIT_S:
            return
        yield iteration
        timed += not iteration.bare
