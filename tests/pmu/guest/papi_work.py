"""What PAPI counts inside the emulated machine."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

from collectors.papi.collector import PapiCollector
from hwprof.collector.contract import CountedSpan, PassContext
from tests.support.papi_beside_perf import SOFTWARE, side_by_side
from tests.support.reported import fields, texts

HARDWARE = {"cycles": "PAPI_TOT_CYC", "instructions": "PAPI_TOT_INS"}
MANY = [
    *HARDWARE.values(),
    *(f"PAPI_{name}" for name in ("FP_INS", "LD_INS", "SR_INS", "VEC_INS", "L2_DCM", "L2_LDM", "L2_STM")),
]
SILENT = "PAPI_BR_INS"
ROUNDS_OF_HASHING = 2_000


def papi_beside_perf() -> dict[str, Any]:
    """Both collectors side by side."""
    return side_by_side(SOFTWARE | HARDWARE, Path(os.environ["OUT"]), ROUNDS_OF_HASHING)


def papi_in_turn() -> dict[str, Any]:
    """More presets than the processor has counters, each set in its turn over the same work."""
    from tests.pmu.guest.loops import A_WHILE, loop

    papi = PapiCollector()
    papi.start(PassContext("measure", os.getpid(), threading.get_native_id(), Path(), {"events": [*MANY, SILENT]}))
    read = papi.full_reader()
    sets = papi.event_sets()
    spans = []
    for iteration in range(2 * len(sets)):
        papi.begin_iteration(iteration % len(sets))
        read()
        loop(A_WHILE)
        read()
        spans.append(CountedSpan(iteration, iteration, 2 * iteration, 2 * iteration + 1))
    counts = papi.counts(spans)
    collected = papi.stop()
    return {
        "main": threading.get_native_id(),
        "sets": [list(names) for names in sets],
        "counts": counts.to_dicts(),
        "notes": texts(collected.notes),
        "detail": fields(collected.detail),
    }
