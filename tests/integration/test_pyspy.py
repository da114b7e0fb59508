"""py-spy beside a program whose functions are known: what they were in when, and what goes wrong around it."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from collectors.pyspy import notes, watcher
from collectors.pyspy.collector import PySpyCollector, arguments, version
from collectors.pyspy.marks import Marks
from collectors.pyspy.watcher import PROGRAM, Looks, Watcher
from collectors.shared.child_processes import Children, Work
from hwprof.collector.contract import NoteKind, PassContext
from hwprof.errors import HwprofError
from tests.support.processes import alive
from tests.support.requirements import missing, require_tool

RATE = 100
LOOK_NS = 1_000_000_000 // RATE

WORK = """
    import json, os, re, sys, threading, time
    from pathlib import Path
    from collectors.pyspy.collector import PySpyCollector
    from hwprof.collector.contract import PassContext
    from hwprof.session import disturbance

    known = []

    def ticks(pid):
        return sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]))

    def timed(function, *arguments):
        begin_ns = time.monotonic_ns()
        function(*arguments)
        known.append((function.__name__, threading.get_native_id(), begin_ns, time.monotonic_ns()))

    def spin(seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            pass

    def works(): spin(0.15)
    def sleeps(): time.sleep(0.15)
    def inner(): spin(0.15)
    def outer(): inner()
    def helper(): spin(0.15)

    collector = PySpyCollector()
    raw = Path(sys.argv[1])
    collector.start(PassContext("trace", os.getpid(), os.getpid(), raw, json.loads(sys.argv[2])))
    own = collector.own_processes()
    before, ticks_before = disturbance.read(own), sum(map(ticks, own))
    for _ in range(int(sys.argv[3])):
        for function in (works, sleeps, outer):
            timed(function)
        thread = threading.Thread(target=timed, args=(helper,))
        thread.start()
        thread.join()
        collector.iteration_edge()
    found, own_ticks = disturbance.between(before, disturbance.read(own)), sum(map(ticks, own)) - ticks_before
    collected = collector.stop()
    collected.tables["python_frames"].write_parquet(raw / "frames.parquet")
    (clock,) = collected.clocks
    print(json.dumps({"known": known, "error_ns": clock.error_ns, "drift": clock.drift, "main": os.getpid(),
                      "capabilities": re.search(r"CapEff:\\s*(\\S+)", Path("/proc/self/status").read_text())[1],
                      "own": len(own), "own_at_the_end": len(collector.own_processes()),
                      "own_s": found.own_ns / 1e9, "own_ticks_s": own_ticks / os.sysconf("SC_CLK_TCK"),
                      "stacks": collected.detail.stacks, "failed_looks": collected.detail.failed_looks,
                      "version": collected.detail.version, "marks_met": collected.detail.marks_met}))
"""


def program() -> str:
    return watcher.found() or missing(f"{PROGRAM}: pip install {PROGRAM}")


UNPRIVILEGED = ("setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs") if os.geteuid() == 0 else ()
"""The superuser's processes then may do what those of any other user may, who can do without."""


def watched(
    folder: Path, rounds: int = 3, command: tuple[str, ...] = (), **options: Any
) -> tuple[dict[str, Any], pl.DataFrame]:
    program()
    done = subprocess.run(
        [
            *command,
            sys.executable,
            "-c",
            textwrap.dedent(WORK),
            str(folder),
            json.dumps({"pyspy_rate": RATE} | options),
            str(rounds),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout), pl.read_parquet(folder / "frames.parquet")


def stays(frames: pl.DataFrame, function: str) -> list[tuple[int, int]]:
    """From when to when a function was on a thread's stack, whatever its line; in order."""
    found: list[tuple[int, int, int]] = []
    rows = frames.filter(function=function).sort("tid", "begin_ns").select("tid", "begin_ns", "end_ns")
    for tid, begin_ns, end_ns in rows.iter_rows():
        if found and found[-1][0] == tid and begin_ns <= found[-1][2]:
            found[-1] = (tid, found[-1][1], max(found[-1][2], end_ns))
        else:
            found.append((tid, begin_ns, end_ns))
    return sorted((begin_ns, end_ns) for _, begin_ns, end_ns in found)


@pytest.mark.alone
@pytest.mark.parametrize("options", [{}, {"pyspy_blocking": True}], ids=["beside", "stopped"])
def test_functions_are_where_they_were(options: dict[str, Any], tmp_path: Path) -> None:
    """By the looks that met them: none before or after, and on a machine that others use, too, not all of them late."""
    said, frames = watched(tmp_path, **options)
    late_ns = []
    for function in ("works", "sleeps", "outer", "inner", "helper"):
        known = [times for name, _, *times in said["known"] if name == ("outer" if function == "inner" else function)]
        seen = stays(frames, function)
        assert len(seen) == len(known) == 3, function
        for (begin_ns, end_ns), (first_ns, last_ns) in zip(seen, known, strict=True):
            assert first_ns - said["error_ns"] <= begin_ns <= last_ns + said["error_ns"], function
            assert end_ns >= last_ns - said["error_ns"], function
            late_ns += [begin_ns - first_ns, end_ns - last_ns]
    assert min(late_ns) <= LOOK_NS + said["error_ns"]


def test_its_cpu_time_is_known_to_be_hwprofs(tmp_path: Path) -> None:
    """By the kernel's other account of the process, in ticks: user and system time are rounded each, twice."""
    said, _ = watched(tmp_path)
    assert (said["own"], said["own_at_the_end"]) == (1, 0)
    assert said["own_s"] > 0
    assert abs(said["own_s"] - said["own_ticks_s"]) <= 4 / os.sysconf("SC_CLK_TCK")


@pytest.mark.alone
def test_it_needs_no_privilege(tmp_path: Path) -> None:
    """In some round each: where others have the processors, one thread's 150 ms may pass between two looks."""
    require_tool("setpriv")
    said, frames = watched(tmp_path, 6, UNPRIVILEGED)
    assert int(said["capabilities"], 16) == 0
    assert {"works", "inner", "helper"} <= set(frames["function"]), (said["stacks"], said["failed_looks"])


@pytest.mark.alone
def test_frames_have_their_threads_their_callers_and_their_places(tmp_path: Path) -> None:
    said, frames = watched(tmp_path, rounds=1)
    tids = {name: tid for name, tid, *_ in said["known"]}
    assert set(frames.filter(function="works")["tid"]) == {said["main"]} == {tids["works"]}
    assert set(frames.filter(function="helper")["tid"]) == {tids["helper"]} != {said["main"]}
    inner, outer = (frames.filter(function=name).row(0, named=True) for name in ("inner", "outer"))
    assert inner["depth"] == outer["depth"] + 1
    assert outer["begin_ns"] <= inner["begin_ns"] < inner["end_ns"] <= outer["end_ns"]
    assert set(frames.filter(function="Thread.run")["file"].str.ends_with("/threading.py")) == {True}
    assert not [name for name in frames["function"].unique() if "clock_mark" in name]
    assert said["version"].count(".") >= 1 and said["marks_met"] >= 2, "of 24, where nobody else has the processors"


def test_its_own_work_is_nobodys(tmp_path: Path) -> None:
    """Of a worker whose children are told with the time that they take."""
    program()
    collector = PySpyCollector()
    children = Children()
    collector.start(PassContext("trace", os.getpid(), os.getpid(), tmp_path, {"pyspy_rate": RATE}))
    try:
        assert children.worked() == Work()
    finally:
        collector.stop()


def fake(folder: Path, script: str) -> str:
    """A program in py-spy's place."""
    path = folder / PROGRAM
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("echo 'Error: Permission Denied: Try running again with elevated permissions'; exit 1", "Permission Denied"),
        ("exit 3", "exit status 3"),
        ("sleep 60", "did not begin within 0.5 s"),
        ("kill -9 $$", "exit status -9"),
    ],
)
def test_one_that_does_not_begin_is_told_and_gone(
    script: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher, "BEGIN_S", 0.5)
    one = Watcher(fake(tmp_path, f"echo $$ > {tmp_path}/pid\n{script}"), [], tmp_path / "file")
    with pytest.raises(HwprofError, match=says):
        one.begin()
    assert not alive(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("trap 'echo no room; exit 7' INT", "no room"),
        ("trap '' INT", "did not end within 0.5 s"),
    ],
)
def test_one_that_does_not_end_well_is_told_and_gone(
    script: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher, "END_S", 0.5)
    lines = [f"echo $$ > {tmp_path}/pid", script, "echo Sampling process", "while :; do sleep 0.01; done"]
    one = Watcher(fake(tmp_path, "\n".join(lines)), [], tmp_path / "file")
    one.begin()
    with pytest.raises(HwprofError, match=says):
        one.end()
    assert not alive(int((tmp_path / "pid").read_text()))


