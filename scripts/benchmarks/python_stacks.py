"""What do looks at Python's stacks cost? Forwards of a model with py-spy beside them and without, interleaved.

    python -m scripts.benchmarks.python_stacks [--models yolov7 yolov8n] [--rounds 20] [--rate 100]

Every round does so many forwards in each way, in a random order, after one that does not count; py-spy begins before
them and ends after them, as in a pass. Figures are medians over rounds of the median forward's time divided by that of
the round's forwards without it, with the error of that median (1.25 standard errors of the mean, from the quartiles).
py-spy's own processor time is that of all it does, from its begin to its file, over the time that it looked.

Layers are timed by hooks in all ways alike; those with at least 1% of the forward have a ratio each, made in the same
way: the quartiles of these, and the slowest one.
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
from functools import partial
from pathlib import Path
from typing import Any, Final

import torch

from collectors.pyspy.collector import arguments
from collectors.pyspy.declaration import RATE
from collectors.pyspy.watcher import Watcher, found
from hwprof.workload import factory
from hwprof.workload.spec import WorkloadSpec
from scripts.benchmarks.slower import slower
from scripts.benchmarks.tables import Table, write

BARE: Final = "without"
WHOLE: Final = ""
"""Among the layers' names: the forward."""

LAYERS: Final = ("layers slower: median (quartiles)", "slowest layer")

FORWARDS: Final = 3
"""Of yolov7, in a round and way; of small models more."""

WORTH_TIMING: Final = 0.01
"""Of the forward: ratios of shorter layers are noise."""

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


class _LayerTimes:
    """How long each leaf layer takes, by hooks."""

    def __init__(self, model: torch.nn.Module) -> None:
        self._begin_ns = 0
        self.taken_ns: dict[str, list[int]] = {}
        for name, module in model.named_modules():
            if not any(module.children()):
                module.register_forward_pre_hook(self._enter)
                module.register_forward_hook(partial(self._leave, name))

    def medians_ns(self) -> dict[str, float]:
        """Of the calls since the last time that this was asked."""
        found = {name: statistics.median(taken) for name, taken in self.taken_ns.items()}
        self.taken_ns = {}
        return found

    def _enter(self, *_: Any) -> None:
        self._begin_ns = time.monotonic_ns()

    def _leave(self, name: str, *_: Any) -> None:
        self.taken_ns.setdefault(name, []).append(time.monotonic_ns() - self._begin_ns)


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _bench(model: str, rounds: int, rate_hz: int, forwards: int) -> list[list[str]]:
    workload = factory.build(WorkloadSpec(model=model))
    workload.prepare()
    call = workload.forwards()[0]
    layers = _LayerTimes(workload.modules[""])

    def medians_ns() -> dict[str, float]:
        times = []
        call.run()
        layers.medians_ns()
        for _ in range(forwards):
            begin_ns = time.monotonic_ns()
            call.run()
            times.append(time.monotonic_ns() - begin_ns)
        return {WHOLE: statistics.median(times), **layers.medians_ns()}

    with torch.inference_mode(), tempfile.TemporaryDirectory() as folder:
        looked = {way: _Looked(Path(folder), rate_hz, options) for way, options in WAYS.items()}
        around: dict[str, Callable[[], AbstractContextManager[None]]] = {BARE: nullcontext}
        around |= {way: one.looking for way, one in looked.items()}
        taken: dict[str, list[dict[str, float]]] = {way: [] for way in around}
        order = random.Random(0)
        for _ in range(rounds):
            for way in order.sample(list(around), len(around)):
                with around[way]():
                    taken[way].append(medians_ns())
    bare_ms = statistics.median(found[WHOLE] for found in taken[BARE]) / 1e6
    return [
        [
            f"{model}, {way}",
            f"{bare_ms:.1f}",
            slower(_ratios(WHOLE, taken[way], taken[BARE])),
            *_of_layers(taken[way], taken[BARE]),
            f"{100 * one.cpu_s / one.wall_s:.0f}%",
            str(rounds),
        ]
        for way, one in looked.items()
    ]


def _ratios(what: str, mine: list[dict[str, float]], bare: list[dict[str, float]]) -> list[float]:
    return [one[what] / other[what] for one, other in zip(mine, bare, strict=True)]


def _of_layers(mine: list[dict[str, float]], bare: list[dict[str, float]]) -> tuple[str, str]:
    """The quartiles of the layers' slowdowns, and the slowest layer with its own."""
    share = {name: statistics.median(one[name] / one[WHOLE] for one in bare) for name in bare[0] if name != WHOLE}
    ratios = {name: _ratios(name, mine, bare) for name, of_whole in share.items() if of_whole >= WORTH_TIMING}
    low, median, high = statistics.quantiles((statistics.median(found) for found in ratios.values()), n=4)
    slowest = max(ratios, key=lambda name: statistics.median(ratios[name]))
    quartiles = f"{median - 1:+.1%} ({low - 1:+.1%} … {high - 1:+.1%}) of {len(ratios)}"
    return quartiles, f"{slower(ratios[slowest])} {slowest}"


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
        columns=["model, 640, py-spy", "median ms without", "slower", *LAYERS, "py-spy's processor time", "rounds"],
        rows=rows,
        note=__doc__,
    )
    write(table, options.output)


if __name__ == "__main__":
    main()
