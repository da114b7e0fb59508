"""What follows from the counts: every formula on numbers that a reader can check, and only what was counted."""

from __future__ import annotations

import polars as pl
import pytest

from collectors.instrumented.cache_events import events as simulated_events
from collectors.instrumented.cache_geometry import Geometry, Level
from collectors.instrumented.events import events
from collectors.instrumented.metrics import Recipe, definitions, recipes
from hwprof.analysis.metrics import values
from hwprof.hardware.metrics import GIVEN_OPERANDS, facts, operands, vocabulary

GHZ = 2.5
COUNTED = [event.full_name for event in events()]
TWO_LEVELS = Geometry(Level(1 << 15, 8, 64), Level(1 << 20, 8, 64), None, 1)
THREE_LEVELS = Geometry(TWO_LEVELS.l1, TWO_LEVELS.l2, Level(1 << 25, 16, 64), 2)
SIMULATED_EVENTS = [event.full_name for event in simulated_events(THREE_LEVELS)]

FIGURES = {
    "time": 1e6,  # 1 ms = 2.5 million cycles
    "instructions@main": 2_200_000,
    "instrumented.instructions": 4_000_000,
    "instrumented.instructions@main": 2_000_000,
    "instrumented.instructions@workers": 1_000_000,
    "instrumented.critical-instructions": 2_000_000,
    "instrumented.instructions-openmp": 1_000_000,
    "instrumented.instructions-python": 300_000,
    "instrumented.instructions-system": 80_000,
    "instrumented.instructions-other": 20_000,
    "instrumented.flops-fp32": 40_000_000,
    "instrumented.flops-fp32-scalar": 400_000,
    "instrumented.flops-fp32-128": 1_600_000,
    "instrumented.flops-fp32-256": 8_000_000,
    "instrumented.flops-fp32-512": 30_000_000,
    "instrumented.flops-fp64": 5_000_000,
    "instrumented.flops-fp16": 2_000_000,
    "instrumented.flops-bf16": 1_000_000,
    "instrumented.operations-int8": 7_000_000,
    "instrumented.load-bytes": 18_000_000,
    "instrumented.store-bytes": 6_000_000,
    "cache-model.l1d-accesses": 1_000_000,
    "cache-model.l1d-misses": 200_000,
    "cache-model.l2-misses": 40_000,
    "cache-model.llc-misses": 8_000,
    "cache-model.l2-bytes": 12_800_000,
    "cache-model.llc-bytes": 2_560_000,
    "cache-model.memory-bytes": 512_000,
}

EXPECTED = {
    "counted_flops": 48e6, "counted_gflops": 48.0, "int8_gops": 7.0,
    "vector_scalar": 1.0, "vector_128": 4.0, "vector_256": 20.0, "vector_512": 75.0,
    "requested_intensity": 2.0, "requested_gbytes": 24.0, "framework_share": 10.0, "openmp_share": 20.0,
    "worker_share": 25.0, "instruction_ratio": 1.1,
    "l1d_mpki": 50.0, "l2_mpki": 10.0, "llc_mpki": 2.0, "l1d_miss_ratio": 20.0, "dram_gbytes": 0.512,
    "l2_intensity": 3.75, "llc_intensity": 18.75, "memory_intensity": 93.75,
}  # fmt: skip


def test_every_formula_by_hand() -> None:
    frame = pl.DataFrame({"owner": "a"} | {name: float(value) for name, value in FIGURES.items()})
    found = values(frame, definitions([*COUNTED, *SIMULATED_EVENTS]))
    row = found.drop("owner").row(0, named=True)
    assert row == pytest.approx(EXPECTED)


def test_formulas_name_events_that_are_counted() -> None:
    known = {*COUNTED, *SIMULATED_EVENTS, *GIVEN_OPERANDS, "instructions"}
    for metric in definitions([*COUNTED, *SIMULATED_EVENTS]):
        assert {name.partition("@")[0] for name in operands(metric.formula)} <= known, metric.name


def test_without_the_cache_model_there_is_nothing_of_it() -> None:
    plain = {metric.name for metric in definitions(COUNTED)}
    everything = {metric.name for metric in definitions([*COUNTED, *SIMULATED_EVENTS])}
    assert everything - plain == {name for name in EXPECTED if "mpki" in name or "miss" in name or "dram" in name} | {
        "l2_intensity", "llc_intensity", "memory_intensity",
    }  # fmt: skip
    two_levels = [*COUNTED, *(event.full_name for event in simulated_events(TWO_LEVELS))]
    assert everything - {metric.name for metric in definitions(two_levels)} == {"llc_mpki", "llc_intensity"}


def test_names_are_the_vocabularys() -> None:
    assert {recipe.name for recipe in recipes()} <= {name.name for name in vocabulary()}


@pytest.mark.parametrize("recipe", recipes(), ids=lambda recipe: recipe.name)
def test_a_report_without_it_names_the_option_that_brings_it(recipe: Recipe) -> None:
    """In ``hwprof/hardware/metrics.toml``, which knows no collector; the ratio to hardware's count needs both."""
    needs_counters = any(name.partition("@")[0] == "instructions" for name in operands(recipe.formula))
    expected = "--cache-model" if "cache-model." in recipe.formula else "--counters instrumented"
    assert facts()[recipe.name].option == (None if needs_counters else expected)


def test_no_other_metric_promises_an_option() -> None:
    assert {name for name, metric in facts().items() if metric.option} <= {recipe.name for recipe in recipes()}
