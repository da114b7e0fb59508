"""Runs ``hwprof collect`` in the guest, once for each number of threads: ``python3 -m tests.pmu.guest.collect 1 2``
leaves runs below $OUT/1 and $OUT/2."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

COMMAND = (sys.executable, "-m", "tests.pmu.guest.command", "collect")
OPTIONS = (
    *("--model", "tests.pmu.guest.model:small", "--input-shape", "1,3,32,32", "--passes", "measure", "--no-peaks"),
    *("--iterations", "8", "--warmup", "8"),
)


def main(threads: Sequence[str]) -> None:
    for number in threads:
        output = Path(os.environ["OUT"]) / number
        command = [*COMMAND, *OPTIONS, "--threads", number, "--output", str(output)]
        # hwprof is not installed there, and its own processes do not look for modules in the working directory
        path = [os.environ["PYTHONPATH"], str(Path.cwd())] if "PYTHONPATH" in os.environ else [str(Path.cwd())]
        subprocess.run(command, check=True, env=os.environ | {"PYTHONPATH": os.pathsep.join(path)})


if __name__ == "__main__":
    main(sys.argv[1:])
