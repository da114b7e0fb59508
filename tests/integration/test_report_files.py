"""The report's files, made by a process beside the one that asks for them.

That process may run another copy of hwprof (of an installed one, the tests import the one they lie beside), whose
documents this one makes anew: whether one was written is asked of the folder, not of ``kept.load``.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import time
from pathlib import Path

import msgspec
import pytest

from hwprof import processes
from hwprof.cli.report import show
from hwprof.errors import HwprofError
from hwprof.report import files as files_of_report
from hwprof.report.files import FilesBeside, write_files
from hwprof.report.json.kept import FILE
from hwprof.trace import analysed
from hwprof.trace.writer import write_trace
from tests.support import synthetic_samples, synthetic_variants
from tests.support.machine_peaks import FOUND
from tests.support.processes import alive, children_of
from tests.support.synthetic_run import build


def test_they_are_the_same_as_without_a_process(tmp_path: Path) -> None:
    here, beside = build(tmp_path / "here", iterations=4), build(tmp_path / "beside", iterations=4)
    write_files(here)
    with FilesBeside(beside) as files:
        files.begin()
        files.wait()
    names = sorted(file.name for file in here.path.glob("*.csv"))
    assert "layers.csv" in names
    for name in names:
        assert (beside.path / name).read_bytes() == (here.path / name).read_bytes(), name
    documents = [msgspec.json.decode((run.path / FILE).read_bytes())["document"] for run in (here, beside)]
    for document in documents:
        del document["run"]["path"]
    assert documents[0] == documents[1]


def test_they_are_the_same_where_it_looked_ahead(tmp_path: Path) -> None:
    """While the instrumented pass had still to come."""
    whole, run = (synthetic_variants.kernels_under_roofs(tmp_path / name) for name in ("whole", "run"))
    write_files(whole)
    every = run.manifest.passes
    run.manifest.passes = every[:-1]
    run.save_manifest()
    with FilesBeside(run) as files:
        files.look_ahead()
        time.sleep(2)  # some of it is done; whatever is not, is done later
        run.manifest.passes = every
        run.save_manifest()
        files.begin()
        files.wait()
    for name in sorted(file.name for file in whole.path.glob("*.csv")):
        assert (run.path / name).read_bytes() == (whole.path / name).read_bytes(), name


def test_one_that_ended_while_it_looked_ahead_is_replaced(tmp_path: Path) -> None:
    run = build(tmp_path)
    with FilesBeside(run) as files:
        files.look_ahead()
        (writer,) = children_of(os.getpid())
        os.kill(writer, signal.SIGKILL)
        deadline_s = time.monotonic() + 10
        while alive(writer) and time.monotonic() < deadline_s:
            time.sleep(0.01)
        files.look_ahead()
        files.begin()
        facts = files.facts()
        files.wait()
    assert facts is not None and facts.failure is None
    assert (run.path / FILE).exists() and (run.path / "layers.csv").exists()


def test_one_that_says_much_of_errors_is_heard_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a library does that is told to be verbose: more than a pipe holds."""
    talks = (
        "import sys; sys.stdin.buffer.read(1); sys.stderr.write('x' * 1_000_000 + chr(10) + 'the last line');"
        "sys.stderr.flush(); sys.stdout.buffer.write((0).to_bytes(8)); sys.exit(1)"
    )
    monkeypatch.setattr(processes, "command", lambda *_: [sys.executable, "-c", talks])
    with FilesBeside(build(tmp_path)) as files:
        begin_s = time.monotonic()
        files.begin()
        assert files.facts() is None
        with pytest.raises(HwprofError, match="the last line"):
            files.wait()
    assert time.monotonic() - begin_s < 30, "a pipe that nobody reads stands still for a minute"


def test_a_report_writes_the_files_that_are_missing(tmp_path: Path) -> None:
    """Of a run whose document was kept before any was written, or that was ended while some were."""
    run = build(tmp_path)
    write_files(run)
    whole = {file.name: file.read_bytes() for file in run.path.glob("*.csv")}
    for lost in (["layers.csv", "stages.csv"], list(whole)):
        for name in lost:
            (run.path / name).unlink()
        if len(lost) < len(whole):
            (run.path / FILE).unlink()
        with contextlib.redirect_stdout(io.StringIO()):
            show(run, complete=True)
        assert {file.name: file.read_bytes() for file in run.path.glob("*.csv")} == whole


