"""Spans of layers that another program than PyTorch ran: it tells of them when all is over, by a clock of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from hwprof.collector import clocks
from hwprof.run.manifest import PassRecord
from hwprof.run.owner_names import path_of
from hwprof.session.recorder import AddedCall, SpanRecorder
from hwprof.workload.runtimes.products import Products, together

if TYPE_CHECKING:  # of the room that imports torch
    from hwprof.workload.runtimes.runtime import Profile, RuntimeCall


class Added(NamedTuple):
    """What is to be said of them."""

    notes: list[str]
    fused: dict[str, list[str]]  # paths of the layers that were done in one, by its own
    products: dict[str, Products]  # where a layer's were done, by its path


def add(profiles: Mapping[str, Iterable[Profile]], recorder: SpanRecorder, record: PassRecord) -> Added:
    """Brings the spans of watched calls into the recorder's, and their clocks into the pass's record. ``profiles``: by
    the prefix of the paths."""
    notes: list[str] = []
    fused: dict[str, list[str]] = {}
    work: dict[str, Products] = {}
    numbers, warm_ups, begins, ends = recorder.iteration_times().T
    for prefix, those in profiles.items():
        for profile in those:
            notes += profile.notes
            for name, paths in profile.fused.items():
                fused[_path(prefix, name)] = [_path(prefix, path) for path in paths]
            for layer, found in profile.products.items():
                known = Products({_path(prefix, at): number for at, number in found.places.items()}, found.alike)
                path = _path(prefix, layer)
                work[path] = together(work[path], known) if path in work else known
            to_monotonic = _conversion(profile, record)
            record.laid_out |= profile.clock is None and bool(profile.calls)
            for call in profile.calls:
                at = int(np.searchsorted(begins, call.begin_ns, side="right")) - 1
                if at >= 0 and call.end_ns <= ends[at]:  # others were made before anything was measured
                    spans = _spans(call, prefix, to_monotonic)
                    recorder.add_layers(int(numbers[at]), spans, warmup=bool(warm_ups[at]))
    return Added(list(dict.fromkeys(notes)), fused, work)


def _path(prefix: str, path: str) -> str:
    """As the table ``layers`` has it; the model's own is empty."""
    return path_of(f"{prefix}{path}" if path else prefix.removesuffix("."))


def _conversion(profile: Profile, record: PassRecord) -> Callable[[int], int]:
    if profile.clock is None or not profile.marks:
        return lambda stamp_ns: stamp_ns
    found = clocks.fit(profile.clock, profile.marks)
    known = msgspec.structs.replace(found, error_ns=found.error_ns + profile.unit_ns)
    record.clocks.append(known)
    return lambda stamp_ns: clocks.to_monotonic(known, stamp_ns)


def _spans(call: RuntimeCall, prefix: str, to_monotonic: Callable[[int], int]) -> list[AddedCall]:
    """None begins before the call or ends after it, whatever the clock's error."""

    def within(stamp_ns: int) -> int:
        return min(max(to_monotonic(stamp_ns), call.begin_ns), call.end_ns)

    return [
        AddedCall(path_of(f"{prefix}{one.path}"), within(one.begin_ns), within(one.end_ns), call.thread, one.continues)
        for one in call.spans
    ]