def test_its_last_line_says_how_many_looks_failed(tmp_path: Path) -> None:
    script = "trap 'echo; echo Samples: 1238 Errors: 128; echo bye; exit 0' INT"
    one = Watcher(
        fake(tmp_path, f"{script}; echo Sampling process; while :; do sleep 0.01; done"), [], tmp_path / "file"
    )
    one.begin()
    assert one.end() == Looks(stacks=1238, failed=128)


def test_the_latest_of_all_looks_is_known_whatever_is_said_after_it(tmp_path: Path) -> None:
    late = "echo '1.05s behind in sampling'; echo '12.30s behind in sampling'; yes x | head -c 30000"
    ends = "trap 'echo Samples: 1238 Errors: 0; exit 0' INT"
    script = f"{ends}; echo Sampling process; {late}; while :; do sleep 0.01; done"
    one = Watcher(fake(tmp_path, script), [], tmp_path / "file")
    one.begin()
    time.sleep(0.2)
    assert one.end() == Looks(stacks=1238, failed=0, behind_s=12.3)


def test_a_pause_of_its_own_is_told(tmp_path: Path) -> None:
    one = Watcher(program(), arguments({}, RATE), tmp_path / "trace.json")
    one.begin()
    assert one.pid is not None
    time.sleep(0.3)
    os.kill(one.pid, signal.SIGSTOP)
    time.sleep(1.5)
    os.kill(one.pid, signal.SIGCONT)
    time.sleep(0.5)
    looks = one.end()
    assert looks is not None and looks.behind_s > 1.4
    (note,) = notes.of_pauses(looks)
    assert note.kind is NoteKind.SUSPECT and note.remedy


