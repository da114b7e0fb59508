"""Who names the tools that it has at work: whatever collector starts a program, or has a version of its own."""

from __future__ import annotations

from pathlib import Path

from collectors.callgrind.collector import _command, _version
from hwprof.collector.contract import Collected, Tool
from hwprof.run.manifest import PassRecord
from hwprof.session.plan import CollectorPlan
from hwprof.session.results import PassResults


def test_valgrind_s_log_says_which_it_is_and_what_it_was_started_for(tmp_path: Path) -> None:
    log = tmp_path / "valgrind.log"
    assert (_version(log), _command(log)) == (None, [])
    log.write_text(
        "==7== Callgrind, a call-graph generating cache profiler\n"
        "==7== Using Valgrind-3.19.0 and LibVEX; rerun with -h for copyright info\n"
        "==7== Command: python3 -P -m hwprof.session.worker order.json 5 6\n"
    )
    assert _version(log) == "3.19.0"
    assert _command(log)[:4] == ["python3", "-P", "-m", "hwprof.session.worker"]


def test_tools_are_in_the_record_of_their_collector() -> None:
    record = PassRecord(name="trace")
    tool = Tool(name="py-spy", version="0.4.3", command=["py-spy", "record"])
    PassResults(record, lambda: None).keep(CollectorPlan("pyspy"), Collected(tools=[tool]))  # type: ignore[arg-type, return-value]
    assert record.collectors[0].tools == [tool]
