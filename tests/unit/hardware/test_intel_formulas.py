"""Intel's files: what every metric must make of counts that can be computed with by hand."""

from __future__ import annotations

import polars as pl
import pytest

from hwprof.hardware.catalogue import Catalogue, catalogue
from hwprof.hardware.metrics import definition, vocabulary
from tests.support.intel_cases import CASES
from tests.support.intel_counts import (
    AVX_2,
    AVX_512,
    EFFICIENCY_CORES,
    LEVEL_1,
    METRICS_REGISTER,
    PERFORMANCE_CORES,
    SLOTS,
    SLOTS_VALUES,
    XEONS,
)


def value(file: Catalogue, metric: str, counts: dict[str, int]) -> float:
    """The metric as a run computes it."""
    return evaluated(metric, [("cpu", file)], counts)


def evaluated(metric: str, kinds: list[tuple[str, Catalogue]], counts: dict[str, int]) -> float:
    """The metric over one or several kinds of core."""
    name = next(name for name in vocabulary() if name.name == metric)
    elsewhere = frozenset({"counted-time"})
    formula = definition(name, [(pmu, file.recipes[metric]) for pmu, file in kinds], elsewhere).formula
    return float(pl.DataFrame(counts).select(pl.sql_expr(formula)).item())


def umask(file: Catalogue, event: str) -> int:
    """The unit mask in the event's code."""
    terms = dict(term.split("=") for term in (file.named()[event].code or "").split(","))
    return int(terms["umask"], 0)


@pytest.mark.parametrize(("file", "metric"), [(file, metric) for file in CASES for metric in catalogue(file).recipes])
def test_every_metric_of_counts_computed_by_hand(file: str, metric: str) -> None:
    counts, expected = CASES[file]
    assert value(catalogue(file), metric, counts) == pytest.approx(expected[metric])


@pytest.mark.parametrize("file", CASES)
def test_nothing_is_expected_that_the_file_has_not(file: str) -> None:
    assert set(CASES[file][1]) == set(catalogue(file).recipes)


@pytest.mark.parametrize("file", CASES)
def test_slots_add_up(file: str) -> None:
    shares = [value(catalogue(file), metric, CASES[file][0]) for metric in LEVEL_1]
    assert sum(shares) == pytest.approx(100)


@pytest.mark.parametrize("file", METRICS_REGISTER[1:])
def test_the_second_level_splits_the_first(file: str) -> None:
    part = {metric: value(catalogue(file), metric, CASES[file][0]) for metric in SLOTS_VALUES}
    assert part["topdown_memory"] + part["topdown_core"] == pytest.approx(part["topdown_backend"])
    assert part["topdown_light"] + part["topdown_heavy"] == pytest.approx(part["topdown_retiring"])
    fetching = part["topdown_fetch_latency"] + part["topdown_fetch_bandwidth"]
    assert fetching == pytest.approx(part["topdown_frontend"])
    flushed = part["topdown_branch_mispredict"] + part["topdown_machine_clears"]
    assert flushed == pytest.approx(part["topdown_bad_speculation"])


@pytest.mark.parametrize("file", XEONS)
def test_ten_scalar_and_five_512_bit_instructions_are_ninety_operations(file: str) -> None:
    counts = dict.fromkeys(AVX_512, 0) | {
        "fp_arith_inst_retired.scalar_single": 10,
        "fp_arith_inst_retired.scalar": 10,
        "fp_arith_inst_retired.512b_packed_single": 5,
        "fp_arith_inst_retired.vector": 5,
    }
    assert value(catalogue(file), "counted_flops", counts) == 90
    assert value(catalogue(file), "vector_512", counts) == pytest.approx(100 / 3)


@pytest.mark.parametrize("file", [*XEONS, *PERFORMANCE_CORES])
def test_events_of_several_widths_have_the_masks_of_their_parts(file: str) -> None:
    """Intel's lists for Skylake-X give 8_FLOPS the mask of 4_FLOPS: a formula with it would be silently wrong."""
    content = catalogue(file)
    prefix = "fp_arith_ops_retired" if file == "intel-lion-cove" else "fp_arith_inst_retired"
    parts = {
        "scalar": ("scalar_single", "scalar_double"),
        "4_flops": ("128b_packed_single", "256b_packed_double"),
        "8_flops": ("256b_packed_single", "512b_packed_double"),
        "vector_128b": ("128b_packed_single", "128b_packed_double"),
        "vector_256b": ("256b_packed_single", "256b_packed_double"),
    }
    there = [name for name in parts if f"{prefix}.{name}" in content.named()]
    assert "scalar" in there
    for name in there:
        single, double = (umask(content, f"{prefix}.{part}") for part in parts[name])
        assert umask(content, f"{prefix}.{name}") == single | double, name
    packed = [name for name in content.named() if name.startswith(prefix) and "b_packed" in name]
    assert all(umask(content, name) & umask(content, f"{prefix}.vector") for name in packed)
    assert not umask(content, f"{prefix}.scalar") & umask(content, f"{prefix}.vector")


@pytest.mark.parametrize("file", METRICS_REGISTER)
def test_what_the_metrics_register_tells_follows_the_slots_and_takes_no_counter(file: str) -> None:
    content = catalogue(file)
    assert content.processor is not None and "slots" in content.processor.fixed
    told = [event for event in content.events if event.name.startswith("topdown-")]
    assert len(told) >= 4
    assert all(event.leader == "slots" and event.counters == 0 for event in told)
    assert content.named()["slots"].leader is None


@pytest.mark.parametrize("file", CASES)
def test_memory_controllers_are_charged_to_no_thread(file: str) -> None:
    """They stand with one kind of core only, or a hybrid processor would count them twice."""
    outside = [event for event in catalogue(file).events if event.pmu is not None]
    assert all(event.scope == "socket" for event in outside)
    assert bool(outside) == (file not in EFFICIENCY_CORES)


def test_kinds_of_core_are_summed_before_they_are_divided() -> None:
    """Two fifths of six million slots and three fifths of five million are 5.4 of 11 million."""
    kinds = [("cpu_core", catalogue("intel-golden-cove")), ("cpu_atom", catalogue("intel-gracemont"))]
    counts = {f"cpu_core/{name}/": count for name, count in SLOTS.items()} | {
        "cpu_atom/cycles/": 1_000_000,
        "cpu_atom/topdown_retiring.all/": 3_000_000,
    }
    assert evaluated("topdown_retiring", kinds, counts) == pytest.approx(100 * 5.4 / 11)


def test_operations_of_both_kinds_of_core_add_up() -> None:
    kinds = [("cpu_core", catalogue("intel-redwood-cove")), ("cpu_atom", catalogue("intel-crestmont"))]
    counts = {f"cpu_core/fp_arith_inst_retired.{name}/": count for name, count in AVX_2.items()} | {
        "cpu_atom/fp_flops_retired.all/": 20_000_000,
        "counted-time": 2_000_000,
    }
    assert evaluated("counted_gflops", kinds, counts) == pytest.approx(150)
