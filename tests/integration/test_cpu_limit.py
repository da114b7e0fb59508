"""A run in a control group that gets little processor time says so."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep

import pytest

from hwprof.hardware.cgroup import cpu_limit
from hwprof.run.directory import RunDirectory

FIRST, SECOND = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")


@pytest.fixture
def group() -> Iterator[Path]:
    """An empty one."""
    if cpu_limit() is not None:
        pytest.skip("this process has a CPU limit already")
    folder = (FIRST if FIRST.is_dir() else SECOND) / f"hwprof-test-{os.getpid()}"
    try:
        folder.mkdir()
        if not (folder / "cpu.cfs_quota_us").exists() and not (folder / "cpu.max").exists():
            raise OSError("they have no limits of processor time")
    except OSError as error:
        with suppress(OSError):
            folder.rmdir()
        pytest.skip(f"control groups cannot be made here: {error}")
    yield folder
    deadline = monotonic() + 10
    while (folder / "cgroup.procs").read_text() and monotonic() < deadline:
        sleep(0.05)
    folder.rmdir()


def _in(group: Path, processors: float, *command: str, cwd: Path) -> str:
    """What the command prints in the group, which gets so many processors."""
    for name, text in (("cpu.cfs_period_us", "100000"), ("cpu.cfs_quota_us", f"{processors * 100_000:.0f}")):
        if (group / name).exists():
            (group / name).write_text(text)
    if (group / "cpu.max").exists():
        (group / "cpu.max").write_text(f"{processors * 100_000:.0f} 100000")
    done = subprocess.run(
        [sys.executable, "-P", *command],
        cwd=cwd,
        preexec_fn=lambda: (group / "cgroup.procs").write_text(str(os.getpid())),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_how_often_and_how_long_a_group_was_stopped(group: Path) -> None:
    """2% of a processor are less than a busy machine would leave."""
    program = """if True:
        import time
        from hwprof.hardware import cgroup
        before, begin = cgroup.throttling(), time.monotonic_ns()
        while time.monotonic_ns() - begin < 2e9:
            pass
        after, elapsed_ns = cgroup.throttling(), time.monotonic_ns() - begin
        print(cgroup.cpu_limit(), after.times - before.times, (after.stopped_ns - before.stopped_ns) / elapsed_ns)
    """
    limit, times, share = map(float, _in(group, 0.02, "-c", program, cwd=Path.cwd()).split())
    assert limit == 0.02
    assert 5 <= times <= 100
    assert 0.5 < share < 1.1


def test_a_runs_record_has_its_limit(tmp_path: Path, group: Path) -> None:
    (tmp_path / "mine.py").write_text("import torch\ndef model():\n    return torch.nn.Linear(2048, 2048)\n")
    options = ("--input-shape", "512,2048", "--iterations", "6", "--passes", "measure", "--collectors", "perf")
    _in(group, 0.5, "-m", "hwprof", "collect", "--model", "mine:model", *options, cwd=tmp_path)
    manifest = RunDirectory.latest(tmp_path / "results").manifest
    assert manifest.machine.cpu_limit == 0.5
    (record,) = manifest.passes
    assert record.throttled is not None and record.throttled_ns is not None
