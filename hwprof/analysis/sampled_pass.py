"""The pass that a report takes its samples from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from hwprof.analysis import sampled_kernels, samples
from hwprof.analysis.iterations import select
from hwprof.run.directory import RunDirectory
from hwprof.run.manifest import PassRecord


@dataclass(frozen=True)
class SampledPass:
    """A pass with its samples: those of the inference in its timed iterations are ``inside``."""

    record: PassRecord
    spans: pl.DataFrame
    layers: pl.DataFrame
    kernels: pl.DataFrame
    iterations: tuple[int, ...]
    placed: pl.DataFrame  # in these iterations, in the inference or not
    inside: pl.DataFrame
    threads: int | None

    @property
    def detail(self) -> dict[str, Any]:
        """What the sampler says of this pass."""
        return next((dict(said.detail) for said in self.record.collectors if said.name == "sampler"), {})


def find(run: RunDirectory, modules: pl.DataFrame) -> SampledPass | None:
    """The completed pass with the most samples; None where there are none. ``modules``: the run's layers."""
    found = [_load(run, record, modules) for record in run.completed_passes() if record.iterations]
    best = max(found, key=lambda one: one.inside.height, default=None)
    return best if best is not None and best.inside.height else None


def _load(run: RunDirectory, record: PassRecord, modules: pl.DataFrame) -> SampledPass:
    taken, spans, kernels = (
        run.scan(table).filter(pl.col("pass") == record.name).collect() for table in ("samples", "spans", "kernels")
    )
    iterations = select(record.iterations).timed
    placed = samples.attribute_samples(taken, spans, modules).filter(pl.col("iteration").is_in(list(iterations)))
    inside = sampled_kernels.sampled(placed, kernels, iterations)
    workload = run.manifest.workload
    threads = record.threads or (workload.threads if workload else None)
    return SampledPass(record, spans, modules, kernels, iterations, placed, inside, threads)