@pytest.mark.parametrize("line", ["blah blah blah", "Sampling process blah"], ids=["before", "after"])
def test_endless_talk_is_heard_in_bounds_and_told_in_whole_lines(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher, "BEGIN_S", 0.5)
    one = Watcher(fake(tmp_path, f"exec yes '{line}'"), [], tmp_path / "file")
    with pytest.raises(HwprofError, match=f"did not begin|failed: {line}$"):
        one.begin()
        one.end()
    assert len(one._said) <= 2 * watcher.TAIL_BYTES


def test_a_reason_is_printable_text() -> None:
    assert watcher._reason(b"\xff\xfe\x9b\n\x1b[31mno room\n", 1) == "?[31mno room"
    assert watcher._reason(b"\xff\xfe\n", 3) == "exit status 3"


def test_without_its_file_nothing_is_collected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = fake(tmp_path, "trap 'exit 0' INT; echo Sampling process; while :; do sleep 0.01; done")
    monkeypatch.setattr("collectors.pyspy.collector.found", lambda: name)
    collector = PySpyCollector()
    collector.start(PassContext("trace", os.getpid(), os.getpid(), tmp_path, {"pyspy_rate": 1000}))
    with pytest.raises(HwprofError, match="py-spy's file cannot be read"):
        collector.stop()


def test_a_start_that_fails_leaves_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = fake(tmp_path, f"echo $$ > {tmp_path}/pid; echo Sampling process; while :; do sleep 0.01; done")
    monkeypatch.setattr("collectors.pyspy.collector.found", lambda: name)
    monkeypatch.setattr(Marks, "make", lambda self: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        PySpyCollector().start(PassContext("trace", os.getpid(), os.getpid(), tmp_path, {}))
    assert not alive(int((tmp_path / "pid").read_text()))


def test_where_it_is_not_installed_it_says_how_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("collectors.pyspy.collector.found", lambda: None)
    found = PySpyCollector().availability()
    assert not found.ok and found.remedy == "pip install py-spy"


def test_a_version_that_is_no_text_costs_nothing(tmp_path: Path) -> None:
    program = tmp_path / "py-spy"
    program.write_text("#!/bin/sh\nprintf 'py-spy 0.4.3 \\351\\n'\n")
    program.chmod(0o755)
    assert version(str(program)) == "0.4.3"
