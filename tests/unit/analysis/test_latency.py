"""When a layer's time is that of loads that wait for DRAM."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwprof.analysis.latency import ONE_AT_A_TIME, SEVERAL, Loads, latency
from hwprof.analysis.roofline import Point, Roofs, Traffic, bound, loads_of, point

CHASE = Loads(gbytes=0.5, latency_ns=128.0, share_of_roof=0.012, cpi=90.0, memory_slots=None, measured=False)
"""64 bytes every 128 ns."""

GATHER = CHASE._replace(gbytes=4.0, share_of_roof=0.1, cpi=2.8)
ROOFS = Roofs(2, 200.0, {"L1": 400.0, "DRAM": 40.0}, 180.0, 128.0)


def test_a_chain_of_loads_has_one_line_in_flight() -> None:
    assert CHASE.outstanding == 1.0 and GATHER.outstanding == 8.0
    assert latency(CHASE) == (
        "1 lines from DRAM in flight, 128 ns each, CPI 90, 1% of the DRAM roof, misses simulated",
        "medium",
    )


def test_a_chain_is_slower_where_its_pages_are_looked_up_too() -> None:
    slow = CHASE._replace(gbytes=0.25)
    assert latency(slow) is None, "half a line in flight"
    assert latency(slow._replace(paged_latency_ns=160.0)) == (
        "0.5 to 0.62 lines from DRAM in flight, 128 to 160 ns each, CPI 90, 1% of the DRAM roof, misses simulated",
        "medium",
    )
    assert latency(slow._replace(paged_latency_ns=150.0)) is None, "too few all the same"
    prefetched = GATHER._replace(gbytes=1.4, cpi=9.0, paged_latency_ns=200.0)
    assert latency(prefetched) is None, "what is asked for ahead has its pages at hand"


@pytest.mark.parametrize(
    ("loads", "confidence"),
    [
        (CHASE._replace(measured=True), "high"),
        (GATHER, "low"),
        (GATHER._replace(measured=True), "medium"),
        (GATHER._replace(measured=True, memory_slots=0.8, cpi=None), "medium"),
        (CHASE._replace(measured=True, memory_slots=0.4, cpi=None), "medium"),
        (CHASE._replace(measured=True, memory_slots=0.8, cpi=None), "high"),
    ],
)
def test_how_sure_it_is(loads: Loads, confidence: str) -> None:
    found = latency(loads)
    assert found is not None and found[1] == confidence


@pytest.mark.parametrize(
    "loads",
    [
        CHASE._replace(cpi=0.34),  # a product of matrices with few misses, which it does not wait for
        CHASE._replace(cpi=6.2),  # of a chain of divisions
        CHASE._replace(cpi=11.9),
        GATHER._replace(cpi=2.4),
        CHASE._replace(cpi=None),
        CHASE._replace(gbytes=0.29),  # most of the time is something else
        GATHER._replace(gbytes=1.4, cpi=9.0),  # neither a chain nor as many as a core can have
        GATHER._replace(gbytes=12.1),  # prefetchers'
        GATHER._replace(share_of_roof=0.4),  # bandwidth has a part in it
        GATHER._replace(measured=True, memory_slots=0.4),  # it may be caches that keep it waiting
        CHASE._replace(measured=True, memory_slots=0.3),  # the pipeline says otherwise, whatever the CPI
    ],
)
def test_without_all_of_its_evidence_it_is_not_claimed(loads: Loads) -> None:
    assert latency(loads) is None


@given(
    st.floats(0.0, 500.0),
    st.floats(1.0, 500.0),
    st.floats(0.0, 1.0),
    st.none() | st.floats(0.1, 500.0),
    st.none() | st.floats(0.0, 1.0),
    st.booleans(),
)
def test_what_is_claimed_has_low_bandwidth_and_lines_that_a_core_can_wait_for(
    gbytes: float, ns: float, share: float, cpi: float | None, slots: float | None, measured: bool
) -> None:
    loads = Loads(gbytes, ns, share, cpi, slots, measured)
    found = latency(loads)
    if found is not None:
        assert share < 0.4 and ONE_AT_A_TIME[0] <= gbytes * ns / 64 <= SEVERAL[1]
        assert (slots or 0) >= 0.35 or (cpi or 0) >= 2.5
        assert measured or found[1] != "high"


def test_loads_are_of_each_thread_and_never_of_modelled_bytes() -> None:
    traffic = {"DRAM": Traffic(1.0, "simulated")}
    loads = loads_of(traffic, ROOFS, 50.0, None, 2)
    assert loads == Loads(0.5, 128.0, 0.025, 50.0, None, measured=False)
    assert loads_of({"DRAM": Traffic(1.0, "modelled")}, ROOFS, 50.0, None, 2) is None
    assert loads_of({}, ROOFS, 50.0, None, 2) is None
    assert loads_of(traffic, ROOFS._replace(latency_ns=None), 50.0, None, 2) is None
    paged = loads_of(traffic, ROOFS._replace(paged_latency_ns=190.0), 50.0, None, 2)
    assert loads is not None and paged == loads._replace(paged_latency_ns=190.0)


def test_a_layer_is_bounded_by_latency_after_its_roofs_and_before_the_slots() -> None:
    few = point(None, {"DRAM": Traffic(0.5, "simulated")}, ROOFS)
    assert bound(few, None, {"frontend": 0.5}, CHASE).name == "latency"
    assert bound(few, {"waiting": 0.6}, None, CHASE).name == "waiting"
    assert bound(point(170.0, {}, ROOFS), None, None, CHASE).name == "compute"
    assert bound(Point(None, None, None, None, None), None, {"frontend": 0.5}, CHASE._replace(cpi=1.0)).name == (
        "front end"
    )
