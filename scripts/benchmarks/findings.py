"""What hwprof says of models whose causes are known: a confusion matrix.

    python -m scripts.benchmarks.findings [--only NAME ...] [--threads 2] [--tries 3]

Each model (tests/support/models/causes.py; the last two are the pipeline of yolov8n on a picture so small that what is
beside the inference counts, and with boxes so many that NMS does) goes through `hwprof collect`, with the machine's own
peaks. A row is a known cause, a column a rule that found something; then what bounds the model's longest layer. `#` is
what must be found, `·` what may be found beside it, since it is true of the model as well (the last table says why),
`!` what is not true. A model without a cause must have no finding. A run in which others had the calling thread's
processor for more than a tenth of the time is done again, up to so many tries; the least disturbed one counts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import cv2
import numpy as np

from hwprof.analysis.findings import rules
from scripts.benchmarks.tables import Part, Table, write

ROOT: Final = Path(__file__).parents[2]
MODELS: Final = "tests.support.models.causes"
COMPUTE, DRAM, LATENCY, OVERHEAD, WAITING = "compute", "DRAM bandwidth", "latency", "overhead", "waiting"
NOT_KNOWN: Final = "not known"
ANY: Final[frozenset[str]] = frozenset()
DISTURBED: Final = 0.1
ADDS_UP: Final = 0.005
COMMON: Final = ("--passes", "measure,trace", "--iterations", "10", "--no-pyspy", "--peaks")
TIMED: Final = ("--no-instrumented",)
CACHES: Final = ("--counters", "instrumented", "--cache-model")
"""Which lines come from DRAM: nothing else tells latency on a processor without counters."""


class Case(NamedTuple):
    """A model, and what is true of it."""

    name: str
    cause: str
    rules: Collection[str]  # one of them must be found; none: nothing may be
    bounds: Collection[str] = ANY  # one of them must bound the longest layer; none: it is not asked
    also: Collection[str] = ()  # true as well
    why: str = ""  # it is
    options: Sequence[str] = ()
    counted: Sequence[str] = TIMED
    stage: str | None = None  # that must be named


MKL: Final = "MKL's products on a processor that is not Intel's"
NEW: Final = "its output is new memory at each call"
NOISE: Final = "noise.png"
"""64 by 64; it takes no time to write results on it."""

CASES: Final = (
    Case("control", "none: convolutions in channels last", (), (COMPUTE,), ("fresh_memory",), NEW),
    Case("big_gemm", "none: a large product", (), (COMPUTE,), ("default_blas", "fresh_memory"), f"{MKL}; {NEW}"),
    Case("normal_fed", "none: divisions of normal numbers", (), also=("memory_bound",), why="12 MB outgrow a small L3"),
    Case("chained_pooling", "none: a chain of poolings", (), also=("fresh_memory",), why=NEW),
    Case("streaming", "sums of 402 MB", ("memory_bound",), (DRAM,)),
    Case("strided_gather", "a number of each line, in no order", (), (LATENCY, DRAM), counted=CACHES),
    Case("pointer_chase", "loads that wait for loads", (), (LATENCY,), ("serial_layers",), "one thread chases",
         counted=CACHES),
    Case("page_faults", "memory that is new at each call", ("fresh_memory",), (OVERHEAD,)),
    Case("tiny_layers", "operators on eight numbers", ("dispatch",), (OVERHEAD,)),
    Case("python_heavy", "a loop in Python", ("python_code",), (OVERHEAD,)),
    Case("garbage", "Python's collector", ("garbage_collection",), (OVERHEAD,), ("python_code",), "Python makes them"),
    Case("one_threaded", "an operator that is not shared out", ("serial_layers",)),
    Case("imbalanced", "uneven parts", ("imbalance",), also=("team_waits",), why="the calling thread may have less"),
    Case("big_gemm", "8 threads", ("oversubscription",), (), ("default_blas",), MKL, ("--threads", "8")),
    Case("two_pools", "several pools", ("oversubscription",), (), ("default_blas", "blocked"),
         f"{MKL}; the calling thread waits for its pools"),
    Case("scalar_pooling", "max pooling without vectors", ("scalar_pooling",), also=("fresh_memory",), why=NEW),
    Case("repeated_pooling", "poolings of one input", ("repeated_pooling",), (), ("fresh_memory",), NEW),
    Case("layouts", "layouts around convolutions", ("layout_changes",), (), ("fresh_memory", "weight_reorders"),
         f"{NEW}, its weights are not in blocks"),
    Case("reordered_weights", "weights that are reordered", ("weight_reorders",), (), ("layout_changes",), "maps too"),
    Case("denormal_fed", "denormal numbers", ("denormals",)),
    Case("yolov8n", "pictures of 32x32: what is beside the inference", ("long_stage",), (),
         ("dispatch", "python_code", "layout_changes", "weight_reorders", "scalar_pooling", "default_blas"),
         "convolutions in NCHW, on maps of a few places", ("--imgsz", "32", "--threads", "1")),
    Case("yolov8n", "a small picture, of which every candidate is kept", ("long_stage",), (),
         ("dispatch", "layout_changes", "weight_reorders"), "convolutions in NCHW",
         ("--source", NOISE, "--imgsz", "320", "--conf", "0.0"), stage="nms"),
)  # fmt: skip


class Said(NamedTuple):
    """Of a run: the rules that found something, and the longest layer's bound."""

    rules: Sequence[str]
    bound: str | None
    why: str  # it is
    stages: Sequence[str]  # that findings are about
    evidence: str
    preempted: float  # of the calling thread's time
    budgets: int  # of the inference, of layers, of blocks
    adding_up: int  # of these: to 100% of the elapsed time, and of all threads', by at most half a point


