"""The peaks of this machine, one after the other: arithmetic, clock, each level's bandwidth and latency."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from hwprof.c_compiler import NoLibraryError, tool
from hwprof.hardware import machine
from hwprof.hardware.peaks import numpy_kernels, team
from hwprof.hardware.peaks.kernels import CHAINS, TRIAD_BYTES, Kernels
from hwprof.hardware.peaks.memory import LINE_BYTES, Memory, renewed
from hwprof.hardware.peaks.working_sets import WorkingSet, chased, dram_bytes, streamed_bytes, working_sets
from hwprof.run.manifest import Machine
from hwprof.run.peaks import DRAM, NEW_PAGE, USUAL_PAGES, NotMeasured, Peak, Unit, better, hindered

EACH_S: Final = 0.012
REPETITIONS: Final = 5

TRIES: Final = 6
"""At most, of arithmetic that others hinder: a program that starts beside it may take a core for seconds."""

PAUSE_S: Final = 1.0

LEAST_RESERVED: Final = 64 << 20

LEAST_PAGED: Final = 256 << 20
"""Of memory in usual pages: so that no core's own cache holds the tables of them (8 bytes for each 4 KiB)."""

RENEWED_BYTES: Final = 16 << 20
"""More than glibc keeps by default."""

Report = Callable[[str], None]
"""What is measured now."""


