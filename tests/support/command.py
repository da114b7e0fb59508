"""The command ``hwprof`` as a test runs it: in a process of its own, in one that goes on beside the test, or here."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from unittest import mock

from hwprof.run.directory import RunDirectory

ROOT: Final = Path(__file__).parents[2]
TESTS_MODELS: Final = {"PYTHONPATH": str(ROOT)}
"""The environment in which ``--model tests.support.models.NAME:FACTORY`` is found from any folder."""

COLUMNS: Final = 100
NOTHING: Final[Mapping[str, str]] = {}


def hwprof(
    *arguments: str,
    cwd: Path | None = None,
    columns: int = COLUMNS,
    timeout_s: float = 300,
    environment: Mapping[str, str] = NOTHING,
) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, to its end."""
    return subprocess.run(
        command_line(*arguments),
        cwd=cwd,
        env=_environment(columns, environment),
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def messages(stderr: str) -> list[str]:
    """The lines of a command's standard error, without those of its progress: on a busy machine any run lasts so long
    that it has some."""
    return [line for line in stderr.strip().splitlines() if not line.startswith("[")]


def start_hwprof(
    *arguments: str, cwd: Path | None = None, columns: int = COLUMNS, environment: Mapping[str, str] = NOTHING
) -> subprocess.Popen[str]:
    """The command in a process that the test watches, and ends."""
    return subprocess.Popen(
        command_line(*arguments),
        cwd=cwd,
        env=_environment(columns, environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heeds_hangups,
    )


def heeds_hangups() -> None:
    """Though the tests may have been started with ``nohup``."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def hwprof_here(*arguments: str, cwd: Path | None = None, columns: int = COLUMNS) -> subprocess.CompletedProcess[str]:
    """The command in this process, for those that only read runs: without a second's start, and open to patches."""
    from hwprof.cli import app

    out, errors = io.StringIO(), io.StringIO()
    with (
        contextlib.chdir(cwd or Path.cwd()),
        mock.patch.dict(os.environ, COLUMNS=str(columns)),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(errors),
    ):
        code = app.run(arguments)
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), errors.getvalue())


def collect(
    place: Path, *arguments: str, timeout_s: float = 300, environment: Mapping[str, str] = NOTHING
) -> RunDirectory:
    """The run that ``hwprof collect`` leaves below ``place``; it must succeed."""
    done = hwprof("collect", *arguments, cwd=place, timeout_s=timeout_s, environment=environment)
    assert done.returncode == 0, done.stderr
    return RunDirectory.latest(place / "results")


def command_line(*arguments: str) -> list[str]:
    """As it is started."""
    return [sys.executable, "-P", "-m", "hwprof", *arguments]  # without the current folder, as the installed script


def _environment(columns: int, more: Mapping[str, str]) -> dict[str, str]:
    """Ours, but for what makes a process follow its own code from the start."""
    own = {name: value for name, value in os.environ.items() if name != "ONEDNN_JIT_PROFILE"}
    return {**own, "COLUMNS": str(columns), **more}
