"""Who names the tools that it has at work: whatever collector starts a program, or has a version of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from collectors.callgrind.collector import _version
from hwprof import c_compiler
from hwprof.collector.contract import Collected, Tool
from hwprof.errors import HwprofError
from hwprof.report.document.header import not_measured
from hwprof.run.directory import RunDirectory
from hwprof.run.manifest import PassRecord
from hwprof.session.failure import failure
from hwprof.session.pass_record import PassError, recorded
from hwprof.session.plan import CollectorPlan, PassPlan
from hwprof.session.results import PassResults
from tests.support.synthetic_run import build


def test_valgrind_s_log_says_which_it_is(tmp_path: Path) -> None:
    log = tmp_path / "valgrind.log"
    assert _version(log) is None
    log.write_text("==7== Callgrind, a profiler\n==7== Using Valgrind-3.19.0 and LibVEX; rerun with -h\n")
    assert _version(log) == "3.19.0"


def test_a_library_says_which_compiler_made_it(tmp_path: Path) -> None:
    library = tmp_path / "made.so"
    for said, version in (
        (b"GCC: (Debian 12.2.0-14) 12.2.0", "(Debian 12.2.0-14) 12.2.0"),
        (b"Debian clang version 14.0.6", "clang version 14.0.6"),
        (b"GCC: 9\x1b[31m", "9?[31m"),
        (b"tcc", None),
    ):
        library.write_bytes(b"\x7fELF\0\0.text\0" + said + b"\0\0")
        assert c_compiler.tool(library) == Tool(name="C compiler", version=version, path=str(library))
    assert c_compiler.tool(tmp_path / "none").version is None


def test_tools_are_in_the_record_of_their_collector() -> None:
    record = PassRecord(name="trace")
    tool = Tool(name="py-spy", version="0.4.3", command=["py-spy", "record"])
    results = PassResults(record, lambda: None)  # type: ignore[arg-type, return-value]
    results.keep(CollectorPlan("pyspy", tools=(Tool(name="py-spy"),)), Collected(tools=[tool]))
    assert record.collectors[0].tools == [tool]


def test_tools_are_known_of_collectors_that_hand_over_none_or_fail() -> None:
    tool = Tool(name="frida", version="17.26.0")
    planned, record = CollectorPlan("instrumented", tools=(tool,)), PassRecord(name="trace")
    results = PassResults(record, lambda: None)  # type: ignore[arg-type, return-value]
    results.keep(planned, Collected())
    record.collectors.append(failure(planned, HwprofError("it broke")))
    assert [(one.state, one.tools) for one in record.collectors] == [("ran", [tool]), ("failed", [tool])]


def test_a_pass_that_fails_keeps_its_collectors_tools(tmp_path: Path) -> None:
    tool = Tool(name="valgrind", version="3.19.0")
    launcher = (CollectorPlan("callgrind", {"cache_sim": True}, tools=(tool,)),)
    plan = PassPlan(name="callgrind", iterations=1, warmup=1, in_process=(), external=(), launcher=launcher)
    run = build(tmp_path)
    with pytest.raises(PassError), recorded(run, plan):
        raise PassError("it hung", None, 1, foreseen=True)
    (lost,) = RunDirectory.open(run.path).manifest.passes[-1].collectors
    assert (lost.name, lost.state, lost.reason, lost.tools) == ("callgrind", "failed", "it hung", [tool])
    told = [one for one in not_measured(run.manifest.passes) if one.what == "callgrind"]
    assert told == [], "the pass's own line says it"
