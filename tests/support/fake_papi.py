"""A PAPI that is made up: events, counters, threads, and what it refuses."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from collectors.papi.library import ECNFLCT, ENOEVNT, ENOSUPP, EPERM, ESYS, Papi, PapiError
from hwprof.hardware import catalogue
from hwprof.hardware.perf_event import group_read_bytes

EISRUN = -10
SOFTWARE = ["perf::TASK-CLOCK", "perf::PAGE-FAULTS", "perf::CONTEXT-SWITCHES", "perf::CPU-MIGRATIONS"]


class FakePapi(Papi):
    """A machine with some events and some counters. ``cost`` is how many counters an event takes."""

    path = "/made/up/libpapi.so"
    version = "7.0.0"
    component = 0

    def __init__(
        self,
        presets: Sequence[str] = (),
        counters: int = 4,
        *,
        silent: Sequence[str] = (),
        elsewhere: Sequence[str] = (),
        cost: dict[str, int] | None = None,
        kernel: bool = True,
        refuses_domain: bool = True,
        pmu: bool = True,
        disabled: str | None = None,
    ) -> None:
        self.presets, self.counters, self.silent, self.elsewhere = presets, counters, silent, elsewhere
        self.cost = cost or {}
        self.kernel_allowed, self.refuses_domain, self.pmu, self.disabled = kernel, refuses_domain, pmu, disabled
        self.kernel = False
        self.open: dict[int, list[str]] = {}
        self.tids: dict[int, int | None] = {}  # of the open sets; None: the caller's
        self.running: set[int] = set()
        self.ended: set[int] = set()  # threads
        self.counted: dict[tuple[int | None, str], int] = {}  # by thread and event
        self.opened = 0

    def why_disabled(self) -> str | None:
        return self.disabled

    def code(self, name: str) -> int | None:
        known = [*self.presets, *SOFTWARE, *self.elsewhere]
        return known.index(name) if name in known else -1 if name in catalogue.catalogue("papi").named() else None

    def component_of(self, code: int) -> str:
        return "rapl" if code >= len(self.presets) + len(SOFTWARE) else "perf_event"

    def has(self, name: str) -> bool:
        return name in self.presets

    def count_kernel(self, kernel: bool) -> None:
        if kernel and not self.kernel_allowed and self.refuses_domain:
            raise PapiError(ENOSUPP, "Not supported")
        self.kernel = kernel

    def open_set(self, events: Sequence[str], tid: int | None) -> int:
        if tid in self.ended:
            raise PapiError(ESYS, "A System/C library call failed")
        if tid is not None and not self.pmu:
            raise PapiError(ENOEVNT, "Event does not exist")
        if self.kernel and not self.kernel_allowed:
            raise PapiError(EPERM, "Permission level does not permit operation")
        hardware = [name for name in events if name not in SOFTWARE]
        if not set(hardware) <= set(self.presets):
            raise PapiError(ENOEVNT, "Event does not exist")
        if sum(self.cost.get(name, 1) for name in hardware) > self.counters:
            raise PapiError(ECNFLCT, "hardware resource limits")
        self.opened += 1
        self.open[self.opened], self.tids[self.opened] = list(events), tid
        return self.opened

    def start(self, number: int) -> None:
        if self.tids[number] in [self.tids[other] for other in self.running]:
            raise PapiError(EISRUN, "EventSet is currently counting")
        self.running.add(number)

    def stop(self, number: int) -> None:
        assert number in self.running
        self.running.remove(number)

    def close_set(self, number: int) -> None:
        self.running.discard(number)
        del self.open[number]

    def reader(self, events: int) -> Callable[[int, int], bytes]:
        def read(number: int, size: int) -> bytes:
            names, tid = self.open[number], self.tids[number]
            assert number in self.running and len(names) <= events and size == group_read_bytes(len(names))
            return struct.pack(f"={3 + len(names)}q", 0, 0, 0, *(self.counted.get((tid, name), 0) for name in names))

        return read

    def work(self, tid: int | None, **amounts: int) -> None:
        """The thread counts so much of each event of the running sets: by the name's last part, else nothing."""
        for name in [name for number in self.running if self.tids[number] == tid for name in self.open[number]]:
            amount = amounts.get(name.replace("-", "_").split("::")[-1], 0)
            self.counted[tid, name] = self.counted.get((tid, name), 0) + amount

    def values(self, number: int, events: int) -> tuple[int, ...]:
        names = self.open[number]
        assert len(names) == events
        return tuple(0 if name in self.silent else 1000 for name in names)
