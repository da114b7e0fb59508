"""What reading counters at both ends of a layer costs: hwprof beside PAPI and torch.profiler's performance_events.

    python -m scripts.benchmarks.edges [--rounds 7] [--layers 300]

Every round starts one process for each line of the table, in a random order. There a layer that does nothing is called
again and again, bare and with its counters read before and after, on the main thread and on 1 or 16 others: task
clock, page faults, context switches and migrations of each. A layer's cost is what the call takes outside of the
layer's own work, less what the bare call takes: the median of the calls, then of the rounds.

hwprof is its own recorder with its own collector, with all that it records of a layer. "Adjacent" layers follow each
other within 20 µs: the workers, read at the end of the one, are not read again at the begin of the next; "separate"
ones are. PAPI is read in the same way, thread by thread, before and after: by its Python binding, and by bare calls of
PAPI_read into one array that is never looked at. The threads sleep all the time; or each works and sleeps again within
every layer; or one spins on another processor, which reading it interrupts.

performance_events are of another kind: the profiler reads at both ends of every operator, and the main thread only,
whatever the others do; here one event (page faults), because without a PMU there is no other. Their cost is a forward
with them less the forward without a profiler, by layer.
"""

from __future__ import annotations

import argparse
import ctypes
import ctypes.util
import importlib
import importlib.util
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Final

from scripts.benchmarks.edges_contestants import (
    PROCESSORS,
    SLEEPING,
    SPINNING,
    TORCH,
    WORKING,
    Configuration,
    measure_threads,
    measure_torch,
)
from scripts.benchmarks.tables import Table, write

COMMAND: Final = (sys.executable, "-m", "scripts.benchmarks.edges")

CASES: Final = [(1, SLEEPING), (16, SLEEPING), (1, WORKING), (16, WORKING), (1, SPINNING)]
WITH_THREADS: Final = [
    "hwprof, adjacent layers",
    "hwprof, separate layers",
    "PAPI, Python binding",
    "PAPI, bare PAPI_read",
]
CONFIGURATIONS: Final = [Configuration(name, *case) for case in CASES for name in WITH_THREADS] + [
    Configuration(name) for name in TORCH
]


def measure_in_a_process(configuration: Configuration, layers: int) -> dict[str, float]:
    """One measurement in a fresh process."""
    library = ctypes.util.find_library("papi")
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}  # no threads but the benchmark's
    if configuration.contestant.startswith("PAPI") and library:
        environment["LD_PRELOAD"] = library
    with tempfile.TemporaryFile("w+") as errors:
        done = subprocess.run(
            [*COMMAND, "--one", json.dumps(asdict(configuration)), "--layers", str(layers)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            check=False,
        )
        if done.returncode:
            errors.seek(0)
            said = errors.read().strip().splitlines() or ["it said nothing"]
            raise SystemExit(f"{configuration}: {said[-1]}")
    measured: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return measured


def require_papi() -> str:
    """Which PAPI will be read; ends the script where there is none."""
    if importlib.util.find_spec("pypapi") is None:
        raise SystemExit("PAPI's Python binding is missing: pip install python-papi")
    library = ctypes.util.find_library("papi")
    if library:
        return f"The system's {library} serves the Python binding as well (in place of the older one that it brings)."
    return "PAPI is the one that the Python binding brings."


def table(rounds: dict[Configuration, list[dict[str, float]]], papi: str) -> Table:
    """Medians over rounds, each also as a multiple of hwprof's adjacent layers in the same case."""
    rows = [_row(configuration, rounds) for configuration in rounds]
    columns = ["counters", "threads read", "the others", "µs a layer", "µs an edge", "least … most", "times hwprof"]
    number = len(next(iter(rounds.values())))
    cases = ", ".join(f"main + {threads} {state}" for threads, state in CASES)
    note = f"""{__doc__}
{papi} {number} rounds. "Times hwprof": against its adjacent layers in the same case; for performance_events in each
case ({cases}).
"""
    return Table("Cost of reading counters at a layer's edges", columns, rows, note)


def _row(configuration: Configuration, rounds: dict[Configuration, list[dict[str, float]]]) -> list[str]:
    measured = rounds[configuration]
    layer_us = [one["layer_ns"] / 1e3 for one in measured]
    median = _median(measured)
    case = (configuration.threads, configuration.state)
    ratios = [
        median / _median(rounds[Configuration(WITH_THREADS[0], *ours)]) for ours in CASES if case in (ours, (0, ""))
    ]
    operators = measured[0].get("operators")
    return [
        configuration.contestant + (f" ({median / 1e3 / operators:.1f} an operator)" if operators else ""),
        f"main + {configuration.threads}" if configuration.threads else "main only",
        configuration.state or "any",
        f"{median / 1e3:.1f}",
        f"{median / 2e3:.1f}",
        f"{min(layer_us):.1f} … {max(layer_us):.1f}",
        "" if configuration.contestant == WITH_THREADS[0] else ", ".join(f"{ratio:.1f}" for ratio in ratios),
    ]


def _median(measured: list[dict[str, float]]) -> float:
    return statistics.median(one["layer_ns"] for one in measured)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--layers", type=int, default=300)
    parser.add_argument("--output", type=Path, default=Path("results/edges.md"))
    parser.add_argument("--one", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        configuration = Configuration(**options.one)
        measure = measure_threads if configuration.threads else measure_torch
        print(json.dumps(measure(configuration, options.layers)), flush=True)
        os._exit(0)  # not waiting for threads that spin
    papi = require_papi()
    if len(PROCESSORS) < 2:
        raise SystemExit("one thread is to spin beside the main one: this needs two processors")
    rounds: dict[Configuration, list[dict[str, float]]] = {configuration: [] for configuration in CONFIGURATIONS}
    order = random.Random(0)
    for _ in range(options.rounds):
        for configuration in order.sample(CONFIGURATIONS, len(CONFIGURATIONS)):
            rounds[configuration].append(measure_in_a_process(configuration, options.layers))
    write(table(rounds, papi), options.output)
    raw = [asdict(configuration) | {"rounds": measured} for configuration, measured in rounds.items()]
    options.output.with_suffix(".json").write_text(json.dumps(raw, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
