"""Standard streams that are closed, full, or read by nobody: one line where there is a place for it, and the right exit
code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command import hwprof
from tests.support.synthetic_run import build

COMMANDS = ("report", "report --format json", "doctor", "events --all", "explain --list", "models", "--help")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    build(tmp_path / "results")
    return tmp_path


def in_shell(command: str, redirection: str, place: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", f"exec {sys.executable} -m hwprof {command} {redirection}"],
        cwd=place,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_a_reader_may_go_at_any_moment(command: str, place: Path) -> None:
    reads, writes = os.pipe()
    os.close(reads)  # before the first character
    arguments = [sys.executable, "-m", "hwprof", *command.split()]
    done = subprocess.run(arguments, cwd=place, stdout=writes, stderr=subprocess.PIPE, text=True, timeout=120)
    os.close(writes)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("redirection", [">&-", "> /dev/full"])
@pytest.mark.parametrize("command", COMMANDS)
def test_an_output_that_takes_nothing_is_one_line(command: str, redirection: str, place: Path) -> None:
    done = in_shell(command, redirection, place)
    assert done.returncode == 1
    assert done.stderr.startswith("hwprof: cannot write to standard output: ") and done.stderr.count("\n") == 1
    assert ". Try: " in done.stderr


@pytest.mark.parametrize("redirection", ["2>&-", "2> /dev/full"])
def test_complaints_that_nobody_takes_change_no_exit_code(redirection: str, place: Path) -> None:
    assert in_shell("report", redirection, place).returncode == 0
    assert in_shell("report nowhere", redirection, place).returncode == 2
    assert in_shell("report --nonsense", redirection, place).returncode == 2
    assert in_shell("", redirection, place).returncode == 2


def test_a_closed_output_costs_no_measurement(tmp_path: Path) -> None:
    options = "--iterations 2 --warmup 1 --passes measure --no-instrumented --input-shape 1,3,32,32"
    done = in_shell(f"collect --model torch.nn:Identity {options}", ">&- 2>&-", tmp_path)
    assert done.returncode == 1
    (run,) = (tmp_path / "results").glob("2*")
    assert [one["status"] for one in json.loads((run / "run.json").read_text())["passes"]] == ["completed"]
    assert hwprof("report", cwd=tmp_path).returncode == 0
