"""How collect ends when somebody ends it, or the model's code does: no process and no half-written file stays, what is
done is kept, and one line says what happened."""

from __future__ import annotations

import csv
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from hwprof.processes import perf_map_of
from hwprof.run.directory import RunDirectory
from tests.support.acting_model import ACTING
from tests.support.command import command_line, heeds_hangups, hwprof, messages, start_hwprof
from tests.support.processes import alive, parent_of
from tests.support.requirements import require_module, require_tool
from tests.support.small_disk import small_disk

QUICK = ("--input-shape", "1,3", "--iterations", "2", "--warmup", "1", "--no-instrumented")
MODELS = (
    ACTING
    + """
import os, signal, subprocess, sys, time
from pathlib import Path
HERE = Path.cwd()
class Odd(BaseException):
    def __str__(self):
        raise RuntimeError("no text")
class Long(BaseException):
    pass
def sleeping():
    def sleep(call):
        if call > 2:
            (HERE / "pid").write_text(str(os.getpid()))
            Path(f"/tmp/perf-{os.getpid()}.map").touch()
            time.sleep(120)
    return Does(sleep)
def sleeping_later():
    \"\"\"Only in the second pass.\"\"\"
    if (HERE / "once").exists():
        return sleeping()
    (HERE / "once").touch()
    return torch.nn.Linear(3, 2)
def forking():
    def fork(call):
        if call == 2 and not os.fork():
            (HERE / "child").write_text(str(os.getpid()))
            time.sleep(60)
    return Does(fork)
def starting():
    def start(call):
        if call == 2:
            child = subprocess.Popen(["sleep", "60"], close_fds=False)
            (HERE / "child").write_text(str(child.pid))
    return Does(start)
def leaving_the_session():
    def start(call):
        if call == 2:
            child = subprocess.Popen(["sleep", "60"], start_new_session=True)
            (HERE / "child").write_text(str(child.pid))
    return Does(start)
def leaving_two_behind():
    \"\"\"One in its own group, one in a session of its own; then it waits.\"\"\"
    def start(call):
        if call == 2:
            both = [subprocess.Popen(["sleep", "600"], start_new_session=new) for new in (False, True)]
            (HERE / "child").write_text(str(both[0].pid))
            (HERE / "other").write_text(str(both[1].pid))
        if call > 2:
            time.sleep(120)
    return Does(start)
def leaving_one_and(ends):
    def start(call):
        if call == 2:
            child = subprocess.Popen(["sleep", "600"], start_new_session=True)
            (HERE / "child").write_text(str(child.pid))
            ends()
    return Does(start)
def leaving_one_and_exiting(): return leaving_one_and(lambda: os._exit(3))
def leaving_one_and_killed(): return leaving_one_and(lambda: os.kill(os.getpid(), 9))
def leaving_one_and_crashing(): return leaving_one_and(crashing)
def forking_at_once():
    \"\"\"And coming back in both.\"\"\"
    child = os.fork()
    if child:
        (HERE / "child").write_text(str(child))
    return torch.nn.Linear(3, 2)
def forking_and_dying():
    def fork(call):
        if call == 2:
            if os.fork():
                os.kill(os.getpid(), 40)
            time.sleep(60)
    return Does(fork)
def moving():
    os.chdir("/")
    return torch.nn.Linear(3, 2)
def exiting(): sys.exit(3)
def exiting_well(): return Does(lambda call: sys.exit(0))
def exiting_later(): return Does(lambda call: sys.exit("enough") if call > 2 else None)
def leaving(): os._exit(0)
def crashing():
    import ctypes
    ctypes.string_at(0)
def killed(): os.kill(os.getpid(), 9)
def pressing(): raise KeyboardInterrupt
def odd():
    raise Odd
def long():
    raise Long("x" * 30_000_000 + "\\nsecond line \\udc80")
"""
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    require_module("torch")
    (tmp_path / "mine.py").write_text(MODELS)
    return tmp_path


def _start(place: Path, model: str, *more: str) -> subprocess.Popen[str]:
    return start_hwprof("collect", "--model", f"mine:{model}", *QUICK, *more, cwd=place)


def _pid_in(file: Path, meanwhile: Callable[[], object] = lambda: None) -> int:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        meanwhile()
        if file.exists() and (text := file.read_text()):
            return int(text)
        time.sleep(0.05)
    raise AssertionError(f"{file} did not appear")


def _read_if_any(descriptor: int) -> None:
    with suppress(BlockingIOError):
        os.read(descriptor, 1 << 16)


def _wait_until_gone(pid: int, seconds: float = 3) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and alive(pid):
        time.sleep(0.05)
    return not alive(pid)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_the_worker_is_gone_with_its_supervisor(place: Path, number: signal.Signals) -> None:
    process = _start(place, "sleeping")
    worker = _pid_in(place / "pid")
    process.send_signal(number)
    _, errors = process.communicate(timeout=180)
    assert _wait_until_gone(worker)
    if number is not signal.SIGKILL:
        assert process.returncode == 128 + number
        assert messages(errors) == [f"hwprof: ended by {number.name}"]
        assert list((place / "results").iterdir()) == []
        assert not perf_map_of(worker).exists()
    perf_map_of(worker).unlink(missing_ok=True)


def test_the_passes_that_are_done_are_kept_and_said_where(place: Path) -> None:
    process = _start(place, "sleeping_later")
    worker = _pid_in(place / "pid")
    process.terminate()
    printed, errors = process.communicate(timeout=180)
    assert _wait_until_gone(worker)
    assert process.returncode == 143
    run = RunDirectory.latest(place / "results")
    assert [(record.status, record.reason) for record in run.manifest.passes] == [
        ("completed", None),
        ("interrupted", "ended by SIGTERM"),
    ]
    name = f"results/{run.path.name}"
    assert messages(errors) == ["hwprof: ended by SIGTERM"]
    assert f"kept in {name}: tables (Parquet, CSV), " in printed and (run.path / "trace.pftrace").exists()
    assert not list(run.path.rglob("*.part"))
    assert not perf_map_of(worker).exists()


@pytest.mark.parametrize("model", ["forking", "forking_at_once", "starting", "leaving_the_session"])
def test_what_the_model_leaves_running_holds_nobody_up(place: Path, model: str) -> None:
    done = hwprof("collect", "--model", f"mine:{model}", *QUICK, "--passes", "measure", cwd=place, timeout_s=50)
    assert done.returncode == 0, done.stderr
    assert _wait_until_gone(_pid_in(place / "child"))


def test_nor_does_any_of_it_outlive_a_killed_command(place: Path) -> None:
    """Stopped before, too: by whoever wants to look, say."""
    process = _start(place, "leaving_two_behind")
    left = [_pid_in(place / name) for name in ("child", "other")]
    (server,) = [parent_of(parent_of(pid)) for pid in left[:1]]
    os.kill(server, signal.SIGSTOP)
    process.kill()
    process.communicate(timeout=60)
    assert [pid for pid in (*left, server) if not _wait_until_gone(pid)] == []


@pytest.mark.parametrize("ends", ["exiting", "killed", "crashing"])
def test_nor_a_worker_that_could_not_end_it(place: Path, ends: str) -> None:
    done = hwprof("collect", "--model", f"mine:leaving_one_and_{ends}", *QUICK, cwd=place, timeout_s=50)
    assert done.returncode == 1
    assert _wait_until_gone(_pid_in(place / "child"))


@pytest.mark.parametrize("model", ["leaving_the_session", "leaving_one_and_exiting"])
def test_layers_end_what_the_model_started_and_nothing_else(place: Path, model: str) -> None:
    """Which may be children of the process that became hwprof, as in a script that ends with ``exec hwprof``."""
    command = command_line("layers", "--model", f"mine:{model}", "--input-shape", "1,3")
    script = f"sleep 600 > /dev/null 2>&1 & echo $! > before; exec {shlex.join(command)}"
    subprocess.run(["sh", "-c", script], cwd=place, capture_output=True, check=False, timeout=60)
    before = int((place / "before").read_text())
    try:
        assert alive(before)
        assert _wait_until_gone(_pid_in(place / "child"))
    finally:
        os.kill(before, signal.SIGKILL)


def test_a_copy_that_the_model_makes_of_layers_prints_nothing(place: Path) -> None:
    done = hwprof("layers", "--model", "mine:forking_at_once", "--input-shape", "1,3", "--format", "csv", cwd=place)
    assert done.returncode == 0, done.stderr
    rows = [row["path"] or row["type"] for row in csv.DictReader(done.stdout.splitlines())]
    assert (rows.count("Linear"), rows.count("whole")) == (1, 1) and "path" not in rows


def test_a_worker_that_dies_is_noticed_though_its_child_lives(place: Path) -> None:
    done = hwprof("collect", "--model", "mine:forking_and_dying", *QUICK, cwd=place, timeout_s=50)
    assert done.returncode == 1
    assert "ended by signal 40" in done.stderr


THIRD_PARTY = """
import threading, time
from hwprof.collector.contract import Availability, Collected, Collector
from hwprof.collector.declaration import Declaration, Place
STAYING = Declaration(name="staying", summary="", place=Place.EXTERNAL, implementation="theirs:Staying")
RAISING = Declaration(name="raising", summary="", place=Place.IN_PROCESS, implementation="theirs:Raising")
class Staying(Collector):
    def availability(self): return Availability()
    def start(self, context): threading.Thread(target=time.sleep, args=(1000,)).start()
    def stop(self): return Collected()
class Raising(Collector):
    def availability(self): return Availability()
    def start(self, context): pass
    def stop(self): raise KeyboardInterrupt
"""


def test_what_a_collector_leaves_running_or_raises_holds_nobody_up(place: Path) -> None:
    (place / "theirs.py").write_text(THIRD_PARTY)
    information = place / "theirs-1.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1\n")
    names = "[hwprof.collectors]\nstaying = theirs:STAYING\nraising = theirs:RAISING\n"
    (information / "entry_points.txt").write_text(names)
    here = {"PYTHONPATH": os.pathsep.join([str(place), os.environ.get("PYTHONPATH", "")])}
    options = (*QUICK, "--passes", "measure", "--collectors", "staying,raising")
    done = hwprof("collect", "--model", "mine:moving", *options, cwd=place, timeout_s=50, environment=here)
    assert done.returncode == 0, done.stderr
    (record,) = RunDirectory.latest(place / "results").manifest.passes
    states = {collector.name: (collector.state, collector.reason) for collector in record.collectors}
    assert states == {"staying": ("ran", None), "raising": ("failed", "KeyboardInterrupt")}


