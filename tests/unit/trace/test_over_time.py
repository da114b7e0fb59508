"""How the machine drifted is on tracks of its own, of the whole pass."""

from __future__ import annotations

import io
from pathlib import Path

import polars as pl
import pytest

from hwprof.run.details import CoreClockDetail, as_json
from hwprof.run.directory import RunDirectory
from hwprof.run.manifest import CollectorRecord, PassRecord
from hwprof.trace.over_time import series_over_time
from hwprof.trace.writer import write_trace
from tests.support.synthetic_run import build
from tests.support.trace_decoding import events, packets

CLOCK = as_json(CoreClockDetail(series="memory/rss", probes=3, chains_apart=0.0, reference_ghz=2.5))


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return build(tmp_path, iterations=6)


def _values(trace: Path, track: str) -> list[float]:
    file = io.BytesIO(trace.read_bytes())
    named = {packet.track_descriptor.name: packet.track_descriptor.uuid for packet in packets(file)
             if packet.HasField("track_descriptor")}  # fmt: skip
    return [float(event.value) for event in events(file) if event.track == named[track] and event.value is not None]


@pytest.mark.parametrize("limit", [1, 10**6])
def test_each_measured_iteration_has_its_time_however_many_are_shown(run: RunDirectory, limit: int) -> None:
    trace = run.path / "trace.pftrace"
    assert bool(write_trace(run, trace, limit=limit).left_out) == (limit == 1)
    for record in run.completed_passes():
        timed = [one.index for one in record.iterations if not one.warmup and not one.layers_counted]
        spans = run.of_pass("spans", record.name).filter(
            (pl.col("kind") == "iteration") & pl.col("iteration").is_in(timed)
        )
        took_ms = spans.sort("begin_ns").select((pl.col("end_ns") - pl.col("begin_ns")) / 1e6).to_series()
        assert _values(trace, f"iteration time ({record.name})") == pytest.approx(took_ms.to_list())


def test_of_series_only_the_cores_frequency_is_shown_to_the_passs_end(run: RunDirectory) -> None:
    series = run.of_pass("series", "measure")
    assert series["name"].n_unique() > 1
    cut_ns = int(series["time_ns"].median())  # type: ignore[arg-type]
    early = run.until({"measure": cut_ns})
    probed = PassRecord(name="measure", main_tid=1, collectors=[CollectorRecord(name="x", state="ran", detail=CLOCK)])
    found = series_over_time(run, early, probed).collect()
    frequency = pl.col("name") == "memory/rss"
    assert found.filter(frequency).sort("time_ns").equals(series.filter(frequency).sort("time_ns"))
    assert found.filter(frequency)["time_ns"].max() >= cut_ns  # type: ignore[operator]
    assert found.filter(~frequency)["time_ns"].max() < cut_ns  # type: ignore[operator]
    assert found.filter(~frequency).height > 0
    assert series_over_time(run, early, PassRecord(name="measure")).collect().height < series.height
