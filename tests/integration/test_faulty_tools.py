"""Tools that are missing, fail, hang, lie or are killed cost their own data: the run is whole, and says so."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from hwprof.run.directory import RunDirectory
from hwprof.run.manifest import CollectorRecord, PassRecord
from tests.support import faulty_tools
from tests.support.command import TESTS_MODELS, hwprof, start_hwprof
from tests.support.faulty_tools import COMPILER, FRIDA, GARBAGE, METER, PY_SPY, VALGRIND
from tests.support.processes import gone_soon, stat_of
from tests.support.requirements import require_tool

MODEL = ("--model", "tests.support.models.calls:quick", "--input-shape", "1,8", "--iterations", "3", "--threads", "1")
BARE = (*MODEL, "--passes", "measure", "--no-instrumented")


class Found(NamedTuple):
    """What a run beside a faulty tool left."""

    run: RunDirectory
    status: int
    report: str
    seconds: float

    def passes(self) -> dict[str, PassRecord]:
        return {one.name: one for one in self.run.manifest.passes}

    def collector(self, name: str) -> CollectorRecord:
        (found,) = [one for record in self.run.manifest.passes for one in record.collectors if one.name == name]
        return found

    def lines(self, text: str) -> list[str]:
        """Of the report's paragraphs, those with the text."""
        joined = self.report.replace("\n    ", " ").replace("\n      ", " ")
        return [line for line in joined.splitlines() if text in line]


def collected(tmp_path: Path, *options: str, **environment: str) -> Found:
    """The run, which must be readable and clean whatever happened."""
    tools = tmp_path / "tools"
    given = {**faulty_tools.environment(tools), **environment}
    began_s = time.monotonic()
    done = hwprof("collect", *options, cwd=tmp_path, columns=400, environment=given, timeout_s=180)
    seconds = time.monotonic() - began_s
    run = RunDirectory.latest(tmp_path / "results")
    report = hwprof("report", str(run.path), "--all", cwd=tmp_path, columns=400, environment=given)
    assert report.returncode == 0, report.stderr
    for text in (done.stdout, done.stderr, report.stdout):
        assert "Traceback" not in text
        assert not [one for one in text if not one.isprintable() and one != "\n"], "it would move the cursor"
    assert all(gone_soon(pid) for pid in faulty_tools.pids(tools)), "a child is left"
    measured = run.manifest.passes[0]
    assert (measured.name, measured.status) == ("measure", "completed")
    assert run.of_pass("spans", "measure").height and run.of_pass("counts", "measure").height
    return Found(run, done.returncode, report.stdout, seconds)


def all_at_once(check: Callable[[str, Path], None], faults: Iterable[str], tmp_path: Path) -> None:
    """Each of these is waited for until a limit, and needs no processor meanwhile."""

    def checked(fault: str) -> None:
        folder = tmp_path / fault.replace(" ", "-")
        folder.mkdir()
        try:
            check(fault, folder)
        except AssertionError as error:
            error.add_note(f"the fault: {fault}")
            raise

    with ThreadPoolExecutor() as pool:
        for done in [pool.submit(checked, fault) for fault in faults]:
            done.result()


# --- py-spy


PY_SPYS: dict[str, tuple[str, str]] = {
    "fails at the start": ("complain(3)", "evil"),
    "hangs at the start": ("hang()", "did not begin within 20 s"),
    "talks for ever": ("talk()", "did not begin within 20 s"),
    "is killed at the start": ("die()", "exit status -9"),
    "is killed": ("record(); time.sleep(0.2); die()", "ended before the pass did, status -9"),
    "is stopped": ("record(); time.sleep(0.2); stop()", "did not end within 20 s"),
    "ends too early": ("record(); time.sleep(0.2); write(b'[]')", "ended before the pass did"),
    "fails at the end": ("until_told(); complain(4)", "evil"),
    "leaves nothing": ("until_told()", "trace.json"),
    "leaves garbage": (f"until_told(); {GARBAGE}", "py-spy"),
    "leaves a pipe": ("until_told(); os.mkfifo(ARGUMENTS[ARGUMENTS.index('--output') + 1])", "no regular file"),
    "leaves too much": ("until_told(); write(b''); os.truncate(ARGUMENTS[-1], 1 << 34)", "more than the"),
}


@pytest.mark.parametrize("fault", [fault for fault in PY_SPYS if "within" not in PY_SPYS[fault][1]])
def test_py_spy(fault: str, tmp_path: Path) -> None:
    a_faulty_py_spy(fault, tmp_path)


def test_py_spies_that_do_not_end(tmp_path: Path) -> None:
    all_at_once(a_faulty_py_spy, [fault for fault in PY_SPYS if "within" in PY_SPYS[fault][1]], tmp_path)


