"""The RAPL collector on this machine: either it measures, or it says why not and what would help."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from collectors.rapl.collector import RaplCollector
from hwprof.analysis.energy import meters_of
from hwprof.analysis.layer_energy import layer_energies
from hwprof.collector.contract import PassContext
from hwprof.run.details import EnergyDetail
from tests.support import small_tables
from tests.support.bounds import assert_every, disturbance
from tests.support.reported import fields, texts

pytestmark = pytest.mark.alone


PROFILE = """
import os, sys, time
# Every millisecond, as RAPL: 40 W, and 90 W in every second window of 30 ms; the counter wraps after 3 J.
handle = os.open(sys.argv[1], os.O_WRONLY)
begin, joules, last = float(sys.argv[2]), 0.0, float(sys.argv[2])
while True:
    now = time.monotonic()
    step = 1e-4
    while last < now:
        until = min(now, last + step)
        joules += (until - last) * (90 if int((last - begin) / 0.03) % 2 else 40)
        last = until
    os.pwrite(handle, b"%-20d" % (int(joules * 1e6) % 3_000_001), 0)
    time.sleep(max(0.0, 0.001 - (time.monotonic() - now)))
"""


def test_joules_of_windows_of_a_known_power_profile(tmp_path: Path) -> None:
    """Forty windows of 30 ms by turns of 40 and 90 W, as two layers: within their intervals, and what the writing of
    the counter was late by."""
    zone = tmp_path / "sys/class/powercap/intel-rapl:0"
    zone.mkdir(parents=True)
    (zone / "name").write_text("package-0")
    (zone / "max_energy_range_uj").write_text("3000000")
    (zone / "energy_uj").write_text("0".ljust(20))
    begin_s = time.monotonic() + 0.5
    driver = subprocess.Popen([sys.executable, "-c", PROFILE, str(zone / "energy_uj"), str(begin_s)])
    try:
        collector = RaplCollector(tmp_path)
        assert collector.availability().ok
        collector.start(PassContext("measure", 1, 1, tmp_path, {}))
        time.sleep(begin_s + 1.25 - time.monotonic())
        collected = collector.stop()
    finally:
        driver.kill()
        driver.wait()
    detail = collected.detail
    assert isinstance(detail, EnergyDetail)
    edges = [round((begin_s + 0.03 * n) * 1e9) for n in range(41)]
    rows: list[tuple[int, int | None, int, str, str, int, int]] = [
        (0, None, 0, "stage", "inference", edges[0], edges[-1])
    ]
    rows += [(1 + n, 0, 0, "layer", "ab"[n % 2], edges[n], edges[n + 1]) for n in range(40)]
    series = collected.tables["series"].with_columns(**{"pass": pl.lit("measure")})
    assert series["value"][0] == 0 and series["value"].is_sorted() and series["value"][-1] > 3 * 10
    meters = meters_of(series, {zone: ms * 1e6 for zone, ms in detail.refresh_ms.items()})
    layers = small_tables.layers([("", "Net", False), ("a", "Conv2d", True), ("b", "Conv2d", True)])
    found = layer_energies(meters, small_tables.spans(rows), layers, (0,), {})
    assert isinstance(found, pl.DataFrame)
    joules = {row["layer"]: (row["joules"], row["joules_error"]) for row in found.iter_rows(named=True)}
    late_s = 0.002  # sleeping and writing, on a machine that others use
    for name, watts in (("a", 40), ("b", 90)):
        value, error = joules[name]
        assert value == pytest.approx(watts * 0.6, abs=error + 2 * 20 * 50 * late_s / 2), name
        assert error < 0.2 * value


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
    assert isinstance(collected.detail, EnergyDetail) and collected.detail.period_ms
    still = set(fields(available.detail)["zones"]) - set(collected.detail.zones)
    assert all(any(zone in text and "stands still" in text for text in texts(collected.notes)) for zone in still)
    if not collected.detail.zones:
        assert collected.tables == {}
        return
    series = collected.tables["series"]
    assert set(series["unit"]) == {"J"}
    for zone in collected.detail.zones:
        readings = series.filter(name=f"energy/{zone}")
        assert_every(readings["time_ns"].to_list(), collected.detail.period_ms / 1e3, disturbed)
        joules = readings["value"]
        assert joules[0] == 0 and joules.is_sorted()
    packages = series.filter(series["name"].str.starts_with("energy/package"))
    assert packages["value"].max() > 0.01  # type: ignore[operator]  # a busy core takes more than 30 mW
