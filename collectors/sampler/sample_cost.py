"""What a sample costs here, measured: nanoseconds on hardware that interrupts itself, tens of microseconds in some
virtual machines, whatever the sampler does with the interrupt."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from collectors.sampler.record_decoder import Decoder
from collectors.sampler.ring import map_ring
from collectors.sampler.sampling_events import Opening, SamplingEvent
from hwprof.hardware import perf_event, perf_sampling

TRIAL_FREQUENCY_HZ: Final = 20_000
"""So that a few milliseconds of work are interrupted often enough for the difference to stand out."""

ROUNDS: Final = 7
WORK_NS: Final = 4_000_000
RING_BYTES: Final = 1 << 18


def sample_cost_ns(leader: SamplingEvent, opening: Opening) -> float | None:
    """Processor time that a sample takes from the thread that it interrupts; None where the clock does not open or the
    difference is within the noise. Works for some 60 ms on the calling thread."""
    highest = perf_sampling.highest_frequency_hz() or TRIAL_FREQUENCY_HZ
    often = replace(opening, frequency_hz=min(TRIAL_FREQUENCY_HZ, highest))
    try:
        fds = often.open(leader)
    except OSError:
        return None
    try:
        ring = map_ring(fds[0], RING_BYTES)
    except OSError:
        perf_event.close_group(fds)
        return None
    work = _work_of(WORK_NS)
    extra_ns, samples = [], 0
    try:
        for _ in range(ROUNDS):
            bare_ns = _taken_ns(work)
            perf_event.enable_group(fds[0])
            sampled_ns = _taken_ns(work)
            perf_event.disable_group(fds[0])
            extra_ns.append(sampled_ns - bare_ns)
            data = bytearray()
            ring.drain(data.extend)
            samples += len(Decoder(reading=leader.reading).decode(bytes(data))[0].samples.time_ns)
    finally:
        ring.close()
        perf_event.close_group(fds)
    cost_ns = statistics.median(extra_ns) * ROUNDS / samples if samples else 0.0
    return cost_ns if cost_ns > 0 else None


def _work_of(duration_ns: int) -> Callable[[], None]:
    """A fixed amount of work that takes about so long."""
    once_ns = max(1, min(_taken_ns(perf_event.busy_work) for _ in range(3)))
    times = max(1, duration_ns // once_ns)

    def work() -> None:
        for _ in range(times):
            perf_event.busy_work()

    return work


def _taken_ns(work: Callable[[], object]) -> int:
    begin_ns = time.thread_time_ns()
    work()
    return time.thread_time_ns() - begin_ns
