"""Cycles per instruction from sampled time and instructions counted elsewhere: against a plain loop, and by hand."""

from __future__ import annotations

from collections import defaultdict

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwprof.analysis.core_clock import Clock
from hwprof.analysis.instrumented import KERNELS_SCHEMA, UNNAMED
from hwprof.analysis.kernel_cpi import CpiByTime
from hwprof.analysis.no_cpi import MOST_ERROR, WIDE
from hwprof.analysis.owners import UNATTRIBUTED
from hwprof.analysis.sampled_cycles import NONE_MET, UNINSTRUMENTED, elsewhere
from hwprof.analysis.sampled_kernels import kernels_by_layer
from hwprof.analysis.samples import FEW_SAMPLES
from hwprof.analysis.work_time import CallersTime
from tests.support.small_samples import AFTER_WARM_UP, KERNELS, NAMELESS, SILU, WAIT, Row, taken
from tests.support.small_tables import MAIN

GHZ = 2.5
CLOCK = Clock(GHZ)
NAMES = {SILU: ("silu", "libtorch_cpu.so", "torch"), WAIT: ("gomp_barrier_wait", "libgomp.so.1", "openmp"),
         NAMELESS: (UNNAMED, "[unknown]", "other")}  # fmt: skip
MOMENTS = {"a": 1012, "b": 1055, UNATTRIBUTED: 1040}
"""When each layer of the example runs."""


def counted(rows: list[tuple[str | None, int, float]]) -> pl.DataFrame:
    """(layer, kernel, instructions) as ``followed.kernels`` makes them."""
    return pl.DataFrame(
        [
            dict(zip(("layer", "kernel", "library", "domain", "value"), (layer, *NAMES[kernel], value), strict=True))
            for layer, kernel, value in rows
        ],
        schema_overrides=KERNELS_SCHEMA,
        schema=["layer", "kernel", "library", "domain", "value"],
    )


def by_time(inside: pl.DataFrame, instructions: list[tuple[str | None, int, float]], clock: Clock = CLOCK) -> CpiByTime:
    """Where nobody counted the calling thread's time."""
    names = ("counted_ns", "undisturbed_ns", "undisturbed_error_ns")
    nothing = CallersTime([MAIN], pl.DataFrame(schema={"layer": pl.String} | dict.fromkeys(names, pl.Float64)))
    kernels = kernels_by_layer(inside, KERNELS)
    return CpiByTime(inside, kernels, counted(instructions), len(AFTER_WARM_UP), clock, nothing)


def found(
    samples: list[Row], instructions: list[tuple[str | None, int, float]]
) -> dict[tuple[str | None, str | None], float | None]:
    """CPI by layer and kernel, of all kernels of a layer, and all layers, without a name; None where the error is half
    of it or more. What has none for another reason is left out."""
    cpi = by_time(taken(samples), instructions)
    everything = cpi.together(cpi.layers.select("layer", owner=pl.lit("all"))).drop("owner")
    table = pl.concat([cpi.kernels, cpi.layers, everything], how="diagonal")
    known = table.drop_nulls("cpi")
    assert (known["cpi_low"] < known["cpi"]).all()
    ends = known["cpi_high"] / known["cpi"]
    assert (ends > 1 - 1e-9).all(), "1 where all of the processor time is the kernel's: it has no more"
    assert ((known["cpi_high"] - known["cpi_low"]) / 2 < known["cpi"] * MOST_ERROR).all()
    told = table.filter(pl.col("cpi").is_not_null() | (pl.col("reason") == WIDE))
    return {(row["layer"], row["name"]): row["cpi"] for row in told.iter_rows(named=True)}


def samples(layer: str, kernel: int, number: int, cpu_ns: int = 10) -> list[Row]:
    return [(MOMENTS[layer], MAIN, kernel, cpu_ns, None, None)] * number


def test_of_a_layer_and_of_all_layers_that_it_was_counted_in() -> None:
    taken_ = [*samples("a", SILU, 80), *samples("b", SILU, 40), *samples(UNATTRIBUTED, SILU, 50)]
    cpi = found(taken_, [("a", SILU, 50.0), ("b", SILU, 200.0), (UNATTRIBUTED, SILU, 1.0), (None, SILU, 251.0)])
    per_iteration = GHZ * 10 / len(AFTER_WARM_UP)
    each = {"a": 80 * per_iteration / 50, "b": 40 * per_iteration / 200, None: 120 * per_iteration / 250}
    assert cpi == {(layer, name): pytest.approx(value) for layer, value in each.items() for name in ("silu", None)}, (
        "a layer of one kernel has that kernel's"
    )


def test_no_figure_rests_on_few_samples_or_on_waiting() -> None:
    rows = [
        *samples("a", SILU, FEW_SAMPLES - 1),
        *samples("b", WAIT, 5 * FEW_SAMPLES),
        *samples("b", NAMELESS, FEW_SAMPLES),
    ]
    instructions: list[tuple[str | None, int, float]] = [("a", SILU, 9.0), ("b", WAIT, 9.0), ("b", NAMELESS, 9.0)]
    assert set(found(rows, instructions)) == {("b", UNNAMED), (None, UNNAMED), ("b", None), (None, None)}


