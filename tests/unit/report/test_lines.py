"""What a report says of lines, and where nothing is known of them."""

from __future__ import annotations

import io
from pathlib import Path

import msgspec
import pytest

from hwprof.report.document import builder, hot_lines
from hwprof.report.document.lines import LineCost, Lines
from hwprof.report.text import hot_lines as text_of_hot_lines
from hwprof.report.text import lines
from hwprof.report.text.console import make_console
from hwprof.report.text.page import Page
from hwprof.run.directory import RunDirectory
from hwprof.run.manifest import CollectorRecord
from hwprof.run.roles import Role
from tests.support import synthetic_run


@pytest.mark.parametrize(
    ("records", "reason", "remedy"),
    [
        ([], "no pass looked at lines", "hwprof collect --scalene"),
        (
            [CollectorRecord(name="scalene", state="ran", role=Role.LINES)],
            "scalene met no line of a file that it can read",
            "more --iterations",
        ),
        (
            [CollectorRecord(name="scalene", state="failed", role=Role.LINES, reason="it hung", remedy="more time")],
            "scalene: it hung",
            "more time",
        ),
    ],
)
def test_why_there_are_no_lines(records: list[CollectorRecord], reason: str, remedy: str, tmp_path: Path) -> None:
    run: RunDirectory = synthetic_run.build(tmp_path)
    run.manifest.passes[-1].collectors += records
    run.save_manifest()
    why = builder.build(RunDirectory.open(run.path)).absent["lines"]
    assert (why.reason, why.remedy) == (reason, remedy)


def test_a_run_that_ended_before_that_pass_says_so(tmp_path: Path) -> None:
    run: RunDirectory = synthetic_run.build(tmp_path)
    run.manifest.command = ["hwprof", "collect", "--scalene"]
    run.manifest.passes[-1].status = "failed"
    run.save_manifest()
    why = builder.build(RunDirectory.open(run.path)).absent["lines"]
    assert why.reason == f"pass {run.manifest.passes[-1].name} failed: none came that looks at lines"


def test_a_sampler_that_was_not_chosen_is_left_out_by_that(tmp_path: Path) -> None:
    run: RunDirectory = synthetic_run.build(tmp_path)
    run.manifest.command = ["hwprof", "collect", "--collectors", "cprofile"]
    for record in run.manifest.passes:
        record.collectors = [one for one in record.collectors if one.name != "sampler"]
    run.save_manifest()
    why = builder.build(RunDirectory.open(run.path)).absent["kernels"]
    assert (why.reason, why.remedy) == ("the sampler was left out", "collect without --collectors")


def cost(file: str, share: float, samples: int) -> LineCost:
    zero = dict.fromkeys(("python_share", "system_share", "core_utilization", "python_allocated_share"), 0.0)
    return LineCost(
        file=file, line=81, function=None, modules=[], origin="pipeline", share=share, share_low=None, share_high=None,
        native_share=share, samples=samples, allocated_bytes=0, peak_bytes=0, copy_bytes_per_s=0.0, **zero,
    )  # fmt: skip


ROWS = [cost("/lib/thread.py", 0.661, 0), cost("/net.py", 0.111, 3), cost("/a.py", 0.05, 9), cost("/b.py", 0.1, 1)]


def shown(tmp_path: Path, top: int) -> str:
    """The page of a run whose pool threads wait in ``thread.py``, where no sample is counted."""
    part = Lines(pass_="scalene", tool="Scalene 2", elapsed_s=4.1, samples=13, rows=ROWS, iterations=5)
    document = builder.build(synthetic_run.build(tmp_path))
    document = msgspec.structs.replace(document, parts={**document.parts, "lines": part})
    text = io.StringIO()
    text_of_hot_lines.show(hot_lines.select(document, top), Page(document, make_console(200, text)))
    return text.getvalue()


@pytest.mark.parametrize(("top", "rest"), [(4, "83.9%"), (2, "88.9%")])
def test_what_is_not_listed_is_told_with_its_share_and_largest_line(top: int, rest: str, tmp_path: Path) -> None:
    said = shown(tmp_path, top)
    few = "lines with fewer than 3 samples of the main thread: 76.1%, 66.1% in thread.py:81"
    assert f"not listed: {rest} of that time; {few}" in said


def test_shares_are_said_to_be_of_all_threads_time(tmp_path: Path) -> None:
    assert "share: of that time, waiting too, split over all Python threads, idle ones too" in shown(tmp_path, 4)


def test_where_all_is_listed_nothing_is_said_to_be_in_other_lines(tmp_path: Path) -> None:
    whole = [cost("/net.py", 0.6, 30), cost("/a.py", 0.4004, 20)]
    part = Lines(pass_="scalene", tool="Scalene 2", elapsed_s=4.1, samples=50, rows=whole)
    page = Page(builder.build(synthetic_run.build(tmp_path)), make_console(120, io.StringIO()))
    assert lines.notes(part, whole, page)[-1] == "not listed: 0.0% of that time"
