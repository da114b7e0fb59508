from __future__ import annotations

import math

import polars as pl
import pytest

from hwprof.analysis.metrics import available_operands, definitions, evaluate, missing_operands

OPERANDS = {
    "owner": ["a", "b"],
    "time": [2000.0, 1000.0],
    "counted-time": [2500.0, 1000.0],
    "macs": [40_000.0, 0.0],
    "bytes": [8000.0, 500.0],
    "threads": [2.0, 2.0],
    "cycles": [9000.0, 0.0],
    "instructions": [6000.0, 0.0],
    "cache-references": [400.0, None],
    "cache-misses": [100.0, None],
    "branch-misses": [12.0, 0.0],
    "task-clock": [4500.0, 800.0],
    "task-clock@main": [2400.0, 800.0],
    "task-clock@workers": [2100.0, 0.0],
    "page-faults": [3.0, 0.0],
}
EXPECTED = {
    "cpi": (1.5, None),
    "ipc": (2 / 3, None),
    "frequency": (2.0, 0.0),
    "cache_miss_ratio": (25.0, None),
    "cache_mpki": (100 * 1000 / 6000, None),
    "branch_mpki": (2.0, None),
    "gflops": (40.0, None),  # 80,000 FLOPs in 2 µs; a layer without MACs has no figure
    "gbytes": (4.0, 0.5),
    "intensity": (10.0, None),
    "cpus_used": (1.8, 0.8),
    "parallel_efficiency": (90.0, 40.0),
    "balance": (0.875, 0.0),
    "page_faults": (3.0, 0.0),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_hand_computed(name: str) -> None:
    found = evaluate(pl.DataFrame(OPERANDS), definitions())[name].to_list()
    assert len(found) == 2
    for value, expected in zip(found, EXPECTED[name], strict=True):
        assert value is expected if expected is None else math.isclose(value, expected)


def test_a_metric_without_its_operand_is_null_and_says_which_one() -> None:
    cpi = next(metric for metric in definitions() if metric.name == "cpi")
    frame = pl.DataFrame(OPERANDS).drop("cycles")
    assert evaluate(frame, [cpi])["cpi"].to_list() == [None, None]
    assert missing_operands(cpi, frame.columns) == ("cycles",)
    assert missing_operands(cpi, OPERANDS) == ()


def test_one_thread_has_no_balance() -> None:
    frame = pl.DataFrame(OPERANDS).with_columns(threads=pl.lit(1.0))
    assert evaluate(frame, definitions())["balance"].to_list() == [None, None]


def test_operands_without_a_single_value_are_not_available() -> None:
    frame = pl.DataFrame({"owner": ["a"], "cycles": [None], "time": [1.0]})
    assert available_operands(frame) == ["owner", "time"]


def test_definitions_are_sound() -> None:
    names = [metric.name for metric in definitions()]
    assert len(set(names)) == len(names)
    for metric in definitions():
        assert metric.operands, metric.name
        assert metric.meaning and metric.unit, metric.name
    assert next(metric for metric in definitions() if metric.name == "balance").events == ("task-clock",)
    assert {metric.name for metric in definitions() if metric.modelled} == {"gflops", "gbytes", "intensity"}
