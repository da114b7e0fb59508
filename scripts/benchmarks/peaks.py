"""Do the measured peaks hold? Against STREAM, built from its published definition, and a plain loop of torch.mm.

    python -m scripts.benchmarks.peaks [--rounds 5]

Every round measures each in turn, at one thread and at one a core, in an order of its own. Figures are medians over the
rounds of hwprof's figure divided by the other's of the same round, with the quartiles. STREAM stores through the
caches, as hwprof's ``triad`` does; its threads are bound to cores. As its rules allow, it is tuned: the best of builds
with ``gcc -O3 -fopenmp`` with and without ``-march=native``, with no offset and with one of 1088 bytes between arrays.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from hwprof.hardware import machine
from hwprof.hardware.peaks import team
from hwprof.hardware.peaks.suite import Suite
from hwprof.hardware.peaks.working_sets import STREAM
from hwprof.run.peaks import DRAM
from hwprof.session.peaks import usual_threads
from scripts.benchmarks.tables import Table, write

SOURCE: Final = Path(__file__).with_name("stream.c")
BUILDS: Final = ((), ("-march=native",))
OFFSETS: Final = (0, 136)
"""Elements."""

SIZE: Final = 2048
PLAIN: Final = f"""
import sys, time, torch
torch.set_num_threads(int(sys.argv[1]))
a, b = torch.rand({SIZE}, {SIZE}), torch.rand({SIZE}, {SIZE})
times = []
for _ in range(12):
    begin = time.perf_counter()
    torch.mm(a, b)
    times.append(time.perf_counter() - begin)
print(2 * {SIZE} ** 3 / min(times) / 1e9)
"""


def _built(folder: Path) -> list[Path]:
    largest = max(one.size_bytes for one in machine.caches())
    programs = []
    for number, (options, offset) in enumerate(itertools.product(BUILDS, OFFSETS)):
        programs.append(folder / f"stream{number}")
        sizes = [f"-DELEMENTS={STREAM * largest // 8}", f"-DOFFSET={offset}"]
        common = ["-O3", "-fopenmp", "-mcmodel=medium"]
        subprocess.run(["gcc", *common, *options, *sizes, "-o", str(programs[-1]), str(SOURCE)], check=True)
    return programs


def _stream(programs: Sequence[Path], threads: int) -> float:
    places = ",".join(f"{{{cpu}}}" for cpu in team.processors(threads))
    environment = os.environ | {"OMP_NUM_THREADS": str(threads), "OMP_PLACES": places, "OMP_PROC_BIND": "true"}
    found = []
    for program in programs:
        done = subprocess.run([str(program)], env=environment, capture_output=True, text=True, check=True)
        found.append(float(done.stdout) / 1e3)
    return max(found)


def _plain(threads: int) -> float:
    done = subprocess.run([sys.executable, "-c", PLAIN, str(threads)], capture_output=True, text=True, check=True)
    return float(done.stdout)


def _suite(threads: int) -> float:
    suite = Suite(machine.describe())
    suite.carry_out([threads])
    return next(one.value for one in suite.peaks if (one.what, one.level) == ("triad", DRAM))


def _gemm(threads: int) -> float:
    command = [sys.executable, "-P", "-m", "hwprof.workload.gemm", str(threads)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout)[0]["value"])


def _rows(rounds: int, stream: Sequence[Path]) -> list[list[str]]:
    pairs: dict[str, tuple[Callable[[int], float], Callable[[int], float]]] = {
        "triad, DRAM, GB/s": (_suite, lambda threads: _stream(stream, threads)),
        "GEMM FP32, GFLOP/s": (_gemm, _plain),
    }
    cases = [(name, threads) for name in pairs for threads in usual_threads(machine.describe())]
    found: dict[tuple[str, int], list[tuple[float, float]]] = {case: [] for case in cases}
    chance = random.Random(0)
    for _ in range(rounds):
        for case in chance.sample(cases, len(cases)):
            ways = [0, 1]
            chance.shuffle(ways)
            values = {way: pairs[case[0]][way](case[1]) for way in ways}
            found[case].append((values[0], values[1]))
    return [_row(*case, measured) for case, measured in found.items()]


def _row(name: str, threads: int, measured: list[tuple[float, float]]) -> list[str]:
    ours, theirs = (statistics.median(one[way] for one in measured) for way in (0, 1))
    ratios = [mine / other for mine, other in measured]
    low, ratio, high = statistics.quantiles(ratios, n=4, method="inclusive")
    apart = abs(ratio - 1)
    return [
        name,
        str(threads),
        f"{ours:.1f}",
        f"{theirs:.1f}",
        f"{ratio:.3f} ({low:.3f} to {high:.3f})",
        f"{apart:.1%}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path, default=Path("results/peaks.md"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = _rows(options.rounds, _built(Path(folder)))
    columns = ["peak", "threads", "hwprof peaks", "STREAM, torch.mm", "ratio (quartiles)", "apart"]
    write(Table("Measured peaks", columns, rows, (__doc__ or "").strip()), options.output)


if __name__ == "__main__":
    main()
