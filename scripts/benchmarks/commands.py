"""What hwprof's commands take beside the work that they measure: whole processes, wall clock.

    python -m scripts.benchmarks.commands [--rounds 9] [--runs 7]

`hwprof --help`, `hwprof report` (of the default yolov7 run) and `hwprof layers --runs 0` are timed in turn with an
empty Python.
For `hwprof collect` with its defaults, the time outside of the forwards is its wall clock less every inference stage of
every pass, warm-up included; the forwards that calibrate random weights are not subtracted. Outside of the iterations
is without the rest of the pipeline too (pictures read and written, NMS). CPU time is user and system time of the
command and all its processes, the better measure where other programs run. The bars are in bars.toml.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import polars as pl

from hwprof.run.directory import RunDirectory
from scripts.benchmarks.tables import Table, write

HWPROF = (sys.executable, "-m", "hwprof")
MODELS = ("yolov8n", "yolov7")  # the last one's run is reported


class Taken(NamedTuple):
    """Seconds of one command."""

    wall_s: float
    cpu_s: float


def _take(command: Sequence[str], place: Path) -> Taken:
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, cwd=place, check=True, capture_output=True)
    wall_s, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Taken(wall_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


class Collected(NamedTuple):
    """One default run of ``collect``."""

    taken: Taken
    forwards_s: float
    iterations_s: float  # the forwards, and the pipeline around them


def _collect(model: str, place: Path) -> Collected:
    taken = _take((*HWPROF, "collect", "--model", model), place)
    spans = RunDirectory.latest(place / "results").scan("spans")
    forwards = (pl.col("kind") == "stage") & (pl.col("path") == "inference")
    seconds = (pl.col("end_ns") - pl.col("begin_ns")).sum() / 1e9
    found = [
        spans.filter(which).select(seconds).collect().item() for which in (forwards, pl.col("kind") == "iteration")
    ]
    return Collected(taken, *found)


def _row(name: str, what: str, seconds: Sequence[float]) -> list[str]:
    spread = f"{min(seconds):.3f} … {max(seconds):.3f}"
    return [name, what, f"{statistics.median(seconds):.3f}", spread, str(len(seconds))]


def _collect_rows(model: str, runs: Sequence[Collected]) -> list[list[str]]:
    name = f"hwprof collect --model {model}"
    return [
        _row(name, "wall clock", [run.taken.wall_s for run in runs]),
        _row(name, "CPU time", [run.taken.cpu_s for run in runs]),
        _row(name, "forwards", [run.forwards_s for run in runs]),
        _row(name, "outside of the forwards", [run.taken.wall_s - run.forwards_s for run in runs]),
        _row(name, "outside of the iterations", [run.taken.wall_s - run.iterations_s for run in runs]),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--output", type=Path, default=Path("results/commands.md"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        runs: dict[str, list[Collected]] = {model: [] for model in MODELS}
        for _ in range(options.runs):
            for model in MODELS:
                runs[model].append(_collect(model, place))
        commands = {
            "python -c pass": (sys.executable, "-c", "pass"),
            "hwprof --help": (*HWPROF, "--help"),
            "hwprof report": (*HWPROF, "report"),
            "hwprof layers --model yolov7 --runs 0": (*HWPROF, "layers", "--model", "yolov7", "--runs", "0"),
        }
        for command in commands.values():
            _take(command, place)
        taken: dict[str, list[Taken]] = {name: [] for name in commands}
        for _ in range(options.rounds):
            for name, command in commands.items():
                taken[name].append(_take(command, place))
    rows: list[list[str]] = []
    for name, times in taken.items():
        rows.append(_row(name, "wall clock", [one.wall_s for one in times]))
        rows.append(_row(name, "CPU time", [one.cpu_s for one in times]))
    for model, done in runs.items():
        rows += _collect_rows(model, done)
    write(
        Table(
            title="Start-up and overhead of the commands",
            columns=["command", "what", "median, s", "least … most, s", "times"],
            rows=rows,
            note=__doc__ or "",
        ),
        options.output,
    )


if __name__ == "__main__":
    main()
