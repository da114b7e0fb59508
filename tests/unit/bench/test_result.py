"""What is made of a case's samples, against numpy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwprof.bench.result import measured, times_of
from hwprof.bench.rows import rows_of
from tests.unit.bench.support import PEAKS, case, failed, result


@given(st.lists(st.integers(1, 10**12), min_size=1, max_size=300))
def test_percentiles_are_values_that_were_measured(values: list[int]) -> None:
    found = times_of(values)
    assert found is not None
    assert abs(found.p50_ns - np.median(values)) <= 0.5
    for percent, got in ((90, found.p90_ns), (99, found.p99_ns)):
        assert got == np.percentile(values, percent, method="inverted_cdf")
    assert found.number == len(values) and found.mean_ns == pytest.approx(np.mean(values))
    assert found.mad_ns == pytest.approx(np.median(np.abs(np.array(values) - found.p50_ns)))


def test_nothing_is_made_of_nothing() -> None:
    assert times_of([]) is None
    with pytest.raises(ValueError, match="no process"):
        model = result(case(), 5).model
        assert model is not None
        measured(case(), "", 1.0, model, [], None)


def test_rates_are_of_the_median() -> None:
    found = result(case(), 10_000_000, 20_000_000, 90_000_000)
    assert found.images_per_s == pytest.approx(50) and found.end_to_end_per_s == pytest.approx(2 / 0.060)
    assert found.gflops == 8 and found.gflops_per_s == pytest.approx(400) and found.processes == 3
    assert found.peak_bytes == 90_000_000


def test_rows_stand_beside_the_same_in_eager_mode_and_the_machines_peaks() -> None:
    eager, fast, other = case(), case(variants=("channels_last",)), case(variants=("int8",), imgsz=320)
    rows = rows_of([result(eager, 40_000_000), result(fast, 10_000_000), result(other, 10_000_000)], PEAKS)
    assert [row.times_as_fast for row in rows] == [None, 4.0, None], "of another size there is no eager one"
    assert rows[1].times_as_fast_error is None, "one process tells nothing of others"
    told = rows_of([result(eager, 90, 100, 110), result(fast, 45, 50, 55)], None)[1]
    apart = float(np.std(np.log([90, 100, 110]), ddof=1)) * (2 / 3) ** 0.5
    assert told.times_as_fast == 2 and told.times_as_fast_error == pytest.approx(2 * 2.776 * apart)
    assert [row.share_of_peak for row in rows] == [pytest.approx(0.5), pytest.approx(2.0), None]
    assert [row.bound for row in rows] == ["compute", "compute", None]  # 200 FLOP a byte, 20 at the ridge
    assert rows[0].outputs is None and rows[1].outputs is not None and rows[1].outputs.largest == 0.05


def test_a_row_of_what_failed_says_why() -> None:
    (row,) = rows_of([failed(case(), "no", "something else")], None)
    assert (row.failure, row.remedy, row.forward_ns) == ("no", "something else", None)