def test_it_says_what_the_trace_has_of_its_analysis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the run is analysed once: the trace is the same, and no table was read for it in this process."""
    run = build(tmp_path, iterations=4)
    synthetic_samples.add(run)
    run.manifest.peaks = FOUND
    run.save_manifest()
    write_trace(run, tmp_path / "alone.pftrace")
    with FilesBeside(run) as files:
        files.begin()
        facts = files.facts()
        assert facts is not None and facts.failure is None and facts.rooflines and facts.budgets
        monkeypatch.setattr(analysed, "RunAnalysis", None)
        write_trace(run, tmp_path / "told.pftrace", known=lambda: facts)
        files.wait()
    assert (tmp_path / "told.pftrace").read_bytes() == (tmp_path / "alone.pftrace").read_bytes()
    assert (run.path / FILE).exists()


@pytest.mark.parametrize("damage", [True, False])
def test_one_that_comes_to_no_analysis_says_so_and_why(
    tmp_path: Path, damage: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = build(tmp_path)
    if damage:
        (run.path / "run.json").write_bytes(b"{")
    with FilesBeside(run) as files:
        files.prepare()
        (writer,) = children_of(os.getpid())
        os.kill(writer, signal.SIGSTOP)
        files.begin()
        os.kill(writer, signal.SIGCONT if damage else signal.SIGKILL)
        facts = files.facts()
        if damage:
            assert facts is None
        else:  # as when memory runs out: nobody tries the same again beside it
            assert facts is not None and "ended by SIGKILL" in str(facts.failure)
            monkeypatch.setattr(analysed, "RunAnalysis", None)
            (note,) = write_trace(run, tmp_path / "trace.pftrace", known=lambda: facts).notes
            assert "no time budgets, bounds and findings: the process that analysed the run was ended" in note
        with pytest.raises(HwprofError, match=r"run\.json" if damage else "SIGKILL"):
            files.wait()


def test_an_interpreter_that_is_told_to_stay_ends_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = build(tmp_path)
    monkeypatch.setenv("PYTHONINSPECT", "1")
    with FilesBeside(run) as files:
        files.begin()
        files.wait()
    assert (run.path / FILE).exists()


def test_its_failure_is_this_process_s_in_one_line(tmp_path: Path) -> None:
    run = build(tmp_path)
    (run.path / "spans.parquet").write_bytes(b"PAR1 and nothing more")
    with pytest.raises(HwprofError) as caught, FilesBeside(run) as files:
        files.begin()
        files.wait()
    assert "\n" not in str(caught.value)
    assert "spans.parquet of this run is damaged" in str(caught.value)


def test_nothing_is_left_running_when_the_other_work_fails(tmp_path: Path) -> None:
    run = build(tmp_path)
    with pytest.raises(KeyError), FilesBeside(run) as files:
        files.begin()
        raise KeyError("the trace")
    assert not (run.path / FILE).exists()


def test_one_that_somebody_has_stopped_is_not_waited_for(tmp_path: Path) -> None:
    run = build(tmp_path)
    with FilesBeside(run) as files:
        files.prepare()
        (writer,) = children_of(os.getpid())
        os.kill(writer, signal.SIGSTOP)
        files.begin()
        with pytest.raises(HwprofError, match="stopped"):
            files.wait()
    assert not alive(writer)


def test_one_that_does_nothing_is_not_waited_for_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits for threads that it could not start: here, it only sleeps."""
    monkeypatch.setattr(files_of_report, "STANDSTILL_S", 2)
    monkeypatch.setattr(processes, "command", lambda *_: [sys.executable, "-c", "import time; time.sleep(60)"])
    with FilesBeside(build(tmp_path)) as files:
        files.prepare()
        (writer,) = children_of(os.getpid())
        begin_s = time.monotonic()
        files.begin()
        with pytest.raises(HwprofError, match=r"done nothing for 2 s\. Try: .*ulimit -u.*hwprof report"):
            files.wait()
    assert not alive(writer)
    assert time.monotonic() - begin_s >= 2


def test_it_writes_nothing_before_it_is_told_to(tmp_path: Path) -> None:
    run = build(tmp_path)
    with FilesBeside(run) as files:
        files.prepare()
        files.prepare()
        assert not (run.path / FILE).exists()
    assert not (run.path / FILE).exists() and not list(run.path.glob("*.csv"))


def test_a_report_writes_the_files_of_a_run_whose_process_was_killed(tmp_path: Path) -> None:
    run = build(tmp_path)
    with FilesBeside(run) as files:
        files.prepare()
        (writer,) = children_of(os.getpid())
        os.kill(writer, signal.SIGSTOP)
        files.begin()
        os.kill(writer, signal.SIGKILL)
        with pytest.raises(HwprofError, match="SIGKILL, as the kernel does when memory runs out") as caught:
            files.wait()
    assert caught.value.remedy == "hwprof report"
    assert not list(run.path.glob("*.csv"))
    with contextlib.redirect_stdout(io.StringIO()):
        show(run, complete=True)
    written = {file.name: file.read_bytes() for file in run.path.glob("*.csv")}
    assert "layers.csv" in written
    write_files(run)
    assert {name: (run.path / name).read_bytes() for name in written} == written


def test_a_report_can_be_shown_when_the_document_is_there(tmp_path: Path) -> None:
    run = build(tmp_path)
    with FilesBeside(run) as files:
        files.begin()
        files.wait_for_document()
        assert (run.path / FILE).exists()
        files.wait()
        assert (run.path / "layers.csv").exists()
        files.end()


def test_tables_that_cannot_be_written_are_told_behind_a_document_that_could(tmp_path: Path) -> None:
    run = build(tmp_path)
    (run.path / "layers.csv").mkdir()
    with FilesBeside(run) as files:
        files.begin()
        files.wait_for_document()
        assert (run.path / FILE).exists()
        with pytest.raises(HwprofError, match="cannot write to"):
            files.wait()