@pytest.mark.parametrize(
    ("met", "instructions", "place"),
    [
        ([*samples("a", SILU, 40), *samples(UNATTRIBUTED, SILU, 9)], [], UNINSTRUMENTED),
        ([*samples("a", SILU, 3)], [], UNINSTRUMENTED),
        ([*samples("a", SILU, 2)], [], None),
        ([*samples("a", SILU, 1), *samples(UNATTRIBUTED, SILU, 400)], [("a", SILU, 9.0)], "own code"),
        ([*samples(UNATTRIBUTED, SILU, NONE_MET)], [("a", SILU, 9.0)], "own code"),
        ([*samples(UNATTRIBUTED, SILU, NONE_MET - 1)], [("a", SILU, 9.0)], None),
        ([*samples("a", SILU, 1), *samples("a", WAIT, 400)], [("a", SILU, 9.0)], "waiting"),
        ([*samples("a", SILU, 4), *samples(UNATTRIBUTED, SILU, 90)], [("a", SILU, 9.0)], None),
    ],
)
def test_where_samples_are_that_no_frequency_brings_into_layers(
    met: list[Row], instructions: list[tuple[str | None, int, float]], place: str | None
) -> None:
    why = elsewhere(by_time(taken(met), instructions))
    assert (why is None) == (place is None)
    assert why is None or (why.remedy is None and place is not None and place in why.reason)


def test_fewer_samples_make_wider_intervals() -> None:
    def width(number: int) -> float:
        inside = taken([*samples("a", SILU, number), *samples("b", NAMELESS, 10 * number)])
        table = by_time(inside, [("a", SILU, 900.0)]).kernels
        (row,) = table.filter(layer="a", name="silu").iter_rows(named=True)
        return float((row["cpi_high"] - row["cpi_low"]) / row["cpi"])

    assert width(32) == pytest.approx(2 * width(128), rel=0.1), "as one over the root of their number"


def together(
    layers: list[str], number: dict[tuple[str, int], int], instructions: dict[tuple[str, int], int], per_sample: float
) -> dict[tuple[str | None, str | None], float]:
    """The CPI of all code at work in these layers, by the first one's name."""
    many = sum(number[layer, kernel] for layer in layers for kernel in (SILU, NAMELESS))
    counted = sum(instructions.get((layer, kernel), 0) for layer in layers for kernel in (SILU, NAMELESS))
    return {(layers[0], None): per_sample * many / counted} if layers and many >= FEW_SAMPLES else {}


def test_the_clocks_error_is_in_the_interval() -> None:
    inside = taken([*samples("a", SILU, 40), *samples("b", NAMELESS, 400)])
    tables = [by_time(inside, [("a", SILU, 900.0)], clock).kernels for clock in (Clock(GHZ, 0.0), Clock(GHZ, 0.25))]
    sure, unsure = (table.filter(layer="a", name="silu").row(0, named=True) for table in tables)
    assert sure["cpi"] == unsure["cpi"]
    for end in ("cpi_low", "cpi_high"):
        own, both = ((row[end] - row["cpi"]) / row["cpi"] for row in (sure, unsure))
        assert both**2 == pytest.approx(own**2 + 0.25**2)


LAYERS = st.sampled_from([*MOMENTS])
CODE = st.sampled_from([SILU, NAMELESS, WAIT])
TAKEN = st.lists(st.tuples(LAYERS, CODE, st.integers(1, 30)), max_size=12)
INSTRUCTIONS = st.dictionaries(st.tuples(LAYERS, CODE), st.integers(100, 1000), max_size=9)


@settings(max_examples=50)
@given(TAKEN, INSTRUCTIONS)
def test_agrees_with_a_plain_loop(groups: list[tuple[str, int, int]], instructions: dict[tuple[str, int], int]) -> None:
    number: dict[tuple[str, int], int] = defaultdict(int)
    for layer, kernel, many in groups:
        number[layer, kernel] += many
    expected: dict[tuple[str | None, str | None], float] = {}
    leaves = {layer for layer, kernel in instructions if layer != UNATTRIBUTED and kernel != WAIT}
    for kernel in (SILU, NAMELESS):
        cells = {layer: value for (layer, code), value in instructions.items() if code == kernel and layer in leaves}
        for layer, value in cells.items():
            if number[layer, kernel] >= FEW_SAMPLES:
                expected[layer, NAMES[kernel][0]] = GHZ * 10 * number[layer, kernel] / len(AFTER_WARM_UP) / value
        whole = sum(number[layer, kernel] for layer in leaves)
        if cells and whole >= FEW_SAMPLES:
            expected[None, NAMES[kernel][0]] = GHZ * 10 * whole / len(AFTER_WARM_UP) / sum(cells.values())
    per_sample = GHZ * 10 / len(AFTER_WARM_UP)
    for part in ([layer] for layer in leaves):
        expected |= together(part, number, instructions, per_sample)
    for cpi in together(sorted(leaves), number, instructions, per_sample).values():
        expected[None, None] = cpi
    rows = [row for layer, kernel, many in groups for row in samples(layer, kernel, many)]
    told: list[tuple[str | None, int, float]] = [
        (layer, kernel, float(value)) for (layer, kernel), value in instructions.items()
    ]
    figures = found(rows, told)
    assert figures.keys() == expected.keys()
    known = {key: value for key, value in figures.items() if value is not None}
    assert known == {key: pytest.approx(expected[key]) for key in known}
