"""Scalene through the collector: lines of a known cost, the memory's times, and what may go wrong."""

from __future__ import annotations

import os
import signal
import textwrap
import time
from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest

from collectors.scalene.collector import ScaleneCollector
from hwprof.analysis.intervals import wilson
from hwprof.run.details import LineCostsDetail
from hwprof.run.directory import RunDirectory
from tests.support.command import TESTS_MODELS, collect, hwprof, start_hwprof
from tests.support.models.lines import COPIED_BYTES, KEPT_BYTES, NATIVE_S, SPIN_S
from tests.support.requirements import require_module

OPTIONS = (
    *("--model", "tests.support.models.lines:known", "--input-shape", "1,8", "--iterations", "3", "--threads", "1"),
    *("--passes", "measure", "--no-instrumented", "--scalene"),
)


def left_over() -> set[str]:
    return {path.name for path in Path("/tmp").glob("scalene*")}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    require_module("scalene")
    place = tmp_path_factory.mktemp("scalene")
    before = left_over()
    found = collect(place, *OPTIONS, environment=TESTS_MODELS)
    assert left_over() == before
    assert sorted(file.name for file in place.iterdir()) == ["results"], "nothing beside the run"
    return found


def detail(run: RunDirectory) -> LineCostsDetail:
    found = next(one for one in run.manifest.passes if one.name == "scalene").collectors[0].detail_as(LineCostsDetail)
    assert found is not None
    return found


@pytest.mark.alone
def test_lines_have_their_shares_of_the_time(run: RunDirectory) -> None:
    """Within the interval of so many samples, and a tenth for what Scalene counts elsewhere."""
    lines = run.read("python_line_costs").with_columns(
        share=pl.sum_horizontal(pl.col("^.*_share$").exclude("python_allocated_share"))
    )
    of = {name: lines.filter(function=f"Known.{name}")["share"].sum() for name in ("spin", "native")}
    samples = detail(run).samples
    assert samples > 100
    whole = SPIN_S + NATIVE_S
    for name, seconds in (("spin", SPIN_S), ("native", NATIVE_S)):
        low, high = wilson(seconds / whole, samples)
        assert 0.9 * low - 0.1 <= of[name] <= 1.1 * high, (of, samples)
    native = lines.filter(function="Known.native").sort("share")[-1]
    assert native["native_share"][0] > 0.9 * native["share"][0]


@pytest.mark.alone
def test_lines_have_their_memory(run: RunDirectory) -> None:
    lines = run.read("python_line_costs").filter(function="Known.forward")
    kept, copied = lines.sort("allocated_bytes")[-2:].rows(named=True)
    assert kept["peak_bytes"] == pytest.approx(KEPT_BYTES, abs=2 << 20), "a sample is a MiB"
    assert kept["allocated_bytes"] == pytest.approx(5 * KEPT_BYTES, abs=5 << 20), "in each of five iterations"
    assert copied["allocated_bytes"] == pytest.approx(5 * COPIED_BYTES, abs=5 << 20)
    copied_bytes = copied["copy_bytes_per_s"] * detail(run).elapsed_s
    assert 0.8 * 5 * COPIED_BYTES <= copied_bytes <= 2 * 5 * COPIED_BYTES, "Scalene finds half as much again"


