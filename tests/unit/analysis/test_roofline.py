"""Roofs, points below them, and what bounds."""

from __future__ import annotations

import msgspec
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwprof.analysis.roofline import LEVELS, Point, Roofs, Traffic, bound, point, product_types, roofs_of
from hwprof.analysis.run_roofline import of_timed_calls
from tests.support.machine_peaks import FOUND, peak

ROOFS = Roofs(2, 200.0, {"L1": 400.0, "L2": 200.0, "L3": 150.0, "DRAM": 40.0}, 180.0)


def test_roofs_are_of_so_many_threads_and_the_best_that_was_measured() -> None:
    roofs = roofs_of(FOUND, 2)
    assert roofs is not None and (roofs.gflops, roofs.gemm_gflops) == (232.0, 200.0)
    assert roofs.gbytes == {"L1": 400.0, "L2": 400.0, "DRAM": 400.0}
    assert roofs_of(None, 1) is None
    assert roofs_of(FOUND, 64) == roofs, "more threads than cores have no more"


def test_what_the_library_attained_can_be_attained() -> None:
    disturbed = [
        msgspec.structs.replace(one, value=20.0) if one.what == "fp32" and one.threads == 2 else one
        for one in FOUND.peaks
    ]
    roofs = roofs_of(msgspec.structs.replace(FOUND, peaks=disturbed), 2)
    assert roofs is not None and roofs.gflops == roofs.gemm_gflops


def test_roofs_of_bf16_are_those_of_its_peaks_whichever_is_best() -> None:
    more = [peak("bf16", 2, 400.0), peak("gemm-bf16", 2, 900.0)]  # the library has tiles, hwprof's loop vectors
    roofs = roofs_of(msgspec.structs.replace(FOUND, peaks=[*FOUND.peaks, *more]), 2, "bfloat16")
    assert roofs is not None and (roofs.gflops, roofs.gemm_gflops, roofs.arithmetic) == (900.0, 900.0, "BF16")
    found = point(630.0, {"DRAM": Traffic(40.0, "modelled")}, roofs)
    assert (found.roof, found.share_of_roof) == ("BF16", 0.7)
    assert bound(found, {"compute": 0.9}).evidence == "70% of the BF16 roof"
    assert roofs_of(FOUND, 2, "bfloat16") is None


def test_what_is_multiplied_is_known_by_module_and_of_the_whole() -> None:
    modules = pl.DataFrame({"path": ["a", "b", "c", "a"], "product_type": ["bfloat16", None, "float32", "bfloat16"]})
    assert product_types(modules) == {
        "a": "bfloat16", "a (own)": "bfloat16", "c": "float32", "c (own)": "float32", None: "bfloat16, float32",
    }  # fmt: skip
    assert product_types(modules.filter(path="b")) == {}


def test_the_nearest_roof_and_what_is_attainable_below_it() -> None:
    """100 GFLOP/s with 30 GB/s of 40: 75% of the DRAM roof, so 133 GFLOP/s could be attained."""
    found = point(100.0, {"DRAM": Traffic(30.0, "measured"), "L2": Traffic(60.0, "simulated")}, ROOFS)
    assert found[:3] == (100.0, "DRAM", 0.75) and found.source == "measured"
    assert found.attainable_gflops == pytest.approx(100 / 0.75)
    assert point(150.0, {"DRAM": Traffic(20.0, "modelled")}, ROOFS).roof == "FP32"
    assert point(None, {"DRAM": Traffic(30.0, "modelled")}, ROOFS) == Point(None, "DRAM", 0.75, None, "modelled")
    assert point(None, {}, ROOFS) == Point(None, None, None, None, None)


@given(
    st.none() | st.just(0.0) | st.floats(1e-6, 1e4),
    st.dictionaries(st.sampled_from([*LEVELS, "L9"]), st.just(0.0) | st.floats(1e-6, 1e4)),
)
def test_attained_over_attainable_is_the_share(gflops: float | None, gbytes: dict[str, float]) -> None:
    found = point(gflops, {level: Traffic(value, "measured") for level, value in gbytes.items()}, ROOFS)
    if found.attainable_gflops is not None:
        assert gflops is not None and gflops / found.attainable_gflops == pytest.approx(found.share_of_roof)
    if found.share_of_roof is not None:
        assert all(
            value / ROOFS.gbytes[level] <= found.share_of_roof for level, value in gbytes.items() if level != "L9"
        )


AT = {
    "compute": point(170.0, {"DRAM": Traffic(5.0, "modelled")}, ROOFS),
    "DRAM bandwidth": point(3.0, {"DRAM": Traffic(33.0, "measured")}, ROOFS),
    "not known": point(20.0, {"DRAM": Traffic(5.0, "modelled")}, ROOFS),
}