def _said(case: Case, threads: int, tries: int) -> Said:
    """By the least disturbed run."""
    best: Said | None = None
    for _ in range(tries):
        said = _of_report(_collected(case, threads))
        if best is None or said.preempted < best.preempted:
            best = said
        if best.preempted <= DISTURBED or "oversubscription" in case.rules:  # its own threads preempt it
            break
    assert best is not None
    return best


def _collected(case: Case, threads: int) -> dict[str, Any]:
    given = case.options if "--threads" in case.options else (*case.options, "--threads", str(threads))
    model = case.name if case.name.startswith("yolo") else f"{MODELS}:{case.name}"
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, "-P", "-m", "hwprof", "collect", "--model", model, *COMMON, *case.counted, *given]
        cv2.imwrite(f"{place}/{NOISE}", np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8))
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [*command, "--format", "json"], cwd=place, env=environment, capture_output=True, text=True, check=False
        )
    if done.returncode:
        raise SystemExit(f"{case.name}: {done.stderr.strip().splitlines()[-1:]}")
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def _of_report(report: dict[str, Any]) -> Said:
    found = report["findings"]["rows"] if report["findings"] is not None else []
    rows = report["roofline"]["rows"] if report["roofline"] is not None else []
    times = {row["path"]: row["time"]["median_ns"] or 0 for row in report["layers"]["rows"] if row["time"]}
    longest = max(rows, key=lambda row: times.get(row["path"], 0), default=None)
    known = report["time_budget"]
    budget = known["whole"]["parts"] if known is not None else []
    every = [known["whole"], *known["layers"], *known["blocks"]] if known is not None else []
    return Said(
        [one["rule"] for one in found],
        longest["bound"] if longest is not None else None,
        longest["evidence"] if longest is not None else "no roofline",
        [one["stage"] for one in found if one["stage"] is not None],
        "; ".join(f"{one['rule']}: {one['evidence']}" for one in found),
        next((part["share"] for part in budget if part["part"] == "preempted"), 0.0),
        len(every),
        sum(all(_adds_up(one, share) for share in ("share", "threads_share")) for one in every),
    )


