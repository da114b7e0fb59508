"""Are the medians of undisturbed iterations those of a quiet machine? A model is measured alone and beside loops.

    python -m scripts.undisturbed_medians --model yolov7 --iterations 60 --busy 2 [--work 1 --rest 1]

The loops run at nice 0; with ``--rest`` they sleep so many seconds after each ``--work``, as a neighbour does that
comes and goes: beside as many loops as processors that never rest, no iteration is undisturbed, and the report says so.
Needs a quiet machine; other arguments go to hwprof collect. Exit status 1 if the median of the inference, or of a layer
with a tenth of it, differs by more than ``--bound``, or if too few iterations were undisturbed. Writes
results/undisturbed_medians.md.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from scripts.benchmarks import tables
from scripts.neighbours import loops

TARGET: Final = Path(__file__).resolve().parents[1] / "results" / "undisturbed_medians.md"

WHOLE: Final = "the inference"

LARGE: Final = 0.1
"""Of the inference: the layers whose medians are compared."""


def measure(model: str, iterations: int, place: str, *further: str) -> dict[str, Any]:
    """The report of a measure pass."""
    command = [sys.executable, "-m", "hwprof", "collect", "--model", model, "--iterations", str(iterations)]
    command += ["--passes", "measure", "--no-instrumented", "--format", "json", "--output", place, *further]
    found: dict[str, Any] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return found


def medians(report: dict[str, Any]) -> dict[str, float]:
    """In milliseconds, of the inference and of its large layers."""
    layers = report["layers"]
    rows = [row for row in layers["rows"] if row["time"] and row["share"] >= LARGE]
    return {row["path"]: row["time"]["median_ns"] / 1e6 for row in [layers["whole"], *rows]}


def _iterations(report: dict[str, Any]) -> str:
    noise = report["noise"]
    left_out = f"{noise['timed_left_out']} left out, {noise['disturbed']} disturbed in all"
    return f"{noise['timed']} timed iterations, {left_out}"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="yolov7")
    parser.add_argument("--iterations", type=int, default=60)
    parser.add_argument("--busy", type=int, default=2, help="how many loops (2)")
    parser.add_argument("--work", type=float, default=1.0, help="seconds that a loop works (1)")
    parser.add_argument("--rest", type=float, default=1.0, help="seconds that it rests then (1)")
    parser.add_argument("--bound", type=float, default=0.05, help="how far medians may differ (0.05)")
    parser.add_argument("--wait-quiet", type=float, default=300.0, help="seconds to wait for a quiet machine (300)")
    options, further = parser.parse_known_args(arguments)
    with tempfile.TemporaryDirectory() as place:
        alone = measure(options.model, options.iterations, place, "--wait-quiet", str(options.wait_quiet), *further)
        with loops(options.busy, options.work, options.rest):
            beside = measure(options.model, options.iterations, place, *further)
    quiet, busy = medians(alone), medians(beside)
    off = {name: busy[name] / ms - 1 for name, ms in quiet.items() if name in busy}
    resting = f" that rest {options.rest:g} s after every {options.work:g} s of work" if options.rest else ""
    table = tables.Table(
        f"Medians of {options.model}'s undisturbed iterations, alone and beside {options.busy} busy processes{resting}",
        ["layer", "alone ms", "beside ms", "off"],
        [
            [WHOLE if name == "whole" else name, f"{ms:.3g}", f"{busy[name]:.3g}", f"{off[name]:+.1%}"]
            for name, ms in quiet.items()
            if name in busy
        ],
        f"Alone: {_iterations(alone)}. Beside them: {_iterations(beside)}.",
    )
    tables.write(table, TARGET)
    none_left_out = beside["noise"]["disturbed"] and not beside["noise"]["timed_left_out"]
    if none_left_out:
        print("too few iterations beside them were undisturbed: --rest, or more --iterations")
    return int(bool(none_left_out) or max(map(abs, off.values()), default=1.0) > options.bound)


if __name__ == "__main__":
    sys.exit(main())
