"""What does sampling cost? Forwards of a model in a process of their own, sampled from beside it and not, interleaved;
and how fast the samples are read afterwards.

    python -m scripts.benchmarks.sampler [--models yolov7 yolov8n] [--rounds 40] [--frequency 999] [--samples 10000000]

Every round does the forward three times, in a random order: left alone, sampled, and interrupted as often for nothing
(the same timer on every thread, set to take neither user's nor kernel's code: the interrupt comes, and no sample is
made). The last one is what the machine takes for interrupts, whoever samples.
Figures are medians over rounds of the forward's time (or its process's processor time) divided by that of the one left
alone, with the error of that median (1.25 standard errors of the mean, from the quartiles). Reading: a file of so many
samples, each with counters and up to 23 callers of 4000 different call chains, becomes the rows of ``samples``.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from collectors.sampler.collector import SamplerCollector
from collectors.sampler.record_file import read_record_file
from collectors.sampler.sampling_events import SamplingEvent
from collectors.sampler.tables import samples_table
from collectors.sampler.threads import threads_of
from hwprof.collector.contract import PassContext
from hwprof.hardware import perf_event, perf_sampling
from hwprof.hardware.perf_sampling import RECORD_SAMPLE, SamplingAttributes
from hwprof.hardware.pmu import Code
from hwprof.run.details import as_json
from scripts.benchmarks.slower import slower
from scripts.benchmarks.tables import Table, write

CHAINS = 4000
BLOCK_SAMPLES = 200_000
EVENT = 77
TIME_WORD = 4
"""Of a record: samples come in order of time."""

_USER = 2
_CONTEXT_USER = 2**64 - 512

FORWARDS = "--forwards"

WALL, CPU = 0, 1
BARE, INTERRUPTED, SAMPLED = "left alone", "interrupted", "sampled"

_FLAGS_OFFSET = 40
_EXCLUDE_USER_AND_KERNEL = 1 << 4 | 1 << 5


class _Interrupts:
    """The sampler's timer on every thread that a process has, without samples."""

    def __init__(self, pid: int, frequency_hz: int) -> None:
        attributes = _OfNothing(
            perf_event.TYPE_SOFTWARE, perf_sampling.CONFIG_CPU_CLOCK, frequency_hz=frequency_hz, disabled=True
        )
        self._fds = [perf_event.open_event(attributes, tid) for tid in threads_of(pid)]

    def begin(self) -> None:
        for fd in self._fds:
            perf_event.enable_group(fd)

    def end(self) -> None:
        for fd in self._fds:
            perf_event.disable_group(fd)


class _OfNothing(SamplingAttributes):
    """Samples of neither user's nor kernel's code."""

    def pack(self) -> bytes:
        packed = bytearray(super().pack())
        (flags,) = struct.unpack_from("=Q", packed, _FLAGS_OFFSET)
        struct.pack_into("=Q", packed, _FLAGS_OFFSET, flags | _EXCLUDE_USER_AND_KERNEL)
        return bytes(packed)


def _forwards(model: str) -> None:
    """The process that is watched: a forward for each line that it hears."""
    import torch

    from hwprof.workload import factory
    from hwprof.workload.spec import WorkloadSpec

    workload = factory.build(WorkloadSpec(model=model))
    workload.prepare()
    call = workload.forwards()[0]
    with torch.inference_mode():
        for _ in range(3):
            call.run()
        print(json.dumps("ready"), flush=True)
        for _ in sys.stdin:
            begin, cpu = time.monotonic_ns(), time.process_time_ns()
            call.run()
            print(json.dumps([time.monotonic_ns() - begin, time.process_time_ns() - cpu]), flush=True)


