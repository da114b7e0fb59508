"""What do looks at Python's stacks cost? Forwards of a model with py-spy beside them and without, interleaved.

    python -m scripts.benchmarks.python_stacks [--models yolov7 yolov8n] [--rounds 20] [--rate 100]

Every round does so many forwards in each way, in a random order, after one that does not count; py-spy begins before
them and ends after them, as in a pass. Figures are medians over rounds of the median forward's time divided by that of
the round's forwards without it, with the error of that median (1.25 standard errors of the mean, from the quartiles).
py-spy's own processor time is that of all it does, from its begin to its file, over the time that it looked.
"""

from __future__ import annotations

import argparse
import random
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Final

import torch

from collectors.pyspy.collector import arguments
from collectors.pyspy.declaration import RATE
from collectors.pyspy.watcher import Watcher, found
from hwprof.workload import factory
from hwprof.workload.spec import WorkloadSpec
from scripts.benchmarks.slower import slower
from scripts.benchmarks.tables import Table, write

BARE: Final = "without"
FORWARDS: Final = 3
"""Of yolov7, in a round and way; of small models more."""

WAYS: Final = {"beside it": {}, "stopping it": {"pyspy_blocking": True}}


class _Looked:
    """py-spy around forwards, and what it took itself."""

    def __init__(self, folder: Path, rate_hz: int, options: dict[str, bool]) -> None:
        self._folder, self._arguments = folder, arguments(options, rate_hz)
        self.cpu_s = self.wall_s = 0.0

    @contextmanager
    def looking(self) -> Iterator[None]:
        program = found()
        assert program is not None, "pip install py-spy"
        before_s, begin_s = _children_s(), time.monotonic()
        watcher = Watcher(program, self._arguments, self._folder / "looks.json")
        watcher.begin()
        try:
            yield
        finally:
            self.wall_s += time.monotonic() - begin_s
            watcher.end()
            self.cpu_s += _children_s() - before_s


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _bench(model: str, rounds: int, rate_hz: int, forwards: int) -> list[list[str]]:
    workload = factory.build(WorkloadSpec(model=model))
    workload.prepare()
    call = workload.forwards()[0]

    def median_ns() -> float:
        times = []
        for number in range(forwards + 1):
            begin_ns = time.monotonic_ns()
            call.run()
            if number:
                times.append(time.monotonic_ns() - begin_ns)
        return statistics.median(times)

    with torch.inference_mode(), tempfile.TemporaryDirectory() as folder:
        looked = {way: _Looked(Path(folder), rate_hz, options) for way, options in WAYS.items()}
        around: dict[str, Callable[[], AbstractContextManager[None]]] = {BARE: nullcontext}
        around |= {way: one.looking for way, one in looked.items()}
        taken: dict[str, list[float]] = {way: [] for way in around}
        order = random.Random(0)
        for _ in range(rounds):
            for way in order.sample(list(around), len(around)):
                with around[way]():
                    taken[way].append(median_ns())
    bare_ms = f"{statistics.median(taken[BARE]) / 1e6:.1f}"
    return [
        [
            f"{model}, {way}",
            bare_ms,
            slower([mine / other for mine, other in zip(taken[way], taken[BARE], strict=True)]),
            f"{100 * one.cpu_s / one.wall_s:.0f}%",
            str(rounds),
        ]
        for way, one in looked.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=["yolov7", "yolov8n"])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--rate", type=int, default=RATE)
    parser.add_argument("--output", type=Path, default=Path("results/python_stacks.md"))
    options = parser.parse_args()
    rows = []
    for model in options.models:
        rows += _bench(model, options.rounds, options.rate, FORWARDS * (5 if model[-1] == "n" else 1))
    table = Table(
        title=f"What looks at Python's stacks cost, {options.rate} a second",
        columns=["model, 640, py-spy", "median ms without", "slower", "py-spy's processor time", "rounds"],
        rows=rows,
        note=__doc__,
    )
    write(table, options.output)


if __name__ == "__main__":
    main()
