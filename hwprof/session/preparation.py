"""The workload of a pass, ready to be measured: built, prepared, and changed as its variant asks for."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple

from hwprof import processes
from hwprof.session.messages import Built, Order, Phase, PhaseBegins
from hwprof.session.reporter import Reporter
from hwprof.session.versions import versions
from hwprof.workload import factory
from hwprof.workload.changes import before_building
from hwprof.workload.fingerprint import fingerprint
from hwprof.workload.protocol import Workload
from hwprof.workload.runtimes.temporary import TEMPORARY
from hwprof.workload.shared_weights import SharedWeights
from hwprof.workload.variant import make


class Prepared(NamedTuple):
    """A workload, what takes its variant back, and what it is known by in every pass."""

    workload: Workload
    take_back: Callable[[], None]
    fingerprint: dict[str, str]


def prepare(order: Order, weights: int | None, reporter: Reporter) -> Prepared:
    """``weights``: the descriptor of the calibrated ones' file. Raises what the model's code raises."""
    pid = os.getpid()
    shared = SharedWeights(weights) if weights is not None else None
    os.environ[TEMPORARY] = order.folder
    changes = order.workload.changes
    before_building(changes)
    workload = factory.build(order.workload, shared)
    built = workload.prepare()
    processes.end_copy(pid)
    known_by = fingerprint(workload)
    if shared is not None:
        shared.confirm(known_by["weights"], fused=built.fused)
    if changes:
        reporter.send(PhaseBegins(Phase.CHANGING))  # to compile or export may take a minute
    made = make(workload, order.workload, compare=order.describe, watchable=True)
    built.variant = made.record
    built.notes += made.notes
    processes.end_copy(pid)
    reporter.send(Built(built, versions()))
    return Prepared(workload, made.take_back, known_by)
