"""Findings as slices: over what they are about, nested, with all that a reader needs."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwprof.analysis.findings.facts import Finding
from hwprof.run.directory import RunDirectory
from hwprof.trace.findings import write_findings
from hwprof.trace.packets import EventType
from hwprof.trace.tracks import Tracks
from tests.support import synthetic_run
from tests.support import trace_decoding as decoding
from tests.support.synthetic_model import MODULES, is_leaf

OWNERS = ["(root) (own)", "model.1 (own)", "unattributed", *(one.path for one in MODULES)]
CONV = Finding(
    "layout_changes", "layouts", "8% of the time", "copies", "channels_last", 0.0, 0.123456, ("model.0.conv", "model.2")
)
STAGE = Finding("long_stage", "NMS", "30%", "slow", "--conf", 0.1, 0.3, stage="nms", gain_of="iteration")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return synthetic_run.build(tmp_path_factory.mktemp("run"))


def written(run: RunDirectory, *findings: Finding) -> tuple[int, list[decoding.Event], dict[int, str]]:
    """How many slices, the events, and the tracks' names by number."""
    record = run.manifest.passes[1]
    file, encoder = decoding.writer()
    tracks = Tracks(record, 1, "x", run.of_pass("threads", record.name), encoder)
    count = write_findings(findings, run.scan_pass("spans", record.name), run.read("layers"), tracks)
    names = {one.track_descriptor.uuid: one.track_descriptor.name for one in decoding.packets(file)}
    return count, decoding.events(file), names


def test_a_finding_stands_over_each_layer_in_each_measured_iteration(run: RunDirectory) -> None:
    count, events, names = written(run, CONV, STAGE)
    begins = [event for event in events if event.type == EventType.BEGIN]
    spans = run.read("spans").filter(~pl.col("warmup"), pl.col("pass") == "trace", pl.col("iteration") > 0)
    for one, layers in ((CONV, ["model.0.conv", "model.2"]), (STAGE, ["nms"])):
        found = [event for event in begins if event.name == one.title]
        assert [event.time_ns for event in found] == spans.filter(pl.col("path").is_in(layers))["begin_ns"].to_list()
        assert {event.category for event in found} == {"finding"}
    assert count == len(begins) == 3 * spans["iteration"].n_unique()
    assert {names[event.track] for event in begins} == {
        "finding 1: layout changes (trace)",
        "finding 2: long stage (trace)",
    }


def test_its_arguments_say_what_to_do_and_what_could_be_won(run: RunDirectory) -> None:
    first, *_ = written(run, CONV)[1]
    assert first.annotations == {
        "evidence": "8% of the time", "meaning": "copies", "remedy": "channels_last", "gain_of": "inference",
        "layer": "model.0.conv", "layers": "model.0.conv, model.2", "rule": "layout_changes",
        "gain_low": 0.0, "gain_high": 0.1235, "iteration": 1,
    }  # fmt: skip
    first, *_ = written(run, STAGE)[1]
    assert not {"layer", "layers"} & first.annotations.keys()
    assert (first.annotations["gain_of"], first.annotations["gain_low"]) == ("iteration", 0.1)


def test_without_findings_there_is_no_track(run: RunDirectory) -> None:
    assert written(run)[:2] == (0, [])
    assert "findings" not in written(run)[2].values()
    nowhere = CONV._replace(layers=("elsewhere",))
    assert written(run, nowhere)[:2] == (0, [])


made_up = st.builds(
    CONV._replace,
    layers=st.lists(st.sampled_from(OWNERS), max_size=6).map(tuple),
    stage=st.none() | st.sampled_from(["nms", "inference", "no such stage"]),
    gain_of=st.sampled_from(["inference", "iteration"]),
    rule=st.sampled_from(["dispatch", "team_waits"]),
)


@settings(deadline=None, max_examples=50)
@given(findings=st.lists(made_up, max_size=4))
def test_slices_nest_on_every_track(run: RunDirectory, findings: list[Finding]) -> None:
    """Whatever layers a finding names, blocks and layers of theirs, and what is unattributed around these: each end
    closes the slice opened last, no slice is lost, and none is on a track of another finding."""
    count, events, names = written(run, *findings)
    opened: dict[int, list[Any]] = defaultdict(list)
    lengths = 0
    for event in events:
        if event.type == EventType.BEGIN:
            opened[event.track].append(event)
        else:
            begin = opened[event.track].pop()
            assert begin.time_ns <= event.time_ns
            lengths += 1
    assert lengths == count and not any(opened.values())
    starts = {names[event.track].partition(":")[0] for event in events}
    assert starts <= {f"finding {number}" for number in range(1, len(findings) + 1)}


def test_a_block_lies_around_its_layers(run: RunDirectory) -> None:
    block = CONV._replace(layers=("model.1", "model.1.cv1.conv"))
    events = written(run, block)[1]
    kinds = [event.type for event in events[:4]]
    assert kinds == [EventType.BEGIN, EventType.BEGIN, EventType.END, EventType.END]
    assert [event.annotations["layer"] for event in events[:2]] == ["model.1", "model.1.cv1.conv"]
    assert not is_leaf("model.1")
