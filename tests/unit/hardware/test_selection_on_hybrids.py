"""What becomes of the names that a user asks for where there are two kinds of core."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from hwprof.hardware.pmu import Code
from tests.support.asking import ALDER_LAKE, Asking, hardware

PERFORMANCE_CORES, EFFICIENCY_CORES = range(16), range(16, 20)


@pytest.fixture
def alder_lake(tmp_path: Path) -> Asking:
    return Asking(ALDER_LAKE, tmp_path)


def test_on_hybrids_cache_events_name_the_kind_of_core(alder_lake: Asking) -> None:
    codes = {event.name: event.code for event in hardware(alder_lake("LLC-load-misses")).values()}
    types = {name: code.config >> 32 for name, code in codes.items()}
    assert types == {"cpu_core/llc-load-misses/": 4, "cpu_atom/llc-load-misses/": 10}
    assert {code.config & 0xFFFF_FFFF for code in codes.values()} == {0x10002}


def test_on_hybrids_software_events_name_no_kind_of_core(alder_lake: Asking) -> None:
    codes = [event.code for event in alder_lake().events if event.kind == "software"]
    assert codes and {(code.type, code.config >> 32) for code in codes} == {(1, 0)}


def test_on_hybrids_each_kind_of_core_counts_its_own(alder_lake: Asking) -> None:
    found = alder_lake("ipc")
    assert list(hardware(found)) == [
        "cpu_core/instructions/",
        "cpu_core/cycles/",
        "cpu_atom/instructions/",
        "cpu_atom/cycles/",
    ]
    assert hardware(found)["cpu_core/cycles/"].code == Code(0, 4 << 32)  # the PMU's type in the upper half
    assert hardware(found)["cpu_atom/instructions/"].code == Code(0, 10 << 32 | 1)
    assert {event.pmu for event in hardware(found).values()} == {"cpu_core", "cpu_atom"}
    (metric,) = found.metrics
    counts = {"cpu_core/cycles/": 30, "cpu_atom/cycles/": 10, "cpu_core/instructions/": 60, "cpu_atom/instructions/": 4}
    assert pl.DataFrame([counts]).select(pl.sql_expr(metric.formula)).item() == pytest.approx(64 / 40)
    assert found.bundles == (tuple(hardware(found)),)


def test_kept_to_one_kind_of_core_events_have_plain_names(alder_lake: Asking) -> None:
    found = alder_lake("ipc", on=EFFICIENCY_CORES)
    assert {name: event.code for name, event in hardware(found).items()} == {
        "cycles": Code(0, 10 << 32),
        "instructions": Code(0, 10 << 32 | 1),
    }
    assert found.metrics[0].formula == '"instructions" / "cycles"'


def test_a_metric_that_one_kind_cannot_tell_is_dropped_with_the_cores_to_keep_to(alder_lake: Asking) -> None:
    found = alder_lake("counted_gflops")
    assert found.metrics == ()
    assert hardware(found) == {}
    why = found.dropped["counted_gflops"]
    assert "Gracemont" in why.reason
    assert "taskset -c 0-15 " in (why.remedy or "")
    assert [metric.name for metric in alder_lake("counted_gflops", on=PERFORMANCE_CORES).metrics] == ["counted_gflops"]


def test_sockets_are_the_same_for_every_kind_of_core(alder_lake: Asking) -> None:
    found = alder_lake("uncore")
    assert len(found.metrics) >= 2
    assert not any("cpu_core" in metric.formula for metric in found.metrics)


def test_an_event_of_one_kind_is_counted_there(alder_lake: Asking) -> None:
    assert list(hardware(alder_lake("slots"))) == ["cpu_core/slots/"]


@pytest.mark.parametrize(
    ("item", "names"),
    [
        ("cpu_core/cycles/u", ["cpu_core/cycles/u"]),
        ("cycles:u", ["cpu_core/cycles/u", "cpu_atom/cycles/u"]),
        ("r20c7:k", ["cpu_core/r20c7/k", "cpu_atom/r20c7/k"]),
        ("cpu/event=0xc0/", ["cpu_core/event=0xc0/", "cpu_atom/event=0xc0/"]),
        ("cpu_atom/event=0xc0,name=x/", ["cpu_atom/x/"]),
    ],
)
def test_names_on_hybrids_are_perfs_and_can_be_asked_for_again(alder_lake: Asking, item: str, names: list[str]) -> None:
    found = hardware(alder_lake(item))
    assert list(found) == names
    if "name=" not in item:
        assert hardware(alder_lake(*names)).keys() == found.keys()


def test_the_share_of_efficiency_cores_is_that_of_the_cycles(alder_lake: Asking) -> None:
    (metric,) = alder_lake("efficiency_core_share").metrics
    counts = pl.DataFrame([{"cpu_core/cycles/": 30, "cpu_atom/cycles/": 10}])
    assert counts.select(pl.sql_expr(metric.formula)).item() == pytest.approx(25)
    alone = alder_lake("efficiency_core_share", on=PERFORMANCE_CORES)
    assert alone.metrics == () and "one kind" in alone.dropped["efficiency_core_share"].reason
