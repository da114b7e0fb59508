"""Programs that end in time, and those that do not: nobody waits for them, and none of their children stays."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from hwprof import programs
from hwprof.programs import MOST_BYTES, ProgramError, run
from tests.support.processes import gone_soon

PYTHON = [sys.executable, "-IS", "-c"]


def test_what_it_prints_and_how_it_ends() -> None:
    echo = (
        "import sys; sys.stdout.write(sys.stdin.read()[::-1]); sys.stderr.write(' \\n\\x1b[1mno\\nmore'); sys.exit(3)"
    )
    ended = run([*PYTHON, echo], limit_s=20, given=b"abc" * 100_000)
    assert (ended.status, ended.output) == (3, b"cba" * 100_000)
    assert ended.reason() == "?[1mno"
    assert run([*PYTHON, "import os; os.kill(os.getpid(), 11)"], limit_s=20).reason() == "ended by signal 11"


def test_one_that_is_not_there_or_is_no_program_says_so(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match=r"nowhere does not start: No such file"):
        run([str(tmp_path / "nowhere")], limit_s=1)
    text = tmp_path / "text"
    text.write_text("no program")
    text.chmod(0o755)
    with pytest.raises(ProgramError, match="does not start: Exec format error"):
        run([str(text)], limit_s=1)


CHILD = "import subprocess, sys, os; child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']);"
CHILD += " print(child.pid, file=open(sys.argv[1], 'w'), flush=True);"


@pytest.mark.parametrize(
    "fault",
    ["import time; time.sleep(60)", "os.kill(os.getpid(), 19)", "\nwhile True: print('y' * 9999)"],
    ids=["hangs", "stopped", "talks"],
)
def test_one_that_does_not_end_is_ended_with_its_children(fault: str, tmp_path: Path) -> None:
    began_s = time.monotonic()
    with pytest.raises(ProgramError, match=r"did not end within 1 s"):
        run([*PYTHON, CHILD + fault, str(tmp_path / "child")], limit_s=1)
    assert time.monotonic() - began_s < 10
    assert gone_soon(int((tmp_path / "child").read_text()))


def test_a_child_that_has_its_streams_holds_nobody_up(tmp_path: Path) -> None:
    began_s = time.monotonic()
    ended = run([*PYTHON, CHILD + " print('done')", str(tmp_path / "child")], limit_s=30)
    assert (ended.status, ended.output) == (0, b"done\n")
    assert time.monotonic() - began_s < 10
    assert gone_soon(int((tmp_path / "child").read_text()))


def test_what_is_kept_of_endless_output_is_bounded() -> None:
    ended = run([*PYTHON, "import sys; sys.stdout.write('y' * (64 << 20))"], limit_s=30)
    assert len(ended.output) == MOST_BYTES and programs.MOST_BYTES < 64 << 20
