"""What a report says where nothing is known of lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from hwprof.report.document import builder
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
