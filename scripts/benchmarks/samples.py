"""How long does it take until samples have their layer, operator, stage and iteration?

    python -m scripts.benchmarks.samples [--samples 10000000] [--spans 100000] [--rounds 5]

Made-up samples of four threads fall evenly on the spans of forwards of a model: half of the spans are leaf layers, half
operators in them, two deep. Attribution starts from tables in memory; the time of an empty machine is what counts.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl

from hwprof.analysis.samples import OWNERS, attribute_samples
from hwprof.run.schema import TABLES, empty
from scripts.benchmarks.tables import Table, write

LEAVES: Final = 100
LAYER_NS: Final = 100_000
GAP_NS: Final = 2_000
MAIN: Final = 1
THREADS: Final = 4


def make_layers() -> pl.DataFrame:
    """The layers of the model: all of them leaves."""
    rows = pl.DataFrame({"path": [f"model.{number}" for number in range(LEAVES)]}).with_columns(leaf=pl.lit(True))
    return pl.concat([empty("layers"), rows], how="diagonal_relaxed")


def make_spans(count: int) -> pl.DataFrame:
    """``count`` spans, and the iterations and stages around them: in each leaf an operator that calls another every
    other time."""
    leaves = count // 2
    begin = np.arange(leaves, dtype=np.int64) * (LAYER_NS + GAP_NS)
    number = np.arange(leaves) % LEAVES
    outer, inner = np.arange(0, leaves), np.arange(0, leaves, 2)
    outer = outer[: count - leaves - len(inner)]
    starts = begin[::LEAVES]
    whole = {"begin_ns": starts, "end_ns": np.append(starts[1:], begin[-1] + LAYER_NS + GAP_NS)}

    def rows(kind: str, path: list[str], begin_ns: np.ndarray, end_ns: np.ndarray, of: np.ndarray) -> pl.DataFrame:
        iteration = pl.Series(of, dtype=pl.Int32)
        columns = {"path": path, "begin_ns": begin_ns, "end_ns": end_ns, "iteration": iteration}
        return pl.DataFrame(columns).with_columns(kind=pl.lit(kind))

    iterations = np.arange(len(starts))
    parts = [
        rows(
            "iteration", [f"iteration {index}" for index in iterations], whole["begin_ns"], whole["end_ns"], iterations
        ),
        rows("stage", ["inference"] * len(starts), whole["begin_ns"] + 100, whole["end_ns"] - 100, iterations),
        rows("layer", [f"model.{index}" for index in number], begin, begin + LAYER_NS, begin // LAYER_NS // LEAVES),
        rows("op", ["aten::conv2d"] * len(outer), begin[outer] + 900, begin[outer] + LAYER_NS - 900, outer // LEAVES),
        rows("op", ["aten::_convolution"] * len(inner), begin[inner] + 1900, begin[inner] + 90_000, inner // LEAVES),
    ]
    spans = pl.concat(parts).with_columns(pid=pl.lit(MAIN), tid=pl.lit(MAIN)).sort("begin_ns")
    return pl.concat([empty("spans"), spans], how="diagonal_relaxed").cast(TABLES["spans"])


def make_samples(count: int, until_ns: int, seed: int = 0) -> pl.DataFrame:
    """``count`` rows of ``samples`` by time."""
    random = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "time_ns": np.sort(random.integers(0, until_ns, count)),
            "tid": (MAIN + random.integers(0, THREADS, count)).astype(np.int32),
            "cpu_ns": np.full(count, 1_000_000),
            "kernel": random.integers(0, 1000, count).astype(np.int32),
        }
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--samples", type=int, default=10_000_000)
    parser.add_argument("--spans", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path, default=Path("results/samples.md"))
    arguments = parser.parse_args()
    layers, spans = make_layers(), make_spans(arguments.spans)
    samples = make_samples(arguments.samples, spans.select(pl.col("end_ns").max()).item())
    times_s = []
    for _ in range(arguments.rounds):
        began = time.perf_counter()
        found = attribute_samples(samples, spans, layers)
        times_s.append(time.perf_counter() - began)
    shares = found.select(pl.col(OWNERS).is_not_null().mean()).row(0, named=True)
    rows = [
        [
            f"{samples.height:,}",
            f"{spans.height:,}",
            f"{statistics.median(times_s):.2f}",
            f"{min(times_s):.2f} to {max(times_s):.2f}",
            ", ".join(f"{name} {share:.1%}" for name, share in shares.items()),
        ]
    ]
    note = f"""
Seconds, the median of {arguments.rounds} rounds and the fastest and slowest; the load was {os.getloadavg()[0]:.1f}.
"""
    columns = ["Samples", "Spans", "s", "spread", "owned"]
    write(Table("Samples to layers", columns, rows, note), arguments.output)


if __name__ == "__main__":
    main()
