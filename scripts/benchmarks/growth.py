"""What a default run costs as the work grows: photographs, layers, threads.

    python -m scripts.benchmarks.growth [--photographs 1,10,100,1000] [--layers 100,1000,3000,10000] [--threads 1,2,8]

Photographs are synthetic JPEGs of twelve shapes (noise, so that they are as large as a camera's), in proportions from
1 to 12, through yolov8n at 320 pixels; layers are Linear and ReLU of 64 in turn; threads are yolov8n's, at 320 pixels.
Wall time is of the whole `hwprof collect`; its own is that without the stages `inference` of all passes; after: what
comes when the last pass has been measured (adding up, tables, trace, report), which is allowed a quarter of the time
until then and 5 s. Memory is the
greatest proportional set (PSS of /proc/PID/smaps_rollup, looked at four times a second) of the supervisor, of any other
of its processes, and of all together. `report` is shown again, from what the run keeps. The exponent is the slope of
log(figure) over log(number), by least squares: 1 is linear, 0 no growth.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import cv2
import numpy as np
import polars as pl
from matplotlib.figure import Figure

from hwprof.processes import descendants
from hwprof.run.directory import RunDirectory
from scripts.benchmarks.growing_models import LAYERS
from scripts.benchmarks.tables import Table, write

HWPROF: Final = (sys.executable, "-m", "hwprof")
SIZES: Final = (
    (480, 640), (640, 480), (720, 1280), (1280, 720), (768, 1024), (1024, 768),
    (600, 600), (427, 640), (640, 427), (500, 900), (360, 800), (900, 400),
)  # fmt: skip
LOOK_S: Final = 0.25
AFTER_SHARE, AFTER_S = 0.25, 5.0
"""What is allowed after the passes: of their time, and beside that."""

COLUMNS: Final = (
    "wall, s", "own, s", "after, s", "of what is allowed", "supervisor, MB", "largest other, MB", "all together, MB",
    "trace, MB", "folder, MB", "report, s",
)  # fmt: skip


class Cost(NamedTuple):
    """Of one run, and of its report; in the order of ``COLUMNS``."""

    wall_s: float
    own_s: float
    after_s: float
    after_share: float
    supervisor_bytes: int
    other_bytes: int
    together_bytes: int
    trace_bytes: int
    folder_bytes: int
    report_s: float

    def cells(self) -> list[str]:
        """As the table has it."""
        sizes = [f"{size / 1e6:,.0f}" for size in self[4:9]]
        seconds = [f"{one:.1f}" for one in (self.wall_s, self.own_s, self.after_s)]
        return [*seconds, f"{self.after_share:.2f}", *sizes, f"{self.report_s:.2f}"]


class Peaks:
    """The greatest proportional sets of a process and those below it."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.own = self.other = self.together = 0

    def look(self) -> None:
        """Now."""
        own = _pss_bytes(self._pid)
        others = [_pss_bytes(one.pid) for one in descendants(self._pid)]
        self.own = max(self.own, own)
        self.other = max(self.other, *others, 0)
        self.together = max(self.together, own + sum(others))