def test_a_model_that_goes_elsewhere_loses_nothing(place: Path) -> None:
    done = hwprof("collect", "--model", "mine:moving", *QUICK, cwd=place)
    assert done.returncode == 0, done.stderr
    run = RunDirectory.latest(place / "results")
    assert [record.status for record in run.manifest.passes] == ["completed", "completed"]
    assert f"kept in results/{run.path.name}: " in done.stdout


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ("exiting", "the model's code ended the process (SystemExit: 3)"),
        ("exiting_later", "the model's code ended the process (SystemExit: enough)"),
        ("odd", "hwprof: Odd"),
        ("long", "hwprof: Long: xxx"),
    ],
)
def test_a_model_that_ends_the_process_is_told_in_one_line(place: Path, model: str, says: str) -> None:
    done = hwprof("collect", "--model", f"mine:{model}", *QUICK, cwd=place)
    assert done.returncode == 1
    assert says in done.stderr
    (said,) = messages(done.stderr)
    assert len(said) < 600
    assert "worker.log" in done.stderr
    (log,) = (place / "results").glob("2*/raw/*/worker.log")
    assert log.stat().st_size < 1_000_000


@pytest.mark.parametrize(("model", "status"), [("exiting", "3"), ("exiting_well", "0")])
def test_a_model_that_ends_the_process_has_no_layers_to_show(place: Path, model: str, status: str) -> None:
    done = hwprof("layers", "--model", f"mine:{model}", "--input-shape", "1,3", cwd=place)
    assert (done.returncode, done.stdout) == (1, "")
    told = f"hwprof: the model's code ended the process (SystemExit: {status}). Try: --debug shows where"
    assert done.stderr.splitlines() == [told]


