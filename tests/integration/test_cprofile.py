"""cProfile through the collector: exact calls, known times, files for pstats, and models that profile themselves."""

from __future__ import annotations

import os
import pstats
import threading
import time
from pathlib import Path

import polars as pl
import pytest

from collectors.cprofile.collector import ITERATIONS, CProfileCollector
from hwprof.collector.contract import PassContext
from hwprof.run.directory import RunDirectory
from tests.support.command import TESTS_MODELS, collect, hwprof
from tests.support.models.calls import CALLED, DEEP, SPIN_S, YIELDED

OPTIONS = ("--input-shape", "1,8", "--iterations", "3", "--passes", "measure,trace", "--no-instrumented")


def collected(place: Path, model: str, *more: str) -> RunDirectory:
    return collect(
        place, "--model", f"tests.support.models.calls:{model}", *OPTIONS, *(more or ("--cprofile",)),
        environment=TESTS_MODELS,
    )  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return collected(tmp_path_factory.mktemp("calls"), "known")


def test_calls_are_exact_and_self_times_are_those_of_the_work(run: RunDirectory) -> None:
    rows = {row["function"]: row for row in run.read("python_calls").filter(stage="inference").iter_rows(named=True)}
    expected = {"spin": (1, 1), "called": (CALLED, CALLED), "deep": (DEEP, 1), "raises": (1, 1)}
    for name, (calls, primitive) in expected.items():
        found = rows[name]["calls"], rows[name]["primitive_calls"]
        assert found == (ITERATIONS * calls, ITERATIONS * primitive), name
    assert rows["gives"]["calls"] == ITERATIONS * (YIELDED + 1), "a generator is entered once a value, and at its end"
    spin = rows["spin"]
    assert spin["cumulative_ns"] >= ITERATIONS * SPIN_S * 1e9
    assert rows["Known.forward"]["cumulative_ns"] >= spin["cumulative_ns"] >= spin["self_ns"] > 0
    assert rows["Known.forward"]["self_ns"] <= rows["Known.forward"]["cumulative_ns"] - spin["cumulative_ns"]


STAGES = {"load": (3, 0.02), "inference": (1, 0.06), "postprocess": (2, 0.03), "nms": (4, 0.01)}
"""How often ``busy`` is called in each, and for how many seconds."""


def busy(seconds: float) -> None:
    end_s = time.perf_counter() + seconds
    while time.perf_counter() < end_s:
        pass


def test_stages_have_the_calls_and_the_time_that_was_spent_in_them(tmp_path: Path) -> None:
    """No less than was spent, and no more than a clock outside saw pass; another thread's calls are nobody's."""
    profiled, passed_s = CProfileCollector(), dict.fromkeys(STAGES, 0.0)
    profiled.start(PassContext("trace", os.getpid(), os.getpid(), tmp_path, {}))

    def stage(name: str) -> None:
        calls, seconds = STAGES[name]
        with profiled.own_stage(name):
            for _ in range(calls):
                began_s = time.perf_counter()
                busy(seconds)
                passed_s[name] += time.perf_counter() - began_s
            if name == "postprocess":
                stage("nms")

    for _ in range(ITERATIONS):
        with profiled.own_iteration():
            for name in ("load", "inference", "postprocess"):
                stage(name)
                other = threading.Thread(target=busy, args=(0.001,))
                other.start()
                other.join()
    collected = profiled.stop()
    rows = collected.tables["python_calls"].filter(function="busy")
    assert rows["stage"].to_list() == list(STAGES) and not collected.notes
    for row in rows.iter_rows(named=True):
        calls, seconds = STAGES[row["stage"]]
        assert row["calls"] == row["primitive_calls"] == ITERATIONS * calls
        assert ITERATIONS * calls * seconds <= row["cumulative_ns"] / 1e9 <= passed_s[row["stage"]], row
        assert 0 < row["self_ns"] < row["cumulative_ns"], "perf_counter's is not its own"
    times = pstats.Stats(str(tmp_path / "all-stages.prof")).stats  # type: ignore[attr-defined]
    (whole,) = [value[3] for (_, _, name), value in times.items() if name == "busy"]
    assert whole == pytest.approx(sum(rows["cumulative_ns"].to_list()) / 1e9)


def test_its_files_are_those_of_pstats(run: RunDirectory) -> None:
    folder = run.path / "raw" / "trace" / "cprofile"
    assert {file.name for file in folder.iterdir()} == {"inference.prof", "all-stages.prof"}
    stats = pstats.Stats(str(folder / "all-stages.prof")).stats  # type: ignore[attr-defined]
    (deep,) = [value for (_, _, name), value in stats.items() if name == "deep"]
    assert deep[:2] == (ITERATIONS, ITERATIONS * DEEP)


def test_nobody_else_s_figures_are_of_these_iterations(run: RunDirectory) -> None:
    record = next(one for one in run.manifest.passes if one.name == "trace")
    alone = [one for one in record.iterations if one.alone_for == "cprofile"]
    assert len(alone) == ITERATIONS and all(one.warmup for one in alone)
    page = hwprof("report", "--cprofile", str(run.path))
    assert page.returncode == 0 and f"1/{DEEP}" in page.stdout
    assert "as long" in page.stdout or "how much longer they took is not known" in page.stdout
    calls = pl.read_csv(run.path / "python_calls.csv").filter(function="called")
    assert calls["calls"].to_list() == [CALLED] and calls["origin"].to_list() == ["pipeline"]


def test_what_hwprof_s_hooks_call_is_not_the_model_s(run: RunDirectory) -> None:
    """The clock is read at both edges of each layer, by hwprof alone."""
    clock = run.read("python_calls").filter(function="<built-in method time.monotonic_ns>")
    assert clock["by_profiler"].to_list() == [True] and clock["calls"][0] >= 2 * ITERATIONS
    page = hwprof("report", "--cprofile", "--top", "1000", str(run.path)).stdout
    assert "monotonic_ns" not in page and "thread_time" in page


def test_it_can_be_asked_for_by_its_name_alone(tmp_path: Path) -> None:
    run = collected(tmp_path, "known", "--collectors", "cprofile")
    assert run.read("python_calls").height and not run.read("samples").height


@pytest.mark.parametrize(("model", "state"), [("profiled", "ran"), ("cprofiled", "ran"), ("always_profiled", "failed")])
def test_a_model_that_profiles_itself_goes_on_to_and_is_told(model: str, state: str, tmp_path: Path) -> None:
    """The models raise where somebody takes their profiler's place."""
    run = collected(tmp_path, model)
    assert {one.status for one in run.manifest.passes} == {"completed"}
    found = next(one for one in run.manifest.passes if one.name == "trace").collectors
    cprofile = next(one for one in found if one.name == "cprofile")
    assert cprofile.state == state
    (said,) = [*map(str, cprofile.notes), *([cprofile.reason] if cprofile.reason else [])]
    assert "another profiler is active" in said
    page = hwprof("report", "--cprofile", str(run.path))
    assert page.returncode == (state == "failed") and "another profiler is active" in page.stderr + page.stdout