def a_faulty_py_spy(fault: str, tmp_path: Path) -> None:
    script, told = PY_SPYS[fault]
    faulty_tools.write(tmp_path / "tools", "py-spy", PY_SPY + script)
    found = collected(tmp_path, *MODEL, "--passes", "measure,trace", "--no-instrumented")
    assert found.status == 0 and found.seconds < 60
    record = found.collector("pyspy")
    assert record.state == "failed" and told in (record.reason or "")
    (tool,) = record.tools
    assert (tool.name, tool.version, tool.path) == ("py-spy", "9.9.9", str(tmp_path / "tools" / "py-spy"))
    assert len(found.lines("pyspy")) == 1
    trace = found.passes()["trace"]
    assert trace.status == "completed" and found.run.of_pass("samples", "trace").height
    assert {one.state for one in trace.collectors if one.name in ("sampler", "torch_profiler", "memory")} == {"ran"}


@pytest.mark.parametrize("model", ["masked", "frozen", "frozen_at_once"])
def test_py_spy_of_a_model_that_blocks_signals_or_stops_the_clock(model: str, tmp_path: Path) -> None:
    """As ``signal.pthread_sigmask`` does, and a library for tests that freezes time."""
    require_tool("py-spy")
    options = ("--model", f"tests.support.models.hostile_clock:{model}", "--input-shape", "1,8", "--threads", "1")
    found = collected(tmp_path, *options, "--iterations", "3", "--passes", "measure,trace", "--no-instrumented")
    assert found.status == 0 and found.seconds < 60
    record = found.collector("pyspy")
    by_chance = re.match(r"\d+ looks \([\d.]+%\) failed", record.reason or "")  # of so few that there are
    assert record.state == "ran" or by_chance, record.reason


def test_py_spy_whose_version_hangs_costs_seconds(tmp_path: Path) -> None:
    script = 'hang() if "--version" in ARGUMENTS else complain(3)'
    faulty_tools.write(tmp_path / "tools", "py-spy", script)
    found = collected(tmp_path, *MODEL, "--passes", "measure,trace", "--no-instrumented")
    assert found.seconds < 40 and found.collector("pyspy").tools[0].version == "unknown"