def _pss_bytes(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:  # it has ended
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:")), 0)


def _photographs(folder: Path, number: int) -> None:
    """Of the n-th size n + 1 shares of them."""
    random = np.random.default_rng(number)
    shares = [size for place, size in enumerate(SIZES) for _ in range(place + 1)]
    folder.mkdir()
    for index in range(number):
        height, width = shares[index * 31 % len(shares)]  # 31 is prime to their number: all sizes come early
        small = random.integers(0, 255, (height // 8, width // 8, 3), dtype=np.uint8)
        cv2.imwrite(str(folder / f"{index:05d}.jpg"), cv2.resize(small, (width, height)))


def _cost(arguments: Sequence[str], place: Path, environment: Mapping[str, str]) -> Cost:
    print("hwprof collect", *arguments, file=sys.stderr, flush=True)
    begin_s = time.monotonic()
    with (place / "said").open("w+") as said:
        process = subprocess.Popen(
            [*HWPROF, "collect", *arguments, "--no-peaks"],
            cwd=place, env={**os.environ, **environment}, stdout=subprocess.DEVNULL, stderr=said,
        )  # fmt: skip
        peaks = Peaks(process.pid)
        while process.poll() is None:
            peaks.look()
            time.sleep(LOOK_S)
        wall_s = time.monotonic() - begin_s
        said.seek(0)
        if process.returncode:
            raise SystemExit(f"hwprof collect {' '.join(arguments)}: {said.read().splitlines()[-1:]}")
    run = RunDirectory.latest(place / "results")
    forwards = (pl.col("kind") == "stage") & (pl.col("path") == "inference")
    seconds = (pl.col("end_ns") - pl.col("begin_ns")).sum() / 1e9
    inference_s = run.scan("spans").filter(forwards).select(seconds).collect().item()
    passes_s = max(one.end_ns or 0 for one in run.completed_passes()) / 1e9 - begin_s
    files = [file for file in run.path.rglob("*") if file.is_file() and not file.is_symlink()]
    return Cost(
        wall_s,
        wall_s - inference_s,
        wall_s - passes_s,
        (wall_s - passes_s) / (AFTER_SHARE * passes_s + AFTER_S),
        peaks.own,
        peaks.other,
        peaks.together,
        (run.path / "trace.pftrace").stat().st_size,
        sum(file.stat().st_size for file in files),
        statistics.median(_report_s(run.path) for _ in range(3)),
    )


def _report_s(run: Path) -> float:
    begin_s = time.monotonic()
    subprocess.run([*HWPROF, "report", str(run)], check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - begin_s


def _costs(options: argparse.Namespace, place: Path) -> dict[str, dict[int, Cost]]:
    found: dict[str, dict[int, Cost]] = {"photographs": {}, "layers": {}, "threads": {}}
    small = ("--model", "yolov8n", "--imgsz", "320")
    for number in options.photographs:
        _photographs(place / f"photographs-{number}", number)
        found["photographs"][number] = _cost([*small, "--source", f"photographs-{number}"], place, {})
    own = ("--model", "scripts.benchmarks.growing_models:deep")
    for number in options.layers:
        environment = {"PYTHONPATH": str(Path.cwd()), LAYERS: str(number)}
        found["layers"][number] = _cost(own, place, environment)
    for number in options.threads:
        found["threads"][number] = _cost([*small, "--oversubscribe", "--threads", str(number)], place, {})
    return {what: costs for what, costs in found.items() if costs}


def _rows(what: str, costs: Mapping[int, Cost]) -> list[list[str]]:
    rows = [[what, f"{number:,}", *cost.cells()] for number, cost in costs.items()]
    if len(costs) > 1:
        slopes = [np.polyfit(np.log(list(costs)), np.log(column), 1)[0] for column in zip(*costs.values(), strict=True)]
        rows.append([what, "exponent", *(f"{slope:.2f}" for slope in slopes)])
    return rows


def _draw(found: Mapping[str, Mapping[int, Cost]], target: Path) -> None:
    """A row of two pictures: seconds, and megabytes, over what grows."""
    figure = Figure(figsize=(11, 4), layout="constrained")
    seconds, megabytes = figure.subplots(1, 2)
    for what, costs in found.items():
        numbers = list(costs)
        seconds.loglog(numbers, [cost.wall_s for cost in costs.values()], "o-", label=f"{what}: run")
        seconds.loglog(numbers, [cost.report_s for cost in costs.values()], "o:", label=f"{what}: report")
        megabytes.loglog(numbers, [cost.together_bytes / 1e6 for cost in costs.values()], "o-", label=what)
    for axes, unit in ((seconds, "s"), (megabytes, "MB, all processes together")):
        axes.set(xlabel="number", ylabel=unit)
        axes.grid(visible=True, which="both", alpha=0.3)
        axes.legend()
    figure.savefig(target)


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",") if number]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photographs", type=_numbers, default=[1, 10, 100, 1000])
    parser.add_argument("--layers", type=_numbers, default=[100, 1000, 3000, 10_000])
    parser.add_argument("--threads", type=_numbers, default=[1, 2, 8])
    parser.add_argument("--output", type=Path, default=Path("results/growth.md"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = _costs(options, Path(folder))
    rows = [row for what, costs in found.items() for row in _rows(what, costs)]
    picture = options.output.with_suffix(".svg")
    note = f"{__doc__}\n![The same, drawn]({picture.name})"
    title = "What a default run costs as the work grows"
    write(Table(title=title, columns=["growing", "number", *COLUMNS], rows=rows, note=note), options.output)
    _draw(found, picture)


if __name__ == "__main__":
    main()