@pytest.mark.parametrize(
    ("model", "left", "says"),
    [
        ("leaving", 0, "exit code 0"),
        ("killed", 0, "SIGKILL"),
        ("pressing", 1, "raised KeyboardInterrupt"),
        ("crashing", 1, "SIGSEGV"),
    ],
)
def test_a_run_without_a_figure_stays_where_its_log_says_more(place: Path, model: str, left: int, says: str) -> None:
    done = hwprof("collect", "--model", f"mine:{model}", *QUICK, cwd=place)
    assert done.returncode == 1 and says in done.stderr
    runs = [folder for folder in (place / "results").iterdir() if folder.name != "latest"]
    assert len(runs) == left
    assert (place / "results" / "latest").is_symlink() == bool(left)
    assert ("worker.log" in done.stderr) == bool(left)
    assert ("Try: the model without hwprof" in done.stderr) == (not left)
    assert all(f"in {model}" in (folder / "raw" / "measure" / "worker.log").read_text() for folder in runs)


@pytest.mark.parametrize("size", ["200k", "250k"])
def test_a_pass_that_found_no_room_is_not_told_as_running_and_what_is_named_is_there(place: Path, size: str) -> None:
    results = place / "results"
    with small_disk(results, size):
        done = hwprof("collect", "--model", "mine:moving", *QUICK, "--passes", "measure,trace", cwd=place)
        run = RunDirectory.latest(results)
        there = {file.name for file in run.path.iterdir()}
    assert done.returncode == 1 and "no space left" in done.stderr
    assert [record.status for record in run.manifest.passes if record.status != "failed"] == ["completed"]
    assert ("trace.pftrace" in done.stdout) == ("trace.pftrace" in there)
    assert ("CSV" in done.stdout) == any(name.endswith(".csv") for name in there)


