"""What frida leaves behind is taken away, also where it has taken the last descriptor."""

from __future__ import annotations

import os
import resource
import socket
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from collectors.instrumented.frida_helper import SOCKET_PATH_BYTES, helper_taken_away

ROOM = 24


@pytest.fixture(autouse=True)
def temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    return folder


def test_they_lie_where_they_are_wanted(tmp_path: Path, temporary_files: Path) -> None:
    """What a process that is killed leaves lies in the run's folder, not among temporary files."""
    with helper_taken_away(tmp_path):
        (place,) = set(tmp_path.iterdir()) - {temporary_files}
        assert os.environ["TMPDIR"] == os.environ["XDG_CONFIG_HOME"] == str(place)
        assert not list(temporary_files.iterdir())
    assert os.environ["TMPDIR"] == str(temporary_files)
    assert list(tmp_path.iterdir()) == [temporary_files]


def test_a_socket_whose_path_was_cut_off_goes_too(tmp_path: Path) -> None:
    """It lies beside the folder, where frida does not look for it again; nobody could copy the run (ENXIO)."""
    place = tmp_path / ("x" * (SOCKET_PATH_BYTES - len(str(tmp_path)) - 1 - len("/frida-x")))
    place.mkdir()
    with socket.socket(socket.AF_UNIX) as helper, helper_taken_away(place):
        (folder,) = place.iterdir()
        helper.bind(str(folder / "frida-0123456789")[:SOCKET_PATH_BYTES])
        assert len(list(place.iterdir())) == 2
    assert not list(place.iterdir())


def test_where_programs_may_not_run_they_lie_among_temporary_files(
    tmp_path: Path, temporary_files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = os.statvfs(tmp_path).f_flag | os.ST_NOEXEC
    monkeypatch.setattr("os.statvfs", lambda _: SimpleNamespace(f_flag=flags))
    with helper_taken_away(tmp_path):
        assert len(list(temporary_files.iterdir())) == 1
    assert list(tmp_path.iterdir()) == [temporary_files]


def test_its_files_go_though_no_descriptor_is_left(temporary_files: Path) -> None:
    usual = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken: list[int] = []
    highest = max(int(name.name) for name in Path("/proc/self/fd").iterdir())
    below = [os.dup(0)]
    while below[-1] <= highest:  # what other tests left open lies above free ones
        below.append(os.dup(0))
    lowest = below[-1]
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + ROOM, usual[1]))
        with helper_taken_away():
            (place,) = temporary_files.iterdir()
            assert os.environ["TMPDIR"] == str(place)
            (place / "frida-0" / "helper").mkdir(parents=True)
            (place / "frida-0" / "helper" / "program").write_bytes(b"")
            with suppress(OSError):
                while True:
                    taken.append(os.dup(lowest))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, usual)
        for descriptor in (*below, *taken):
            os.close(descriptor)
    assert len(taken) < ROOM and not list(temporary_files.iterdir())
    assert os.environ["TMPDIR"] == str(temporary_files)
