"""The last lines of a collect name what is there, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from hwprof.cli.products import Shown, show_run
from tests.support.synthetic_run import build


@pytest.mark.parametrize(
    ("written", "named"),
    [
        ((), "tables (Parquet)"),
        (("layers.csv",), "tables (Parquet, CSV)"),
        (("images/bus.jpg", "trace.pftrace"), "tables (Parquet), images, trace.pftrace"),
    ],
)
def test_what_could_not_be_written_is_not_named(
    written: tuple[str, ...], named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = build(tmp_path)
    (run.path / "images").mkdir()
    for name in written:
        (run.path / name).touch()
    show_run(run, Shown("text", 3, None, 1), "")
    lines = capsys.readouterr().out.splitlines()
    last = lines[next(number for number, line in enumerate(lines) if line.startswith("kept in ")) :]
    assert last[0].endswith(f": {named}")
    assert [line.split()[1] for line in last[1:]] == [*(["open"] if "trace.pftrace" in written else []), "report"]
