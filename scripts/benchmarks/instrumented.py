"""Counting without a PMU: what instrumentation costs, what else there is, and what its counts were compared with.

    python -m scripts.benchmarks.instrumented [--models yolov8n yolov7] [--rounds 8] [--runs 3] [--fresh 50]

Forwards: in one process each model's forward is done in turn with its code instrumented and not; an instrumented round
begins with a forward in which the code is copied ("first"). Ratios are of forwards of the same round. One thread's time
is its CPU time; with two it is the wall clock's, and rounds in which other processes took more than a twentieth of a
processor are done again. Only the code is instrumented here; what the pass adds to a run of the command is among the
proofs.

callgrind: the pass of its own that `--counters callgrind` adds: one forward a photograph of yolov8n at 320, restricted
to SSE4.1 and to one thread, layer by layer. perf: what `perf stat -e instructions` says on this machine.

Proofs: "identical" outputs are so bit by bit. Two runs are two processes; their layers are compared in the model's own
code (JIT kernels and libtorch). Convolutions are compared with twice their shapes' multiply-adds, without those with
the zeros of the padding, which oneDNN leaves out. For callgrind both engines ran the same forward in SSE4.1 on one
thread; it counts every repetition of a rep instruction, which a processor counts once.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import polars as pl

from collectors.callgrind.collector import COMPANION
from hwprof.run.directory import RunDirectory
from scripts.benchmarks.instrumented_forwards import Forwards, measure_in_a_process
from scripts.benchmarks.instrumented_proofs import (
    AS_CALLGRIND,
    CALLGRIND,
    COLLECT,
    INSTRUMENTED,
    MODEL_CODE,
    collect,
    convolutions,
    deviation,
    instructions,
)
from scripts.benchmarks.tables import Part, Table, write

THREADS: Final = "2"
SMALL: Final = ("--model", "yolov8n", "--imgsz", "320", "--warmup", "1")
FRESH: Final = ("yolov8n", 64, 2, 1)
"""Model, size, threads and rounds of every fresh process."""

HALF: Final = 0.005
PERCENT: Final = "{:+.3%}"
NAMES: Final = ("per layer", "threads", "instruction set", "names JIT kernels", "privilege")


def forwards(model: str, threads: int, rounds: int) -> tuple[list[list[str]], list[list[str]]]:
    """The rows of the costs, and of the outputs' and the self-test's proof."""
    found = measure_in_a_process(model, 640, threads, rounds)
    case = f"{model}, 640, {threads} thread{'s' * (threads > 1)}"
    identical = f"{found.identical} of {found.tried}"
    return _cost_rows(case, found), [
        [case, "instrumented forwards with identical outputs", "all", identical],
        [case, "self-test: loops exact, registers kept", "all", found.self_test],
    ]


def _cost_rows(case: str, found: Forwards) -> list[list[str]]:
    kept = len(found.plain_s)
    if kept < 2:
        return [
            [
                case,
                "plain and instrumented forward",
                "not measured: others were at work all the time",
                "",
                "",
                "0",
            ]
        ]
    ratios = [instrumented / plain for instrumented, plain in zip(found.instrumented_s, found.plain_s, strict=True)]
    first = [first / plain for first, plain in zip(found.first_s, found.plain_s, strict=True)]
    rows = [("plain forward", found.plain_s, None), ("instrumented forward", found.instrumented_s, ratios)]
    return [
        [case, name, _ms(times), *_spread(ratio), str(kept)]
        for name, times, ratio in [*rows, ("instrumented forward, the first", found.first_s, first)]
    ]


def _ms(seconds: Sequence[float]) -> str:
    return f"{1e3 * statistics.median(seconds):.1f}"


def _spread(ratios: Sequence[float] | None) -> tuple[str, str]:
    if ratios is None:
        return "1", ""
    low, _, high = statistics.quantiles(ratios, n=4)
    return f"{statistics.median(ratios):.2f}", f"{low:.2f} … {high:.2f}"


def fresh_processes(number: int) -> list[str]:
    """A row: how many of so many processes instrumented their forwards and came to the same outputs."""
    good, why = 0, ""
    for _ in range(number):
        try:
            found = measure_in_a_process(*FRESH)
        except RuntimeError as error:
            why = f"; {str(error).splitlines()[-1][:100]}"
        else:
            good += found.identical == found.tried > 0
    return ["yolov8n, 64, 2 threads", "fresh processes that live, outputs identical", "all", f"{good} of {number}{why}"]


def agreement(place: Path, model: str) -> list[list[str]]:
    """Two runs with each other, and with the convolutions' shapes."""
    arguments = ("--model", model, "--warmup", "1", "--threads", THREADS, "--counters", INSTRUMENTED)
    one, other = (collect(place / f"{model}-{number}", *arguments) for number in range(2))
    layers = deviation(*(instructions(run, INSTRUMENTED, MODEL_CODE) for run in (one, other)))
    within = f"{layers.within(0.001)} of {len(layers.layers)}; furthest {layers.quantile(1):.4%}"
    found = convolutions(one)
    inside = sum(counted.leaves_padding_out(0.02) for counted in found.values())
    explained = sum(counted.explained(0.02) for counted in found.values())
    said = f"{inside} of {len(found)}; {explained} with those on padding's zeros or whole vectors of channels"
    case = f"{model}, 640, {THREADS} threads"
    return [
        [case, "layers whose instructions are within 0.1% in two runs", "all", within],
        [case, "convolutions within 2% of their shapes' FLOPs", "95%", said],
    ]


