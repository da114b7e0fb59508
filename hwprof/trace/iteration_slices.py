"""What a pass's iterations are called in the trace, and what their slices say of them: warm-up, disturbed by others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from hwprof.analysis.disturbed import is_disturbed
from hwprof.analysis.iterations import select
from hwprof.run.manifest import IterationRecord

WARM_UP: Final = "warm-up"
BARE: Final = "layers not watched"
DISTURBED: Final = "disturbed"


class IterationSlices:
    """The iterations of one pass."""

    def __init__(self, records: Sequence[IterationRecord], event_sets: Sequence[Sequence[str]]) -> None:
        self._records = {record.index: record for record in records}
        self._event_sets = event_sets
        self._left_out = frozenset(select(records).left_out)

    def name(self, path: str, index: int) -> str:
        """``iteration 0 (warm-up)``; ``path`` is the span's."""
        record = self._records.get(index)
        remark = (unmeasured(record) or (DISTURBED if is_disturbed(record) else None)) if record is not None else None
        return f"{path} ({remark})" if remark else path

    def disturbed(self, index: int) -> bool | None:
        """Whether others took much of its time; None: it is not known."""
        record = self._records.get(index)
        return None if record is None or record.disturbance is None else is_disturbed(record)

    def annotations(self, index: int) -> dict[str, Any]:
        """What its own slice says beside that."""
        record = self._records.get(index)
        if record is None:
            return {}
        number, sets = record.event_set, self._event_sets
        events = sets[number] if number is not None and number < len(sets) else None  # a file may name any
        counted = {"layers_counted": record.layers_counted, "event_set": record.event_set, "events": events}
        return counted | self._disturbance(record) | {"alone_for": record.alone_for}

    def _disturbance(self, record: IterationRecord) -> dict[str, Any]:
        found = record.disturbance
        if found is None:
            return {}
        return {
            "left_out_of_medians": record.index in self._left_out,
            "preemptions": found.preemptions,
            "waited_ms": _ms(found.waited_ns),
            "stolen_ms": _ms(found.stolen_ns),
            "own_ms": _ms(found.own_ns),
        }


def unmeasured(record: IterationRecord) -> str | None:
    """Why no figure is of this iteration: it warmed up, one collector looked when the others had stopped, or it tells
    what watching layers costs."""
    if record.alone_for is not None:
        return f"{record.alone_for} only"
    if record.bare:
        return BARE
    return WARM_UP if record.warmup else None


def _ms(time_ns: int | None) -> float | None:
    return None if time_ns is None else time_ns / 1e6
