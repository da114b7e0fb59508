"""Where a machine of a cluster works."""

from __future__ import annotations

import os
from pathlib import Path

from hwprof.bench.cluster_machine import PREFIX, files_in, scratch
from hwprof.bench.samples import LARGEST_BYTES
from hwprof.bench.store import LOCK_FILE


def test_what_a_killed_machine_has_left_goes(tmp_path: Path) -> None:
    with scratch(tmp_path) as mine:
        left = tmp_path / f"{PREFIX}left"
        left.mkdir()
        (left / LOCK_FILE).touch()
        made = tmp_path / f"{PREFIX}being-made"
        made.mkdir()
        with scratch(tmp_path) as other:
            assert {*tmp_path.iterdir()} == {mine, other, made}
    assert [*tmp_path.iterdir()] == [made]


def test_what_a_case_left_that_is_too_large_is_told_in_its_log(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("a word")
    for name in ("pyperf.json", "samples-1.jsonl"):
        (tmp_path / name).touch()
        os.truncate(tmp_path / name, LARGEST_BYTES + 1)
    (tmp_path / LOCK_FILE).touch()
    (tmp_path / "link").symlink_to("/etc/passwd")
    files = files_in(tmp_path)
    assert files.keys() == {"log.txt", "samples-1.jsonl"}
    assert files["log.txt"].decode() == f"a word\nhwprof: pyperf.json has {LARGEST_BYTES + 1:,} bytes: left out\n"
