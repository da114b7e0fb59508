"""Where a machine of a cluster works."""

from __future__ import annotations

from pathlib import Path

from hwprof.bench.cluster_machine import PREFIX, scratch
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
