"""What frida leaves behind is taken away, also where it has taken the last descriptor."""

from __future__ import annotations

import os
import resource
from contextlib import suppress
from pathlib import Path

import pytest

from collectors.instrumented.frida_helper import helper_taken_away

ROOM = 24


def test_its_files_go_though_no_descriptor_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    usual = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken: list[int] = []
    lowest = os.dup(0)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + ROOM, usual[1]))
        with helper_taken_away():
            (place,) = tmp_path.iterdir()
            assert os.environ["TMPDIR"] == str(place)
            (place / "frida-0" / "helper").mkdir(parents=True)
            (place / "frida-0" / "helper" / "program").write_bytes(b"")
            with suppress(OSError):
                while True:
                    taken.append(os.dup(lowest))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, usual)
        for descriptor in (lowest, *taken):
            os.close(descriptor)
    assert len(taken) < ROOM and not list(tmp_path.iterdir())
    assert os.environ["TMPDIR"] == str(tmp_path)