def test_a_terminal_that_is_gone_fails_nobody(place: Path) -> None:
    """The terminal's end raises SIGHUP, and from then on every word written to it is an error."""
    ours, theirs = os.openpty()
    command = [sys.executable, "-P", "-m", "hwprof", "collect", "--model", "mine:sleeping_later", *QUICK]
    in_terminal = [require_tool("setsid"), "--ctty", *command]
    process = subprocess.Popen(
        in_terminal, cwd=place, stdin=theirs, stdout=theirs, stderr=theirs, preexec_fn=heeds_hangups
    )
    os.close(theirs)
    os.set_blocking(ours, False)
    # it holds few kilobytes: on a slow machine progress fills it, and whoever writes waits for its reader
    worker = _pid_in(place / "pid", lambda: _read_if_any(ours))
    os.close(ours)
    assert process.wait(timeout=180) == 129
    assert _wait_until_gone(worker)
    statuses = [record.status for record in RunDirectory.latest(place / "results").manifest.passes]
    assert statuses == ["completed", "interrupted"]


def test_ctrl_c_while_the_trace_is_written_says_where_the_run_is(place: Path) -> None:
    process = _start(place, "moving", "--iterations", "3000", "--passes", "measure")
    deadline = time.monotonic() + 120
    while not list(place.glob("results/2*/.trace.pftrace.*.part")):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.002)
    process.send_signal(signal.SIGINT)
    printed, errors = process.communicate(timeout=180)
    assert process.returncode == 130
    run = RunDirectory.latest(place / "results")
    name = f"results/{run.path.name}"
    assert messages(errors) == [f"hwprof: interrupted; kept in {name}, without a trace: hwprof report {name}"]
    assert printed == ""
    assert [record.status for record in run.manifest.passes] == ["completed"]
    assert not list(run.path.rglob("*.part"))


def test_a_second_signal_while_the_products_are_written_does_not_wait_for_them(place: Path) -> None:
    process = _start(place, "moving", "--iterations", "3000", "--passes", "measure,trace")
    deadline = time.monotonic() + 120
    while not any(b'"completed"' in file.read_bytes() for file in place.glob("results/2*/run.json")):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.002)
    process.terminate()
    while not list(place.glob("results/2*/.trace.pftrace.*.part")):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.002)
    process.terminate()
    printed, errors = process.communicate(timeout=180)
    assert process.returncode == 143
    run = RunDirectory.latest(place / "results")
    name = f"results/{run.path.name}"
    assert messages(errors) == [f"hwprof: ended by SIGTERM; kept in {name}, without a trace: hwprof report {name}"]
    assert printed == "" and not list(run.path.rglob("*.part"))
    assert [record.status for record in run.manifest.passes][:1] == ["completed"]
    assert hwprof("report", name, cwd=place).returncode == 0


def test_a_signal_while_a_command_starts_is_told_by_its_own_name(tmp_path: Path) -> None:
    """Wherever it comes: in an import, in the options, in the command."""
    for place in range(12):
        with start_hwprof("doctor", cwd=tmp_path) as process:
            time.sleep(0.3 + 0.05 * place)
            process.send_signal(signal.SIGTERM)
            if place % 2:
                process.send_signal(signal.SIGHUP)
            _, complaints = process.communicate()
        if process.returncode < 0 and not complaints:
            continue  # Python itself was starting
        if process.returncode == 0:
            break  # it was faster
        assert process.returncode in (128 + signal.SIGTERM, 128 + signal.SIGHUP), complaints
        assert complaints == f"hwprof: ended by {signal.Signals(process.returncode - 128).name}\n"


@pytest.mark.parametrize(("number", "says"), [(signal.SIGTERM, "ended by SIGTERM"), (signal.SIGINT, "interrupted")])
def test_peaks_end_with_one_line(number: signal.Signals, says: str, tmp_path: Path) -> None:
    with start_hwprof("peaks", "--again", cwd=tmp_path, environment={"XDG_CACHE_HOME": str(tmp_path)}) as process:
        time.sleep(2)
        process.send_signal(number)
        _, complaints = process.communicate()
    assert (process.returncode, complaints) == (128 + number, f"hwprof: {says}\n")