@pytest.mark.parametrize("name", AT)
def test_what_is_near_a_roof_is_bounded_by_it(name: str) -> None:
    found = bound(AT[name], {"compute": 0.95, "waiting": 0.05})
    assert found.name == name
    assert found.confidence == ("low" if name == "not known" else "high")


def test_time_that_is_no_work_of_its_own_comes_first() -> None:
    waits = bound(AT["not known"], {"compute": 0.4, "waiting": 0.55})
    assert (waits.name, waits.confidence) == ("waiting", "high") and "55%" in waits.evidence
    over = bound(AT["not known"], {"compute": 0.3, "page_faults": 0.4, "dispatch": 0.2})
    assert over.name == "overhead" and "most in page faults" in over.evidence
    assert bound(AT["compute"], None).name == "compute", "nobody sampled"


def test_a_kernel_near_its_roof_half_of_the_time() -> None:
    half = point(100.0, {}, ROOFS)
    found = bound(half, {"compute": 0.55, "layout": 0.3})
    assert (found.name, found.confidence) == ("compute", "medium") and "91% while its own kernels run" in found.evidence
    assert bound(half, {"compute": 1.0}).name == "not known"


def test_at_the_rate_of_the_library_s_products_a_layer_computes() -> None:
    slow_library = ROOFS._replace(gemm_gflops=80.0)
    found = bound(point(70.0, {}, slow_library), {"compute": 0.95})
    assert (found.name, found.confidence) == ("compute", "medium")
    assert found.evidence == "88% of the GEMM peak, 35% of the FP32 roof"
    assert bound(point(70.0, {}, ROOFS), {"compute": 0.95}).name == "not known"


def test_slots_tell_where_no_roof_does() -> None:
    assert bound(AT["not known"], None, {"frontend": 0.5}).name == "front end"
    assert bound(AT["not known"], None, {"bad_speculation": 0.4, "frontend": 0.1}).name == "bad speculation"
    assert bound(Point(None, None, None, None, None), None).evidence == "neither operations nor bytes are known"


def test_of_a_models_minimum_nobody_knows_that_it_moved() -> None:
    assert bound(point(3.0, {"DRAM": Traffic(33.0, "modelled")}, ROOFS), None).confidence == "medium"
    cached = point(3.0, {"DRAM": Traffic(70.0, "modelled")}, ROOFS)
    assert (cached.roof, bound(cached, None).name) == ("FP32", "not known"), "more than DRAM can: it was in a cache"


def test_nobody_is_sure_of_more_than_a_roof() -> None:
    found = bound(point(300.0, {}, ROOFS), None)
    assert (found.name, found.confidence) == ("compute", "low")


def test_bytes_that_shapes_tell_have_the_roof_of_stores_that_read_their_line() -> None:
    roofs = ROOFS._replace(gbytes={"DRAM": 100.0}, modelled_gbytes=75.0)
    modelled, measured = (point(1.0, {"DRAM": Traffic(60.0, source)}, roofs) for source in ("modelled", "measured"))
    assert (modelled.share_of_roof, measured.share_of_roof) == pytest.approx((0.8, 0.6))
    assert roofs.rate("L2", "modelled") is None


def test_of_a_layer_that_others_disturb_nothing_is_said() -> None:
    found = bound(point(30.0, {}, ROOFS), {"compute": 0.2, "preempted": 0.8})
    assert found.name == "not known" and "others had the processor for 80%" in found.evidence


def test_page_faults_that_do_not_fit_into_the_timed_calls_are_the_sampled_passs_own() -> None:
    """4.4 ms where it was sampled, 57% of it page faults, and 1.44 ms where it was timed."""
    budget = {"compute": 0.25, "page_faults": 0.5, "allocation": 0.1, "other": 0.15}
    found = of_timed_calls(budget, 1.44e6, 4.4e6)
    assert found == pytest.approx({"compute": 0.625, "page_faults": 0.0, "allocation": 0.0, "other": 0.375})
    assert of_timed_calls(budget, 3.5e6, 4.4e6) is budget, "they are there, too"
    slow = {"dispatch": 0.8, "page_faults": 0.2}
    assert of_timed_calls(slow, 1e6, 3e6) is slow, "a recorder's time in small layers is no memory"
    for unknown in ((None, 1.0, 9.0), (budget, None, 9.0), (budget, 1.0, None), ({"page_faults": 1.0}, 1.0, 9.0)):
        assert of_timed_calls(*unknown) is unknown[0]