def the_one_that_watches(folder: Path) -> tuple[int, int] | None:
    """py-spy's process that writes below the folder, and whom it watches."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (process / "cmdline").read_text().split("\0")
            if "--pid" in command and any(word.startswith(str(folder)) for word in command):
                return int(process.name), int(command[command.index("--pid") + 1])
    return None


def test_py_spy_that_is_stopped_while_it_holds_the_process(tmp_path: Path) -> None:
    """With --pyspy-blocking each look stops the process; this one would last for ever."""
    require_tool("py-spy")
    options = ("--pyspy-blocking", "--pyspy-rate", "1000", "--passes", "trace", "--no-instrumented")
    model = ("--model", "tests.support.models.calls:known", "--input-shape", "1,8", "--iterations", "200")
    process = start_hwprof("collect", *model, *options, cwd=tmp_path, environment=TESTS_MODELS)
    deadline_s = time.monotonic() + 60
    while (found := the_one_that_watches(tmp_path)) is None:
        assert time.monotonic() < deadline_s and process.poll() is None
        time.sleep(0.01)
    tool, worker = found
    while stat_of(worker)[:1] != ["t"] or stat_of(tool)[:1] != ["T"]:
        assert time.monotonic() < deadline_s and process.poll() is None
        os.kill(tool, signal.SIGCONT)
        time.sleep(0.003)
        os.kill(tool, signal.SIGSTOP)
        time.sleep(0.02)
    process.communicate(timeout=120)
    run = RunDirectory.latest(tmp_path / "results")
    (trace,) = run.manifest.passes
    assert process.returncode == 0 and trace.status == "completed"
    pyspy = next(one for one in trace.collectors if one.name == "pyspy")
    assert pyspy.state == "failed" and (pyspy.reason or "").endswith("status -9")  # before the pass ended, or after
    assert run.of_pass("samples", "trace").height and gone_soon(tool) and gone_soon(worker)


# --- valgrind


VALGRINDS: dict[str, tuple[str, str]] = {
    "fails at the start": ("complain(3)", "exit code 3"),
    "hangs": ("hang()", "not a step in 6 s"),
    "is stopped": ("stop()", "not a step in 6 s"),
    "talks for ever": ("talk()", "not a step in 6 s"),
    "is killed": ("die()", "SIGKILL"),
}


def under_valgrind(tmp_path: Path, script: str, limit_s: int) -> tuple[Found, CollectorRecord]:
    faulty_tools.write(tmp_path / "tools", "valgrind", VALGRIND + script)
    found = collected(tmp_path, *BARE[:-1], "--counters", "perf,callgrind", "--callgrind-limit", str(limit_s))
    record, its_pass = found.collector("callgrind"), found.passes()["callgrind"]
    assert [(tool.name, tool.version) for tool in record.tools] == [("valgrind", "9.9.9")]
    assert found.status == (its_pass.status == "failed")
    assert found.passes()["measure-sse41"].status == "completed"
    return found, record


def test_valgrind(tmp_path: Path) -> None:
    all_at_once(a_faulty_valgrind, VALGRINDS, tmp_path)


def a_faulty_valgrind(fault: str, tmp_path: Path) -> None:
    script, told = VALGRINDS[fault]
    found, record = under_valgrind(tmp_path, script, 6)
    assert found.seconds < 60
    assert record.state == "failed" and told in (record.reason or ""), record
    assert len(found.lines(told)) == 1


LATE: dict[str, tuple[str, str]] = {
    "hangs": ("work(); hang()", "not a step in 60 s"),
    "fails": ("work(); os.unlink(OPTIONS['--callgrind-out-file']); complain(4)", "callgrind.out"),
    "leaves garbage": (f"work(); {GARBAGE}", "callgrind's output is not understood"),
}


def test_valgrind_at_its_end(tmp_path: Path) -> None:
    """The real one has done its work by then."""
    require_tool("valgrind")
    all_at_once(a_valgrind_that_fails_late, LATE, tmp_path)


def a_valgrind_that_fails_late(fault: str, tmp_path: Path) -> None:
    script, told = LATE[fault]
    found, record = under_valgrind(tmp_path, script, 60 if fault == "hangs" else 240)
    assert record.state == "failed" and told in (record.reason or ""), record
    assert len(found.lines(told)) == 1


def test_a_valgrind_that_does_not_tell_its_version_is_not_here(tmp_path: Path) -> None:
    scripts = ("complain(3)", "hang()", "stop()", "talk()", "die()", "print('v' + SAID)")
    all_at_once(a_valgrind_without_a_version, scripts, tmp_path)


def a_valgrind_without_a_version(script: str, tmp_path: Path) -> None:
    faulty_tools.write(tmp_path / "tools", "valgrind", script)
    environment = faulty_tools.environment(tmp_path / "tools")
    began_s = time.monotonic()
    done = hwprof("doctor", columns=400, environment=environment)
    assert done.returncode == 0 and time.monotonic() - began_s < 30
    assert all(one.isprintable() or one == "\n" for one in done.stdout)
    found = done.stdout[done.stdout.index(" callgrind ") :].splitlines()[1]
    assert "not available: " in found and "Try: sudo apt-get install -y valgrind" in found
    assert all(gone_soon(pid) for pid in faulty_tools.pids(tmp_path / "tools"))


# --- the C compiler


COMPILERS: dict[str, tuple[str, str]] = {
    "fails": ("complain(1)", "evil"),
    "hangs": ("hang()", "did not end within 20 s"),
    "talks for ever": ("talk()", "did not end within 20 s"),
    "is stopped": ("stop()", "did not end within 20 s"),
    "is killed": ("die()", "ended by signal 9"),
    "leaves nothing": ("", "does not load"),
    "leaves garbage": (GARBAGE, "does not load"),
    "leaves a library that ends its user": ('write(b"\\x7fELF\\x02\\x01\\x01" + bytes(4000))', "does not load"),
}


@pytest.mark.parametrize("fault", [fault for fault in COMPILERS if "within" not in COMPILERS[fault][1]])
def test_the_c_compiler(fault: str, tmp_path: Path) -> None:
    a_faulty_compiler(fault, tmp_path)


def test_c_compilers_that_do_not_end(tmp_path: Path) -> None:
    all_at_once(a_faulty_compiler, [fault for fault in COMPILERS if "within" in COMPILERS[fault][1]], tmp_path)


def a_faulty_compiler(fault: str, tmp_path: Path) -> None:
    script, told = COMPILERS[fault]
    compiler = faulty_tools.write(tmp_path / "tools", "cc", COMPILER + script)
    found = collected(tmp_path, *BARE, CC=str(compiler))
    assert found.status == 0 and found.seconds < 60
    record = found.collector("perf")
    assert record.state == "ran" and "python (" in record.detail["edge_reader"]
    (note,) = [note for note in record.notes if "read by Python" in note.text]
    assert told in note.text and note.remedy is not None
    assert len(found.lines("read by Python")) == 1
    assert [tool.name for tool in record.tools] == ["perf_event_open"]
    assert not list((tmp_path / "tools" / "cache").rglob("*.so")), "the next compiler may do better"


def test_tools_that_work_are_in_the_manifest_with_their_clocks(tmp_path: Path) -> None:
    """Each clock is one of the pass's conversions."""
    require_tool("py-spy")
    model = ("--model", "tests.support.models.calls:convolved", "--input-shape", "2,3,32,32", "--iterations", "20")
    options = ("--passes", "measure,trace", "--no-instrumented", "--cprofile", "--pyspy-blocking")
    found = collected(tmp_path, *model, *options)
    trace = found.passes()["trace"]
    tools = {tool.name: tool for one in trace.collectors for tool in one.tools}
    assert {"py-spy", "torch.profiler", "oneDNN", "cProfile", "perf_event_open", "glibc"} <= set(tools)
    assert all(tool.version for tool in tools.values())
    clocks = {clock.name for clock in trace.clocks}
    assert {name for name, tool in tools.items() if tool.clock is not None} == {"py-spy", "torch.profiler", "oneDNN"}
    assert {tool.clock for tool in tools.values()} - {None} == clocks
    assert tools["py-spy"].command[:2] == [tools["py-spy"].path, "record"]