def _adds_up(budget: dict[str, Any], share: str) -> bool:
    whole: float = sum(part[share] for part in budget["parts"])
    return abs(whole - 1) <= ADDS_UP


def _wrong(case: Case, said: Said) -> Iterator[str]:
    """What is not so, in words."""
    if case.rules and not set(case.rules) & set(said.rules):
        yield f"{' or '.join(case.rules)} not found"
    if case.stage is not None and case.stage not in said.stages:
        yield f"{case.stage} not named"
    yield from (f"{one} found" for one in said.rules if one not in case.rules and one not in case.also)
    if case.bounds and said.bound not in case.bounds:
        yield f"bound {said.bound or NOT_KNOWN}, not {' or '.join(case.bounds)}"


def _mark(case: Case, rule: str, said: Said) -> str:
    if rule not in said.rules:
        return "missing" if rule in case.rules and not set(case.rules) & set(said.rules) else ""
    return "#" if rule in case.rules else "·" if rule in case.also else "!"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=sorted({case.name for case in CASES}))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tries", type=int, default=3)
    parser.add_argument("--output", type=Path, default=Path("results/findings.md"))
    options = parser.parse_args()
    found: list[tuple[Case, Said, list[str]]] = []
    for case in CASES:
        if options.only and case.name not in options.only:
            continue
        begin = time.monotonic()
        said = _said(case, options.threads, options.tries)
        wrong = list(_wrong(case, said))
        print(f"{case.name:18} {time.monotonic() - begin:4.0f} s  {'; '.join(wrong) or 'right'}", file=sys.stderr)
        bound = f"{said.bound} ({said.why})"
        print(f"    {said.preempted:.0%} preempted; {bound}; {said.evidence}", file=sys.stderr, flush=True)
        found.append((case, said, wrong))
    write(_table(found), options.output)


def _table(found: Sequence[tuple[Case, Said, list[str]]]) -> Table:
    seen = {rule for _, said, _ in found for rule in said.rules}
    names = [rule for rule in rules.names() if rule in seen]
    rows = [
        [case.cause, case.name, *(_mark(case, rule, said) for rule in names), said.bound or NOT_KNOWN,
         "; ".join(wrong) or "right"]
        for case, said, wrong in found
    ]  # fmt: skip
    asked = [(case, said) for case, said, _ in found if case.bounds]
    bounds = sum(said.bound in case.bounds for case, said in asked)
    caused = [(case, said) for case, said, _ in found if case.rules]
    sums = [
        ["models", str(len(found))],
        ["causes that were found, %", _percent(sum(bool(set(c.rules) & set(s.rules)) for c, s in caused), len(caused))],
        ["findings without their cause", str(sum(_mark(c, r, s) == "!" for c, s, _ in found for r in s.rules))],
        ["bounds that are right, %", _percent(bounds, len(asked))],
        ["time budgets", str(sum(said.budgets for _, said, _ in found))],
        ["of these add up to 100% ± 0.5, %",
         _percent(sum(said.adding_up for _, said, _ in found), sum(said.budgets for _, said, _ in found))],
    ]  # fmt: skip
    notes = [[case.name, said.evidence or "–", case.why or "–", f"{said.preempted:.0%}"] for case, said, _ in found]
    return Table(
        title="Findings of models whose causes are known",
        columns=["known cause", "model", *names, "bound", "verdict"],
        rows=rows,
        note=__doc__ or "",
        further=(
            Part("Sums", ["what", "found"], sums),
            Part("Evidence", ["model", "what was said", "why what is beside the cause is true", "preempted"], notes),
        ),
    )


def _percent(part: int, whole: int) -> str:
    """Not rounded up: one of a thousand that is wrong is not all."""
    return f"{100 * part // whole}" if whole else "–"


if __name__ == "__main__":
    main()
