"""Is CPI~ on a busy machine that of a quiet one? A model is collected alone and beside loops.

    python -m scripts.cpi_under_load --model yolov7 --busy 2

CPI~ is made of processor time at work, from which preemption and waiting are apart, so neighbours must not change it,
but for what they do to shared caches. Compared are all layers that have one in both runs: whether the intervals of both
(95%) overlap, and by how much the figures differ. Needs a quiet machine without a PMU; other arguments go to hwprof
collect. Exit status 1 if fewer than ``--bound`` of the layers agree. Writes results/cpi_under_load.md.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from scripts.benchmarks import tables
from scripts.neighbours import loops

TARGET: Final = Path(__file__).resolve().parents[1] / "results" / "cpi_under_load.md"

MOST: Final = 12
"""Layers in the table: those with the most samples."""


def collected(model: str, place: str, *further: str) -> dict[str, Any]:
    """The report of a run."""
    command = [sys.executable, "-m", "hwprof", "collect", "--model", model, "--format", "json", "--output", place]
    found: dict[str, Any] = json.loads(subprocess.run([*command, *further], check=True, stdout=subprocess.PIPE).stdout)
    return found


def cpi_of_layers(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The layers with a CPI~ and its interval, by path."""
    kernels = report["kernels"]
    rows = kernels["layers"] if kernels is not None else []
    return {row["path"]: row for row in rows if row["cpi"] is not None and row["cpi_low"] is not None}


def overlap(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether a value may be that of both."""
    return bool(one["cpi_low"] <= other["cpi_high"] and other["cpi_low"] <= one["cpi_high"])


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="yolov7")
    parser.add_argument("--busy", type=int, default=2, help="how many loops (2)")
    parser.add_argument("--bound", type=float, default=0.9, help="the share of layers that must agree (0.9)")
    parser.add_argument("--wait-quiet", type=float, default=300.0, help="seconds to wait for a quiet machine (300)")
    options, further = parser.parse_known_args(arguments)
    with tempfile.TemporaryDirectory() as place:
        alone = collected(options.model, place, "--wait-quiet", str(options.wait_quiet), *further)
        with loops(options.busy):
            beside = collected(options.model, place, *further)
    quiet, busy = cpi_of_layers(alone), cpi_of_layers(beside)
    both = sorted((path for path in quiet if path in busy), key=lambda path: -quiet[path]["samples"])
    if not both:
        print("no layer has CPI~ in both runs")
        return 1
    agreeing = sum(overlap(quiet[path], busy[path]) for path in both)
    ratios = [busy[path]["cpi"] / quiet[path]["cpi"] for path in both]
    table = tables.Table(
        f"CPI~ of {options.model}'s layers, alone and beside {options.busy} busy processes",
        ["layer", "samples", "alone", "interval", "beside", "interval", "ratio"],
        [_row(path, quiet[path], busy[path]) for path in both[:MOST]],
        f"Of {len(both)} layers that have CPI~ in both runs {agreeing} have intervals (95%) that overlap; the median"
        f" ratio is {statistics.median(ratios):.2f}. Shown are those with the most samples.",
    )
    tables.write(table, TARGET)
    return int(agreeing < options.bound * len(both))


def _row(path: str, quiet: dict[str, Any], busy: dict[str, Any]) -> list[str]:
    return [
        path,
        f"{quiet['samples']:,}, {busy['samples']:,}",
        f"{quiet['cpi']:.3f}",
        f"{quiet['cpi_low']:.3f} to {quiet['cpi_high']:.3f}",
        f"{busy['cpi']:.3f}",
        f"{busy['cpi_low']:.3f} to {busy['cpi_high']:.3f}",
        f"{busy['cpi'] / quiet['cpi']:.2f}",
    ]


if __name__ == "__main__":
    sys.exit(main())