def against_callgrind(place: Path) -> tuple[list[list[str]], list[str]]:
    """The proof's rows, and the cost's row."""
    one_thread = (*SMALL, "--threads", "1", "--counters")
    instrumented = collect(place / "sse41", *one_thread, INSTRUMENTED, environment=AS_CALLGRIND)
    emulated = collect(place / "callgrind", *one_thread, CALLGRIND)
    mine, its = instructions(instrumented, INSTRUMENTED), instructions(emulated, CALLGRIND)
    whole = deviation(mine, its)
    kernels = deviation(instructions(instrumented, INSTRUMENTED, ["jit"]), instructions(emulated, CALLGRIND, ["jit"]))
    case = "yolov8n, 320, 1 thread"
    counts = f"{mine['inference'] / 1e6:.1f} M against {its['inference'] / 1e6:.1f} M: {PERCENT.format(whole.whole)}"
    quantiles = ", ".join(f"{name} {whole.quantile(part):.2%}" for name, part in (("half", 0.5), ("nine in ten", 0.9)))
    within = f"{whole.within(HALF)} of {len(whole.layers)}; {quantiles}, all {whole.quantile(1):.2%} or closer"
    rows = [
        [case, "instructions of the forward against callgrind's", "0.5%", counts],
        [case, "layers within 0.5% of callgrind's instructions", "", within],
        [case, "layers' JIT kernels against callgrind's", "", f"furthest {kernels.quantile(1):.5%}"],
    ]
    return rows, ["yolov8n, 320, 1 thread", "callgrind, a forward", *_callgrind_cost(emulated)]


def _callgrind_cost(run: RunDirectory) -> list[str]:
    inference = run.scan("spans").filter((pl.col("path") == "inference") & ~pl.col("warmup"))
    took = pl.col("end_ns") - pl.col("begin_ns")
    means = inference.group_by("pass").agg(took.sum() / pl.col("iteration").n_unique()).collect()
    by_pass = dict(means.iter_rows())
    emulated, companion = by_pass[CALLGRIND], by_pass[COMPANION]
    return [f"{emulated / 2e6:.0f}", f"{emulated / companion:.0f}", "against SSE4.1 uninstrumented", "1"]


def added_wall(model: str, rounds: int) -> list[str]:
    """A row: what the pass adds to a run of the command, interleaved with runs without it."""
    command = [*COLLECT, "--model", model, "--warmup", "1"]
    taken: dict[str, list[float]] = {"auto": [], "without": []}
    with tempfile.TemporaryDirectory() as place:
        for _ in range(rounds):
            for name, options in (("auto", ["--counters", "auto,instrumented"]), ("without", ["--no-instrumented"])):
                begin = time.monotonic()
                subprocess.run([*command, *options, "--output", place], check=True, capture_output=True)
                taken[name].append(time.monotonic() - begin)
    added = [one - other for one, other in zip(taken["auto"], taken["without"], strict=True)]
    said = f"{statistics.median(added):.1f} s ({min(added):.1f} … {max(added):.1f}, {rounds} pairs of runs)"
    return [f"{model}, 640", "what the pass adds to hwprof collect", "15 s" if model == "yolov7" else "", said]


def perf_says() -> str:
    """The word of ``perf stat`` on the machine's instructions."""
    try:
        done = subprocess.run(
            ["perf", "stat", "-x,", "-e", "instructions", "true"], capture_output=True, text=True, check=False
        )
    except OSError:
        return "perf is not installed"
    return done.stderr.strip().split(",")[0].strip("<>") or "nothing"


def capabilities() -> list[list[str]]:
    """hwprof, callgrind, perf: by hand, from their documentation and from what runs on this machine showed."""
    return [
        ["hwprof, instrumented", "yes", "all of the OpenMP pool", "the machine's own, AVX-512 too", "yes", "none"],
        ["callgrind", "through hwprof", "one after another", "no AVX-512; SSE4.1 here", "through hwprof", "none"],
        ["perf stat", "no", "all", "the machine's own", "no", f"a PMU; here instructions are {perf_says()}"],
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=["yolov8n", "yolov7"])
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--fresh", type=int, default=50)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--output", type=Path, default=Path("results/instrumented.md"))
    options = parser.parse_args()
    costs: list[list[str]] = []
    proofs: list[list[str]] = []

    def keep() -> None:
        """What there is by now: the rest takes many minutes."""
        table = Table(
            title="Counting by instrumentation",
            columns=["case", "forward", "median ms", "times plain", "quartiles", "rounds"],
            rows=costs,
            note=__doc__ or "",
            further=(
                Part("What each reports", ["engine", *NAMES], capabilities()),
                Part("Proofs", ["case", "what", "bar", "found"], proofs),
            ),
        )
        write(table, options.output)

    for model in options.models:
        for threads in (1, 2):
            for rows, more in zip((costs, proofs), forwards(model, threads, options.rounds), strict=True):
                rows += more
            keep()
    with tempfile.TemporaryDirectory() as folder:
        for model in options.models:
            proofs += agreement(Path(folder), model)
            keep()
        compared, cost = against_callgrind(Path(folder))
        costs.append(cost)
        proofs += compared
        keep()
    for model in options.models:
        proofs.append(added_wall(model, options.runs))
        keep()
    proofs.append(fresh_processes(options.fresh))
    keep()


if __name__ == "__main__":
    main()
