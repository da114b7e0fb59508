"""cProfile through the collector: exact calls, known times, files for pstats, and models that profile themselves."""

from __future__ import annotations

import pstats
from pathlib import Path

import polars as pl
import pytest

from collectors.cprofile.collector import ITERATIONS
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
    assert page.returncode == 0 and f"1/{DEEP}" in page.stdout and "as long" in page.stdout
    calls = pl.read_csv(run.path / "python_calls.csv").filter(function="called")
    assert calls["calls"].to_list() == [CALLED] and calls["origin"].to_list() == ["pipeline"]


def test_it_can_be_asked_for_by_its_name_alone(tmp_path: Path) -> None:
    run = collected(tmp_path, "known", "--collectors", "cprofile")
    assert run.read("python_calls").height and not run.read("samples").height


@pytest.mark.parametrize(("model", "told"), [("profiled", "profiler of its own"), ("always_profiled", "profiler")])
def test_a_model_that_profiles_itself_goes_on_to_and_is_told(model: str, told: str, tmp_path: Path) -> None:
    run = collected(tmp_path, model)
    record = next(one for one in run.manifest.passes if one.name == "trace").collectors
    cprofile = next(one for one in record if one.name == "cprofile")
    said = [cprofile.reason or "", *(str(note) for note in cprofile.notes)]
    assert any(told in text for text in said), said
