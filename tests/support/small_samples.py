"""A few samples, by hand, in the layers of the small tables' example."""

from __future__ import annotations

import polars as pl

from hwprof.analysis.sampled_kernels import sampled
from hwprof.analysis.samples import attribute_samples
from hwprof.run.schema import TABLES, conform
from tests.support.small_tables import Example

AFTER_WARM_UP = (1, 2, 3)
SILU, WAIT, NAMELESS = 0, 1, 2
KERNELS = conform(
    "kernels",
    pl.DataFrame(
        {
            "kernel": [SILU, WAIT, NAMELESS],
            "domain": ["torch", "openmp", "other"],
            "library": ["libtorch_cpu.so", "libgomp.so.1", "[unknown]"],
            "name": ["silu", "gomp_barrier_wait", None],
        }
    ),
)
Row = tuple[int, int, int, int, int | None, int | None]


def taken(rows: list[Row]) -> pl.DataFrame:
    """(time, thread, kernel, processor time, cycles, instructions), with a miss every 10 instructions, in the layers of
    the example."""
    names = ["time_ns", "tid", "kernel", "cpu_ns", "cycles", "instructions"]
    schema = {name: TABLES["samples"][name] for name in names}
    frame = pl.DataFrame(rows, schema=schema, orient="row").with_columns(llc_misses=pl.col("instructions") // 10)
    example = Example()
    return sampled(attribute_samples(frame, example.spans, example.layers), KERNELS, AFTER_WARM_UP)
