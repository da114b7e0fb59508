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
