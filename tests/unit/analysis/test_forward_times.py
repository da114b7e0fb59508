"""Times of layers over some forwards: what adds up to what."""

from __future__ import annotations

import polars as pl
import pytest

from hwprof.analysis.forward_times import COLUMNS, ForwardTimes, forward_times, with_small_together
from hwprof.analysis.owners import ROOT, UNATTRIBUTED, WHOLE, own
from hwprof.run.manifest import Disturbance, IterationRecord, PassRecord
from tests.support.small_tables import layers, spans

MODULES = layers(
    [
        (ROOT, "Net", False), ("a", "Block", False), ("a.conv", "Conv2d", True), ("b", "SiLU", True),
        ("spare", "Dropout", True),
    ]
).with_columns(
    own_macs=pl.when("leaf").then("macs").otherwise(0).cast(pl.Int64),
    calls=pl.when(pl.col("path") == "spare").then(0).otherwise("calls").cast(pl.Int32),
)  # fmt: skip
CONV_NS = (100, 200, 400)
"""What ``a.conv`` takes in each run; 20 more are the block's own, ``b`` takes 50, the model itself 30, nobody 10."""


def made(disturbed: frozenset[int] = frozenset(), small_ns: int = 20) -> ForwardTimes:
    rows: list[tuple[int, int | None, int, str, str, int, int]] = []
    for index, conv in enumerate(CONV_NS):
        at, first, block = 1_000_000 * index, 10 * index, conv + small_ns
        model = block + 50 + 30
        rows += [
            (first, None, index, "stage", "inference", at, at + model + 10),
            (first + 1, first, index, "layer", ROOT, at, at + model),
            (first + 2, first + 1, index, "layer", "a", at, at + block),
            (first + 3, first + 2, index, "layer", "a.conv", at, at + conv),
            (first + 4, first + 1, index, "layer", "b", at + block, at + block + 50),
        ]
    record = PassRecord(name="measure", iterations=[_iteration(index, index in disturbed) for index in range(3)])
    return forward_times(MODULES, spans(rows).drop("pass"), record)


def _iteration(index: int, disturbed: bool) -> IterationRecord:
    waited_ns = 900 if disturbed else 0
    seen = Disturbance(elapsed_ns=1000, preemptions=1, waited_ns=waited_ns, stolen_ns=0, own_ns=0, page_faults=0)
    return IterationRecord(index, False, None, False, disturbance=seen)


def test_means_of_layers_and_own_code_add_up_to_the_whole() -> None:
    found = made().rows
    times = {row["path"]: row for row in found.to_dicts()}
    assert list(times) == [own(ROOT), own("a"), "a.conv", "b", "spare", UNATTRIBUTED, WHOLE]
    assert times["a.conv"]["time_mean_ns"] == pytest.approx(700 / 3) and times["a.conv"]["time_min_ns"] == 100
    assert times[own("a")]["time_mean_ns"] == 20 and times[own(ROOT)]["time_mean_ns"] == 30
    assert times[UNATTRIBUTED]["time_mean_ns"] == 10
    assert all(times["spare"][name] is None for name in COLUMNS)
    parts = found.filter(pl.col("path") != WHOLE)
    assert parts["time_mean_ns"].sum() == pytest.approx(times[WHOLE]["time_mean_ns"])
    assert parts["share"].sum() == pytest.approx(1) and times[WHOLE]["share"] == 1
    assert (times[WHOLE]["macs"], times[WHOLE]["parameters"], times[WHOLE]["runs"]) == (3000, 10, 3)


def test_a_module_has_what_is_in_it() -> None:
    times = {row["path"]: row for row in made().modules.to_dicts()}
    assert list(times) == MODULES["path"].to_list()
    assert times["a"]["time_mean_ns"] == pytest.approx(700 / 3 + 20) and times["a"]["time_min_ns"] == 120
    assert times[ROOT]["time_mean_ns"] == pytest.approx(700 / 3 + 100)
    assert times[ROOT]["share"] == pytest.approx((700 / 3 + 100) / (700 / 3 + 110))
    assert times["spare"]["time_mean_ns"] is None


def test_where_too_few_are_undisturbed_all_are_kept_and_it_is_known() -> None:
    found = made(disturbed=frozenset({2}))
    assert (found.runs, found.left_out, found.disturbed) == (3, 0, 1)


def test_small_own_code_stands_in_one_row_before_the_last_two() -> None:
    found = made(small_ns=1)
    share = pl.when(pl.col("path").str.ends_with("(own)")).then(0.001).otherwise("share")
    rows = found.rows.with_columns(share=share)
    together = with_small_together(rows)
    assert together["path"].to_list() == ["a.conv", "b", "spare", "2 other modules (own)", UNATTRIBUTED, WHOLE]
    assert together["time_mean_ns"].to_list()[-3] == 31 and together["share"].to_list()[-3] == pytest.approx(0.002)
    products = rows.with_columns(macs=pl.when(pl.col("path") == own("a")).then(7).otherwise("macs"))
    assert with_small_together(products).equals(products)
