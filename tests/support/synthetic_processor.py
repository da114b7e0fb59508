"""A processor of the event catalogue under a synthetic run: what its events count."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Final

from hwprof.analysis.metrics import events_of
from hwprof.hardware.catalogue import GENERIC, Event, Microarchitecture, catalogue, microarchitecture
from hwprof.hardware.selection import ALL, select
from hwprof.run.manifest import Cache, CoreKind, Machine, MetricDefinition

PER_CYCLE: Final = {
    "branches": 0.1, "branch-misses": 0.001,
    # AMD's slots, six a cycle: retiring 15 %, bad speculation 2.5 %, front end 10 %, back end 67.5 %, SMT 5 %
    "ex_ret_ops": 0.9, "de_src_op_disp.all": 1.05, "de_no_dispatch_per_slot.no_ops_from_frontend": 0.6,
    "de_no_dispatch_per_slot.backend_stalls": 4.05, "de_no_dispatch_per_slot.smt_contention": 0.3,
    "de_no_dispatch_per_slot.no_ops_from_frontend_at_all": 0.05, "ex_ret_ucode_ops": 0.03,
    "resyncs_or_nc_redirects": 0.0001,
    "ex_no_retire.not_complete": 0.6, "ex_no_retire.load_not_complete": 0.45,
    # Intel's
    "slots": 6.0, "topdown-retiring": 1.2, "topdown-bad-spec": 0.3, "topdown-fe-bound": 0.6, "topdown-be-bound": 3.9,
    "topdown-heavy-ops": 0.1, "topdown-br-mispredict": 0.25, "topdown-fetch-lat": 0.4, "topdown-mem-bound": 2.9,
    "exe.amx_busy": 0, "int_vec_retired.vnni_128": 0, "int_vec_retired.vnni_256": 0,
}  # fmt: skip
"""Events a core cycle, where metrics must make sense together; others get some rate that depends on their name."""


class Processor:
    """A processor of the catalogue: its metrics, the events that they need, and what these count."""

    def __init__(self, name: str) -> None:
        found = microarchitecture(name)
        assert found is not None, f"the catalogue has no {name}"
        self.known: Microarchitecture = found
        self.machine = synthetic_machine(found)
        selection = select([ALL], self.machine, Path("/nonexistent"), ())
        self.metrics: tuple[MetricDefinition, ...] = tuple(
            metric for metric in selection.metrics if metric.group != "uncore"
        )
        groups: dict[str, list[str]] = {}
        for metric in self.metrics:
            groups.setdefault(metric.group, ["task-clock", "page-faults", "instructions", "cycles"]).extend(
                events_of(metric)
            )
        self.sets = [list(dict.fromkeys(names)) for names in groups.values()]
        self.events: dict[str, Event] = {
            name: (catalogue(GENERIC).named() | found.catalogue.named())[name]
            for name in dict.fromkeys(name for names in self.sets for name in names)
        }
        counted = next((metric for metric in self.metrics if metric.name == "counted_flops"), None)
        flops = [self.events[name] for name in events_of(counted)] if counted else []
        self.flops = max(flops, key=lambda event: event.weight, default=None)

    @property
    def iterations(self) -> int:
        """Enough for two of each event set."""
        return 4 * len(self.sets)

    def count(self, event: str, cycles: int, flops: int) -> int:
        """What an event counts in so many cycles with so many floating-point operations."""
        if self.events[event].unit == "FLOP":
            chosen = self.events[event] == self.flops
            return flops // self.events[event].weight if chosen else 0
        return int(cycles * PER_CYCLE.get(event, (1 + zlib.crc32(event.encode()) % 19) / 1000))


def synthetic_machine(known: Microarchitecture | None = None) -> Machine:
    """The machine that a synthetic run says it was made on."""
    cores = (CoreKind(known.processor.pmu, known.id, (0, 1, 2, 3)),) if known else ()
    return Machine(
        hostname="synthetic",
        architecture="x86_64",
        processor="Synthetic CPU @ 2.80GHz",
        vendor=known.processor.vendor if known else "GenuineIntel",
        family=6,
        model=106,
        stepping=6,
        logical_processors=4,
        physical_cores=2,
        sockets=1,
        caches=(
            Cache(1, "data", 49_152, 12, 64, 2),
            Cache(1, "instruction", 32_768, 8, 64, 2),
            Cache(2, "unified", 1_310_720, 20, 64, 2),
            Cache(3, "unified", 56_623_104, 12, 64, 4),
        ),
        memory_bytes=16 << 30,
        kernel="6.1.0",
        system="Debian GNU/Linux 12 (bookworm)",
        hypervisor=None,
        governor="performance",
        pmus=("cpu", "power"),
        has_core_pmu=True,
        cores=cores,
    )
