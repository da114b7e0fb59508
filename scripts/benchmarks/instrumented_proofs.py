"""What two runs, two engines, or a run and arithmetic must agree in: pure functions of runs that are kept.

Shares are of the second: 0.01 is a deviation of one percent.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import polars as pl

from collectors.callgrind.collector import ENVIRONMENT as SSE41
from hwprof.analysis.convolutions import convolution
from hwprof.run.directory import RunDirectory
from hwprof.run.repeated_spans import of_all_spans

INSTRUMENTED: Final = "instrumented"
CALLGRIND: Final = "callgrind"
COLLECT: Final = (sys.executable, "-m", "hwprof", "collect", "--passes", "measure", "--iterations", "1")

MODEL_CODE: Final = ("jit", "torch")
"""Domains whose code depends on the model alone: Python and malloc take different ways in every process."""

AS_CALLGRIND: Final[Mapping[str, str]] = {
    **{name: value for name, value in SSE41.items() if name != "ONEDNN_JIT_PROFILE"},
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW",  # valgrind shows libc none of them
}
"""What holds a run outside of valgrind to the instructions that callgrind's pass executes."""


def collect(output: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> RunDirectory:
    """A run of the command. Raises ``RuntimeError`` with its last words where it fails."""
    command = [*COLLECT, "--output", str(output), *arguments]
    done = subprocess.run(
        command, env={**os.environ, **(environment or {})}, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()[-2000:]}")
    return RunDirectory.latest(output)


def instructions(run: RunDirectory, which: str, domains: Sequence[str] | None = None) -> dict[str, int]:
    """By leaf layer, and ``inference`` for the sum, in the last iteration of the pass of that name.

    ``domains``: whose code counts; by default every one's that the engine counts, which the OpenMP runtime's is not.
    """
    event = f"{which}.instructions"
    if domains is None:
        counts = run.scan("counts").filter((pl.col("pass") == which) & (pl.col("event") == event))
    else:
        named = kernel_counts(run).filter((pl.col("pass") == which) & (pl.col("event") == event))
        kernels = run.scan("kernels").filter((pl.col("pass") == which) & pl.col("domain").is_in(domains))
        counts = named.join(kernels.select("kernel"), on="kernel", how="semi")
    return _by_layer(run, which, counts)


def kernel_counts(run: RunDirectory) -> pl.LazyFrame:
    """Of every span."""
    return of_all_spans(run.scan("kernel_counts"), run.scan("repeated_spans"))


def in_mkl(run: RunDirectory) -> set[str]:
    """The leaf layers with products by MKL. How it splits a product over threads changes from run to run on some
    processors, and with it how much it rounds up to whole tiles: its counts follow from no shape."""
    kernels = run.scan("kernels").filter((pl.col("pass") == INSTRUMENTED) & pl.col("name").str.starts_with("mkl_"))
    counts = kernel_counts(run).filter((pl.col("pass") == INSTRUMENTED) & pl.col("event").str.contains("flops"))
    used = counts.join(kernels.select("kernel"), on="kernel", how="semi").filter(pl.col("value") > 0)
    return _by_layer(run, INSTRUMENTED, used).keys() - {"inference"}


def _by_layer(run: RunDirectory, which: str, counts: pl.LazyFrame) -> dict[str, int]:
    leaves = run.scan("layers").filter("leaf").select("path")
    spans = run.scan("spans").filter(pl.col("pass") == which).select("span", "path", "kind")
    wanted = pl.concat(
        [
            spans.filter(pl.col("kind") == "layer").join(leaves, on="path", how="semi"),
            spans.filter((pl.col("kind") == "stage") & (pl.col("path") == "inference")),
        ]
    )
    last = counts.filter(pl.col("iteration") == pl.col("iteration").max()).join(wanted, on="span")
    sums = last.group_by("path").agg(pl.col("value").sum()).collect()
    return dict(zip(sums["path"].to_list(), sums["value"].to_list(), strict=True))


@dataclass(frozen=True)
class Deviation:
    """Deviation of one count of each layer from another, as a share of the other; of the inference too."""

    whole: float
    layers: Mapping[str, float]

    def within(self, bound: float) -> int:
        """How many layers deviate by at most so much."""
        return sum(abs(share) <= bound for share in self.layers.values())

    def quantile(self, part: float) -> float:
        """At most so much does this part of the layers deviate."""
        found = sorted(abs(share) for share in self.layers.values())
        return found[min(int(part * len(found)), len(found) - 1)]


def deviation(one: Mapping[str, int], other: Mapping[str, int]) -> Deviation:
    """Of layers that both have; ``inference`` is the sum."""
    shares = {path: one[path] / value - 1 for path, value in other.items() if path in one and value}
    return Deviation(shares.pop("inference"), shares)


@dataclass(frozen=True)
class Counted:
    """The FLOPs of a convolution over those that its shapes ask for: all of them, and without the products of padding.
    Which of the two oneDNN executes depends on the algorithm that it chooses; ``rounding``: how many times more it is
    with the output channels rounded up to whole vectors."""

    all: float
    inside: float
    rounding: float

    def leaves_padding_out(self, bound: float) -> bool:
        """Whether it is the work without padding, that close."""
        return abs(self.inside - 1) <= bound

    def explained(self, bound: float) -> bool:
        """Whether it is the work of either algorithm, on channels or on whole vectors of them, that close."""
        found = (self.inside, self.all, self.inside / self.rounding, self.all / self.rounding)
        return any(abs(ratio - 1) <= bound for ratio in found)


def convolutions(run: RunDirectory) -> dict[str, Counted]:
    """By path; those whose shapes do not tell their padding are left out."""
    kind = run.scan("layers").filter(pl.col("type") == "Conv2d").select("path")
    calls = run.scan("layer_calls").join(kind, on="path", how="semi").collect()
    event = f"{INSTRUMENTED}.flops-fp32"
    counts = run.scan("counts").filter((pl.col("pass") == INSTRUMENTED) & (pl.col("event") == event))
    counted = _by_layer(run, INSTRUMENTED, counts)
    found = {}
    for (path,), rows in calls.group_by("path", maintain_order=True):
        shapes = [convolution(*row) for row in rows.select("input_shapes", "output_shapes", "macs").iter_rows()]
        known = [made for made in shapes if made is not None]
        if len(known) == len(shapes) and str(path) in counted:
            flops = [2 * macs for macs in rows["macs"]]
            inside = sum(each * made.inside for each, made in zip(flops, known, strict=True))
            value = counted[str(path)]
            found[str(path)] = Counted(value / sum(flops), value / inside, known[0].rounding)
    return found
