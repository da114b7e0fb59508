"""What hwprof's commands take beside the work that they measure: whole processes, wall clock.

    python -m scripts.benchmarks.commands [--rounds 9] [--runs 3]

`hwprof --help` and `hwprof report` (of the default yolov7 run) are timed in turn with an empty Python. For `hwprof
collect --model yolov7` with its defaults, the time outside of the forwards is its wall clock less every inference stage
of every pass, warm-up included; the forwards that calibrate random weights are not taken off.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from hwprof.run.directory import RunDirectory
from scripts.benchmarks.tables import Table, write

HWPROF = (sys.executable, "-m", "hwprof")


def _wall_s(command: Sequence[str], place: Path) -> float:
    begin = time.monotonic()
    subprocess.run(command, cwd=place, check=True, capture_output=True)
    return time.monotonic() - begin


def _collect(place: Path) -> tuple[float, float]:
    """Wall clock of one default run, and of its forwards, in seconds."""
    wall_s = _wall_s((*HWPROF, "collect", "--model", "yolov7"), place)
    spans = RunDirectory.latest(place / "results").scan("spans")
    forwards = spans.filter((pl.col("kind") == "stage") & (pl.col("path") == "inference"))
    forward_ns = forwards.select((pl.col("end_ns") - pl.col("begin_ns")).sum()).collect().item()
    return wall_s, forward_ns / 1e9


def _row(name: str, bar: str, seconds: Sequence[float]) -> list[str]:
    spread = f"{min(seconds):.3f} … {max(seconds):.3f}"
    return [name, bar, f"{statistics.median(seconds):.3f}", spread, str(len(seconds))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--output", type=Path, default=Path("results/commands.md"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        runs = [_collect(place) for _ in range(options.runs)]
        commands = {
            "python -c pass": (sys.executable, "-c", "pass"),
            "hwprof --help": (*HWPROF, "--help"),
            "hwprof report": (*HWPROF, "report"),
        }
        for command in commands.values():
            _wall_s(command, place)
        taken: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(options.rounds):
            for name, command in commands.items():
                taken[name].append(_wall_s(command, place))
    bars = {"hwprof --help": "0.2", "hwprof report": "1.0"}
    rows = [_row(name, bars.get(name, ""), seconds) for name, seconds in taken.items()]
    rows.append(_row("hwprof collect --model yolov7", "", [wall for wall, _ in runs]))
    rows.append(_row("… its forwards", "", [forward for _, forward in runs]))
    rows.append(_row("… everything else", "25", [wall - forward for wall, forward in runs]))
    write(
        Table(
            title="Start-up and overhead of the commands",
            columns=["command", "bar, s", "median, s", "least … most, s", "times"],
            rows=rows,
            note=__doc__ or "",
        ),
        options.output,
    )


if __name__ == "__main__":
    main()
