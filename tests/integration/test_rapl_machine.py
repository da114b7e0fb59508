"""The RAPL collector on this machine: either it measures, or it says why not and what would help."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from collectors.rapl.collector import PERIOD_S, RaplCollector
from hwprof.collector.contract import PassContext
from tests.support.bounds import assert_every, disturbance
from tests.support.reported import fields

pytestmark = pytest.mark.alone


def test_energy_is_measured_or_the_reason_is_given() -> None:
    collector = RaplCollector()
    available = collector.availability()
    if not available.ok:
        assert available.reason
        assert available.remedy or "only Intel and AMD" in available.reason
        return
    with disturbance() as disturbed:
        collector.start(PassContext("measure", 1, 1, Path("/tmp"), {}))
        end = time.monotonic() + 0.3
        while time.monotonic() < end:
            pass
    collected = collector.stop()
    series = collected.tables["series"]
    assert set(series["unit"]) == {"J"}
    for zone in fields(available.detail)["zones"]:
        readings = series.filter(name=f"energy/{zone}")
        assert_every(readings["time_ns"].to_list(), PERIOD_S, disturbed)
        joules = readings["value"]
        assert joules[0] == 0 and joules.is_sorted()
    packages = series.filter(series["name"].str.starts_with("energy/package"))
    assert packages["value"].max() > 0.01  # type: ignore[operator]  # a busy core takes more than 30 mW