@pytest.mark.alone
def test_its_memory_over_time_lies_in_the_pass(run: RunDirectory) -> None:
    """On CLOCK_MONOTONIC, in each of the iterations: the first, one in the middle, and the last."""
    spans = run.of_pass("spans", "scalene").filter((pl.col("kind") == "iteration") & ~pl.col("warmup")).sort("begin_ns")
    series = run.of_pass("series", "scalene").filter(name="memory/scalene").sort("time_ns")
    assert series["time_ns"][0] >= spans["begin_ns"][0] - 50_000_000
    assert series["time_ns"][-1] <= spans["end_ns"][-1] + 1_000_000_000
    for row in (0, spans.height // 2, spans.height - 1):
        begin, end = spans["begin_ns"][row], spans["end_ns"][row]
        inside = series.filter(pl.col("time_ns").is_between(begin, end))["value"]
        assert inside.len() >= 2 and inside.max() - inside.min() >= 0.8 * KEPT_BYTES  # type: ignore[operator]
    (clock,) = next(one for one in run.manifest.passes if one.name == "scalene").clocks
    assert clock.error_ns < 100_000_000


@pytest.mark.alone
def test_the_manifest_names_the_tool(run: RunDirectory) -> None:
    (tool,) = next(one for one in run.manifest.passes if one.name == "scalene").collectors[0].tools
    assert tool.name == "scalene" and tool.version and "--memory" in tool.command


@pytest.mark.alone
def test_its_own_files_are_kept_and_the_report_has_its_lines(run: RunDirectory) -> None:
    folder = run.path / "raw" / "scalene" / "scalene"
    assert (folder / detail(run).file).stat().st_size > 0
    html = detail(run).html
    assert html is not None and (folder / html).read_text().lstrip().startswith("<")
    page = hwprof("report", "--lines", str(run.path))
    assert page.returncode == 0 and "Known.native" in page.stdout
    assert "Known.native" in hwprof("report", "--layer", "0", str(run.path)).stdout
    assert pl.read_csv(run.path / "python_line_costs.csv")["modules"].cast(pl.String).eq("0").any()


FAKES = {
    "exits": "raise SystemExit(3)",
    "hangs": "import time; time.sleep(600)",
    "kills": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "stops": "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)",
    "leaves garbage": """
        import runpy, sys, types
        profiler = types.SimpleNamespace(start=lambda: None, stop=lambda: None)
        sys.modules["scalene.scalene_profiler"] = profiler
        open(sys.argv[sys.argv.index("--outfile") + 1], "wb").write(b"\\xff[" * 1000)
        at = sys.argv.index("---")
        program, sys.argv = sys.argv[at - 1], sys.argv[at - 1 : at] + sys.argv[at + 1 :]
        runpy.run_path(program, run_name="__main__")
    """,
}


@pytest.mark.parametrize("fault", FAKES)
def test_one_that_goes_wrong_leaves_the_run_whole(fault: str, tmp_path: Path) -> None:
    """A program of Scalene's name in its place."""
    package = tmp_path / "modules" / "scalene"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text(textwrap.dedent(FAKES[fault]))
    environment = {"PYTHONPATH": f"{package.parent}{os.pathsep}{TESTS_MODELS['PYTHONPATH']}"}
    before = left_over()
    done = hwprof("collect", *OPTIONS, "--scalene-limit", "12", cwd=tmp_path, environment=environment, timeout_s=120)
    run = RunDirectory.latest(tmp_path / "results")
    measured, scalene = run.manifest.passes
    assert measured.status == "completed" and "Traceback" not in done.stderr
    (collector,) = scalene.collectors
    told = {reason.partition(". Try:")[0] for reason in (scalene.reason, collector.reason) if reason}
    assert collector.state == "failed" and len(told) == 1, told
    assert "scalene" in done.stdout.lower() and run.read("python_line_costs").is_empty()
    assert hwprof("report", str(run.path)).returncode == 0
    assert left_over() == before


def test_code_that_names_files_which_are_no_python_costs_nothing(tmp_path: Path) -> None:
    """Scalene reads the sources of what it met, and would leave no profile."""
    require_module("scalene")
    options = [option.replace("lines:known", "lines:misnamed") for option in OPTIONS]
    found = collect(tmp_path, *options, environment=TESTS_MODELS)
    record = next(one for one in found.manifest.passes if one.name == "scalene")
    assert (record.status, record.collectors[0].state) == ("completed", "ran"), record.collectors[0].reason
    lines = found.read("python_line_costs")
    assert lines.filter(function="Known.spin")["samples"].sum() > 0
    assert not any("lines left out" in note.text for note in record.collectors[0].notes)


def test_where_it_is_not_installed_it_says_how_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("collectors.scalene.launching.package", lambda: None)
    availability = ScaleneCollector().availability()
    assert not availability.ok and availability.remedy == "pip install scalene"


def test_an_interrupted_one_leaves_nothing_behind(tmp_path: Path) -> None:
    require_module("scalene")
    before = left_over()
    slow = ("--model", "tests.support.models.lines:slow", "--input-shape", "1,8", "--iterations", "1", "--warmup", "1")
    options = (*slow, "--passes", "measure", "--no-instrumented", "--scalene")
    process = start_hwprof("collect", *options, cwd=tmp_path, environment=TESTS_MODELS)
    deadline_s = time.monotonic() + 120
    while not list(tmp_path.glob("results/*/raw/scalene/scalene/starts.json")):
        assert time.monotonic() < deadline_s and process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert left_over() == before
    run = RunDirectory.latest(tmp_path / "results")
    assert run.manifest.passes[0].status == "completed"
    assert not (run.path / "raw" / "scalene" / "scalene" / "tmp").exists()


def below(folder: Path) -> list[int]:
    """Processes whose command names something in the folder."""
    found = []
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if str(folder).encode() in command.read_bytes():
                found.append(int(command.parent.name))
    return found


def test_a_worker_that_has_hardly_begun_ends_with_its_supervisor(tmp_path: Path) -> None:
    """Scalene's own start takes seconds in which no code of hwprof's runs there."""
    require_module("scalene")
    process = start_hwprof("collect", *OPTIONS, cwd=tmp_path, environment=TESTS_MODELS)
    deadline_s = time.monotonic() + 120
    while not below(tmp_path / "results") or not list(tmp_path.glob("results/*/raw/scalene/order.json")):
        assert time.monotonic() < deadline_s and process.poll() is None
        time.sleep(0.005)
    process.kill()
    process.communicate(timeout=30)
    end_s = time.monotonic() + 3
    while below(tmp_path / "results"):
        assert time.monotonic() < end_s, below(tmp_path / "results")
        time.sleep(0.05)