def test_the_c_compiler_that_works_is_named(tmp_path: Path) -> None:
    found = collected(tmp_path, *BARE)
    assert [tool.name for tool in found.collector("perf").tools] == ["perf_event_open", "C compiler"]
    assert found.collector("perf").tools[1].version and not found.lines("read by Python")


# --- a power meter


METERS: dict[str, tuple[str, str, str]] = {
    "fails at the start": ("complain(3)", "failed", "0 readings"),
    "says nothing": ("hang()", "failed", "0 readings"),
    "talks for ever": ("talk()", "failed", "0 readings"),
    "is killed": ("watts(5); die()", "ran", "ended before the pass, status -9"),
    "is stopped": ("watts(5); stop()", "ran", ""),
    "does not end": ("signal.signal(signal.SIGTERM, signal.SIG_IGN); child(); watts(100_000)", "ran", ""),
    "prints garbage": ("watts(5); print(SAID, flush=True); watts(100_000)", "ran", "1 lines are no readings"),
}


def test_a_power_meter(tmp_path: Path) -> None:
    all_at_once(a_faulty_power_meter, METERS, tmp_path)


def a_faulty_power_meter(fault: str, tmp_path: Path) -> None:
    script, state, told = METERS[fault]
    meter = faulty_tools.write(tmp_path / "tools", "meter", METER + script)
    found = collected(tmp_path, *BARE, "--power-command", str(meter))
    assert found.status == 0 and found.seconds < 60
    record = found.collector("power_meter")
    assert record.state == state
    assert told in " ".join([record.reason or "", *map(str, record.notes)])
    if state == "ran":
        assert [(tool.name, tool.command) for tool in record.tools] == [("power meter", [str(meter)])]
        assert found.run.of_pass("series", "measure").filter(name="energy/meter").height


# --- frida


FRIDAS: dict[str, tuple[str, str]] = {
    "fails": ("raise RuntimeError('\\x1b[31mevil')", "evil"),
    "hangs": ("time.sleep(300)", "not a step in 6 s"),
    "stops the process": ("os.kill(os.getpid(), signal.SIGSTOP)", "not a step in 6 s"),
    "kills the process": ("os.kill(os.getpid(), signal.SIGKILL)", "SIGKILL"),
    "ends the process": ("os._exit(7)", "exit code 7"),
}


def test_frida(tmp_path: Path) -> None:
    all_at_once(a_faulty_frida, FRIDAS, tmp_path)


def a_faulty_frida(fault: str, tmp_path: Path) -> None:
    script, told = FRIDAS[fault]
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "frida.py").write_text(FRIDA.format(fault=script))
    found = collected(tmp_path, *BARE[:-1], "--counters", "perf,instrumented", "--instrumented-limit", "6")
    assert found.status == 1 and found.seconds < 60
    assert found.passes()["instrumented"].status == "failed"
    record = found.collector("instrumented")
    assert record.state == "failed" and told in (record.reason or "")
    assert [tool.name for tool in record.tools] == ["frida"]
    assert len(found.lines(told)) == 1


def test_tools_that_are_missing_are_told_with_what_brings_them(tmp_path: Path) -> None:
    """A PATH with nothing on it but an empty folder: no py-spy, no valgrind, no compiler."""
    empty: dict[str, Any] = {"PATH": str(tmp_path / "tools")}
    options = (*MODEL, "--passes", "measure,trace", "--no-instrumented")
    found = collected(tmp_path, *options, **empty)
    assert found.status == 0
    record = found.collector("pyspy")
    assert (record.state, record.remedy, record.tools) == ("unavailable", "pip install py-spy", [])
    assert len(found.lines("no C compiler")) == len(found.lines("read by Python")) == 1
    done = hwprof(
        "collect", *BARE[:-1], "--counters", "callgrind", cwd=tmp_path,
        environment={**faulty_tools.environment(tmp_path / "tools"), **empty},
    )  # fmt: skip
    assert done.returncode == 1 and "apt-get install -y valgrind" in done.stderr
    assert os.listdir(tmp_path / "results")  # noqa: PTH208