class Suite:
    """Of one machine; fills ``peaks`` and ``missing``."""

    def __init__(self, of: Machine, report: Report = lambda _: None) -> None:
        self._machine, self._report = of, report
        self.peaks: list[Peak] = []
        self.missing: list[NotMeasured] = []
        self.built_by: str | None = None

    def carry_out(self, threads: Sequence[int]) -> None:
        """With each of so many threads; what one thread alone can tell (clock, latency) is measured once."""
        self._new_pages()
        self._report("compiling")
        try:
            kernels, path = Kernels.compiled(machine.cpuinfo().flags)
        except NoLibraryError as error:
            self._without_a_compiler(threads, error)
            return
        self.built_by = tool(path).version
        for number in sorted(set(threads)):
            cpus = team.processors(number)
            if len(cpus) < number:
                reason = f"{number} threads have no processor each: there are {len(cpus)}"
                self.missing.append(NotMeasured(what=f"{number} threads", reason=reason))
                continue
            self._arithmetic(kernels, cpus)
            self._bandwidth(kernels, cpus)
        self._clock(kernels)
        self._latency(kernels)
        self._arithmetic_again(kernels, threads)  # some seconds later
        for _ in range(TRIES):
            if not hindered(self.peaks):
                break
            time.sleep(PAUSE_S)
            self._arithmetic_again(kernels, threads)

    def _arithmetic_again(self, kernels: Kernels, threads: Sequence[int]) -> None:
        for number in sorted(set(threads)):
            if len(cpus := team.processors(number)) == number:
                self._arithmetic(kernels, cpus)

    def _arithmetic(self, kernels: Kernels, cpus: Sequence[int]) -> None:
        known = kernels.arithmetic()
        self._report(f"arithmetic, {_threads(cpus)}")
        loops = [kernels.multiply_adds(one) for one in known]
        for one, times in zip(known, _timed(cpus, lambda _: loops), strict=True):
            unit: Unit = "GOP/s" if one.unit == "GOP/s" else "GFLOP/s"
            self._add(one.what, None, cpus, [one.operations * len(cpus) / s / 1e9 for s in times], unit, one.how)
        if len(cpus) == 1 and not any(one.what in ("bf16", "int8") for one in self.missing):
            lacking = {"bf16", "int8"} - {one.what for one in known}
            reason = "this processor has no instructions for it that hwprof has a loop of"
            self.missing += [NotMeasured(what=what, reason=reason) for what in sorted(lacking)]

    def _bandwidth(self, kernels: Kernels, cpus: Sequence[int]) -> None:
        sets = working_sets(self._machine.caches, len(cpus), _free_bytes())
        for one in sets:
            self._report(f"bandwidth of {one.level}, {_threads(cpus)}")
            self._bandwidth_of(kernels, cpus, one)
        if not any(one.level == DRAM for one in sets):
            self.missing.append(NotMeasured(what=f"{DRAM}, {_threads(cpus)}", reason="too little memory is free"))

    def _bandwidth_of(self, kernels: Kernels, cpus: Sequence[int], one: WorkingSet) -> None:
        past_caches = one.level == DRAM and kernels.past_caches
        kept: list[Memory] = []

        def make(_: int) -> list[team.Loop]:
            memory, arrays = Memory.of_arrays(one.bytes)
            kept.append(memory)
            loops = [kernels.read(arrays), kernels.triad(arrays)]
            return [*loops, kernels.triad(arrays, past_caches=True)] if past_caches else loops

        elements = one.bytes // 3 // 8
        names = ["read", "triad", "triad-nt"]
        moved = [8 * 3 * elements, TRIAD_BYTES * elements, TRIAD_BYTES * elements]
        for what, number, times in zip(names, moved, _timed(cpus, make), strict=False):
            rates = [number * len(cpus) / seconds / 1e9 for seconds in times]
            self._add(what, one.level, cpus, rates, "GB/s", f"{kernels.width.bits}-bit", one.bytes)

    def _clock(self, kernels: Kernels) -> None:
        cpus = team.processors(1)
        (times,) = _timed(cpus, lambda _: [kernels.additions()])
        self._add("clock", None, cpus, [CHAINS / seconds / 1e9 for seconds in times], "GHz", "a chain of additions")

    def _latency(self, kernels: Kernels) -> None:
        cpus, caches = team.processors(1), self._machine.caches
        levels = chased(caches)
        beyond = dram_bytes(caches, 1, arrays=1)
        if beyond <= _free_bytes() // 2:
            levels.append(WorkingSet(DRAM, beyond))
        for one in levels:
            self._report(f"latency of {one.level}")
            self._chase(kernels, cpus, one, "latency")
        if (most := max(beyond, LEAST_PAGED)) <= _free_bytes() // 2:
            self._chase(kernels, cpus, WorkingSet(DRAM, most), USUAL_PAGES)

    def _chase(self, kernels: Kernels, cpus: Sequence[int], one: WorkingSet, what: str) -> None:
        huge = what != USUAL_PAGES
        kept: list[Memory] = []

        def make(_: int) -> list[team.Loop]:
            kept.append(Memory.of_a_chase(one.bytes, seed=one.bytes, huge_pages=huge))
            return [kernels.chase(kept[-1].address)]

        (times,) = _timed(cpus, make)
        nanoseconds = [seconds * 1e9 for seconds in times]
        how = f"a chase of {LINE_BYTES}-byte lines in {'huge' if huge else 'usual'} pages"
        self._add(what, one.level, cpus, nanoseconds, "ns", how, one.bytes)

    def _new_pages(self) -> None:
        """What a page fault costs, all in all: entering the kernel, clearing the page, giving it back."""
        self._report("new pages")
        cpus = team.processors(1)
        loop, faults = renewed(RENEWED_BYTES)
        (times,) = _timed(cpus, lambda _: [loop])
        how = f"memory that is given back, {RENEWED_BYTES // faults >> 10} KiB a fault"
        self._add(NEW_PAGE, None, cpus, [s * 1e9 / faults for s in times], "ns", how, RENEWED_BYTES)

    def _without_a_compiler(self, threads: Sequence[int], error: NoLibraryError) -> None:
        """The triad as numpy does it, in DRAM; torch's products are there all the same."""
        for what in ("fp32", "bf16", "int8", "caches", "latency", "clock"):
            self.missing.append(NotMeasured(what=what, reason=str(error), remedy=error.remedy))
        for number in sorted(set(threads)):
            cpus = team.processors(number)
            size = streamed_bytes(self._machine.caches, number, _free_bytes())
            if len(cpus) < number or size is None:
                continue
            self._report(f"bandwidth of {DRAM} by numpy, {_threads(cpus)}")
            (times,) = _timed(cpus, lambda _, size=size: [numpy_kernels.triad(size)])  # type: ignore[misc]
            rates = [TRIAD_BYTES * (size // 24) * number / seconds / 1e9 for seconds in times]
            self._add("triad", DRAM, cpus, rates, "GB/s", numpy_kernels.how(), size)

    def _add(
        self, what: str, level: str | None, cpus: Sequence[int], values: Sequence[float], unit: Unit, how: str,
        size: int | None = None,
    ) -> None:  # fmt: skip
        best, worst = (min, max) if unit == "ns" else (max, min)
        found = Peak(
            what=what,
            level=level,
            threads=len(cpus),
            value=best(values),
            unit=unit,
            worst=worst(values),
            repetitions=len(values),
            how=how,
            bytes=size,
        )
        key = (what, level, len(cpus))
        known = next((at for at, one in enumerate(self.peaks) if (one.what, one.level, one.threads) == key), None)
        if known is None:
            self.peaks.append(found)
        else:
            self.peaks[known] = better(self.peaks[known], found)


def _timed(cpus: Sequence[int], make: Callable[[int], Sequence[team.Loop]]) -> list[list[float]]:
    return team.seconds_a_round(cpus, make, EACH_S, REPETITIONS)


def _threads(cpus: Sequence[int]) -> str:
    return "1 thread" if len(cpus) == 1 else f"{len(cpus)} threads"


def _free_bytes() -> int:
    """That may be taken: 0 where the system does not say how much it has."""
    return max(0, machine.available_bytes() - LEAST_RESERVED)
