"""CPI where nothing counts cycles: what of the run's passes it is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from hwprof.analysis import instrumented, irregular
from hwprof.analysis.attribution import Attribution, attribute
from hwprof.analysis.core_clock import Clock
from hwprof.analysis.cpu_time import TASK_CLOCK
from hwprof.analysis.instrumented_pass import InstrumentedPass
from hwprof.analysis.kernel_cpi import CpiByTime
from hwprof.analysis.sampled_pass import SampledPass
from hwprof.analysis.work_time import CallersTime, callers_time
from hwprof.run.details import InstrumentedDetail
from hwprof.run.manifest import PassRecord
from hwprof.run.roles import Role


@dataclass(frozen=True)
class KernelCpi:
    """Cycles per instruction from samples' times and another pass's instructions."""

    pass_name: str
    clock: Clock
    reference_ghz: float | None
    by_time: CpiByTime


def cpi_by_time(
    taken: SampledPass, passes: Sequence[InstrumentedPass], counts: pl.DataFrame, undisturbed: Attribution | None
) -> KernelCpi | None:
    """CPI of kernels by the instructions that one of the instrumented passes counted in the very same code.
    ``counts``: the sampled pass's; ``undisturbed``: the measure pass's, if there is one."""
    same = instrumented.same_code((one.record for one in passes), taken.record)
    other = next((one for one in passes if one.record in same), None)
    reference_ghz = _reference_ghz(other.record) if other is not None else None
    clock = taken.clock or (Clock(reference_ghz) if reference_ghz is not None else None)
    if other is None or clock is None:
        return None
    own = attribute(
        taken.spans, counts.filter(pl.col("event") == TASK_CLOCK), taken.modules, taken.record, disturbed_too=True
    )
    varying = {*irregular.layers(irregular.of_both(own.calls, other.calls)), *other.figures.irregular}
    by_time = CpiByTime(
        taken.inside,
        taken.by_layer,
        other.instructions,
        len(taken.iterations),
        clock,
        _callers(taken, own, undisturbed),
        varying,
    )
    return KernelCpi(other.record.name, clock, reference_ghz, by_time)


def _callers(taken: SampledPass, own: Attribution, undisturbed: Attribution | None) -> CallersTime:
    tids = taken.spans.filter(pl.col("kind") == "layer")["tid"].unique().to_list()
    records = any(one.role is Role.OPERATORS and one.state == "ran" for one in taken.record.collectors)
    return callers_time(tids, own, undisturbed if records else None, taken.iterations)


def _reference_ghz(record: PassRecord) -> float | None:
    found = (collector.detail_as(InstrumentedDetail) for collector in record.collectors)
    return next((detail.reference_ghz for detail in found if detail is not None), None)