def _bench(model: str, rounds: int, frequency_hz: int) -> list[str]:
    command = [sys.executable, "-m", "scripts.benchmarks.sampler", FORWARDS, model]
    with (
        tempfile.TemporaryDirectory() as raw,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process,
    ):
        assert process.stdin is not None and process.stdout is not None

        def forward() -> tuple[int, int]:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write("\n")
            process.stdin.flush()
            wall, cpu = json.loads(process.stdout.readline())
            return wall, cpu

        process.stdout.readline()
        sampler = SamplerCollector()
        sampler.start(PassContext("trace", process.pid, process.pid, Path(raw), {"frequency": frequency_hz}))
        interrupts = _Interrupts(process.pid, frequency_hz)
        around: dict[str, tuple[Callable[[], None], ...]] = {
            BARE: (),
            INTERRUPTED: (interrupts.begin, interrupts.end),
            SAMPLED: (sampler.work_begins, sampler.step, sampler.work_ends),
        }
        order, taken = random.Random(0), {way: [(0, 0)] * 0 for way in around}
        for _ in range(rounds):
            for way in order.sample(list(around), len(around)):
                for first in around[way][:1]:
                    first()
                taken[way].append(forward())
                for later in around[way][1:]:
                    later()
        process.stdin.close()
        process.wait()
        found = sampler.stop()
    bare_ms = statistics.median(wall for wall, _ in taken[BARE]) / 1e6
    more = [
        _more(taken[SAMPLED], taken[BARE], WALL),
        _more(taken[INTERRUPTED], taken[BARE], WALL),
        _more(taken[SAMPLED], taken[INTERRUPTED], WALL),
        _more(taken[SAMPLED], taken[BARE], CPU),
    ]
    detail = as_json(found.detail)
    return [
        f"{model}, {detail['event']}",
        f"{bare_ms:.1f}",
        *more,
        str(detail["samples"]),
        str(detail["lost"]),
        str(rounds),
    ]


def _more(taken: list[tuple[int, int]], bare: list[tuple[int, int]], which: int) -> str:
    return slower([mine[which] / other[which] for mine, other in zip(taken, bare, strict=True)])


def _reading(samples: int) -> str:
    """How long it takes to read so many samples, in words."""
    random_numbers = np.random.default_rng(0)
    records = [_record(random_numbers, number) for number in range(CHAINS)]
    chosen = [records[number] for number in random_numbers.integers(0, CHAINS, BLOCK_SAMPLES)]
    block = np.concatenate(chosen)
    times_at = np.cumsum([0, *map(len, chosen[:-1])]) + TIME_WORD
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "records.bin"
        with file.open("wb") as handle:
            for number in range(samples // BLOCK_SAMPLES):
                block[times_at] = np.arange(number * BLOCK_SAMPLES, (number + 1) * BLOCK_SAMPLES)
                handle.write(block.tobytes())
        begin = time.monotonic()
        recording = read_record_file(file, reading=True)
        decoded = time.monotonic()
        leader = SamplingEvent("cycles", Code(0, 0), "cpu")
        rows = samples_table(recording.samples, recording.stacks, {EVENT: leader}).height
        return (
            f"{rows} samples ({file.stat().st_size / 1e9:.2f} GB) are decoded in {decoded - begin:.1f} s and made"
            f" rows of in {time.monotonic() - decoded:.1f} s."
        )


def _record(random_numbers: np.random.Generator, number: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """A sample as the kernel writes it, with three counters read."""
    callers = random_numbers.integers(1 << 12, 1 << 47, number % 24).tolist()
    chain = [_CONTEXT_USER, 0x40_0000 + number, *callers]
    body = [EVENT, 0x40_0000 + number, 101 << 32 | 100, number, 1, 1_000_000]
    words = [*body, 3, 5000, 5000, 10, 20, 30, len(chain), *chain]
    header = RECORD_SAMPLE | _USER << 32 | (8 * (1 + len(words))) << 48
    return np.array([header, *words], dtype=np.uint64)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=["yolov7", "yolov8n"])
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--frequency", type=int, default=999)
    parser.add_argument("--samples", type=int, default=10_000_000)
    parser.add_argument("--output", type=Path, default=Path("results/sampler.md"))
    parser.add_argument(FORWARDS, metavar="MODEL", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.forwards:
        _forwards(options.forwards)
        return
    rows = [
        _bench(model, options.rounds * (5 if model[-1] == "n" else 1), options.frequency) for model in options.models
    ]
    table = Table(
        title=f"What sampling at {options.frequency} Hz costs",
        columns=[
            "model, 640, sampled on",
            "median ms",
            "sampled: slower",
            "interrupted for nothing: slower",
            "sampled against interrupted",
            "sampled: more processor time",
            "samples",
            "lost",
            "rounds",
        ],
        rows=rows,
        note=f"{__doc__}\n{_reading(options.samples)}",
    )
    write(table, options.output)


if __name__ == "__main__":
    main()
