"""``hwprof events``' document and how it is shown, on planted machines."""

from __future__ import annotations

import io
from pathlib import Path

import msgspec
import pytest

from hwprof.hardware.countable import Countable
from hwprof.hardware.machine import read_machine
from hwprof.hardware.selection import every_name, kinds_of_core, select
from hwprof.report.document import events as event_list
from hwprof.report.document.events import EventList
from hwprof.report.text import events as event_view
from hwprof.report.text.console import make_console
from hwprof.unavailable import Unavailable
from tests.support.recorded_machines import plant


def listed(
    tree: str, root: Path, *names: str, everything: bool = False, missing: tuple[str, ...] = (), tried: bool = True
) -> EventList:
    machine = read_machine(plant(tree, root), "x86_64", has_core_pmu=True)
    cores = kinds_of_core(machine, root)
    wanted = [*names, *(every_name(cores) if everything else ())]

    def why_not(event: Countable) -> Unavailable | None:
        return Unavailable("it is taken", "give it back") if event.name in missing else None

    selection = select(wanted or None, machine, root, on_paper=True)
    return event_list.build(machine, cores, selection, why_not if tried else None, None)


def shown(document: EventList, width: int) -> str:
    file = io.StringIO()
    event_view.show(document, make_console(width, file))
    return file.getvalue()


def test_the_document_has_events_metrics_and_sets(tmp_path: Path) -> None:
    found = listed("amd-zen4", tmp_path, "flops", "cpi", "uncore")
    assert (found.processor, found.microarchitectures) == ("AMD Zen 4", ["amd-zen4"])
    assert found.general_counters == {"cpu": 6}
    events = {event.name: event for event in found.events}
    flops = events["fp_ret_sse_avx_ops.all"]
    assert (flops.code, flops.counters, flops.unit) == ("cpu/event=0x03,umask=0x1f/", 2, "FLOP")
    assert (events["umc_cas_cmd.rd"].scope, events["umc_cas_cmd.rd"].counters) == ("socket", 0)
    assert events["task-clock"].kind == "software"
    metrics = {metric.name: metric for metric in found.metrics}
    assert metrics["cpi"].events == ["cycles", "instructions"]
    assert metrics["counted_gflops"].events == ["fp_ret_sse_avx_ops.all", "counted-time"]
    assert all(metric.available for metric in found.metrics)
    in_sets = {name for one in found.sets for name in one.events}
    assert in_sets == {event.name for event in found.events if event.kind == "hardware" and event.scope == "thread"}
    assert all(one.counters["cpu"] <= 6 for one in found.sets)


def test_kinds_of_core_have_counters_of_their_own(tmp_path: Path) -> None:
    found = listed("intel-alder-lake", tmp_path, "cpi", "flops")
    assert found.microarchitectures == ["intel-golden-cove", "intel-gracemont"]
    assert set(found.general_counters) == {"cpu_core", "cpu_atom"}
    assert {"cpu_core/cycles/", "cpu_atom/cycles/"} <= {event.name for event in found.events}
    assert "Gracemont" in found.dropped["counted_gflops"].reason


def test_a_metric_is_available_where_all_its_events_are(tmp_path: Path) -> None:
    found = listed("amd-zen4", tmp_path, "branch", missing=("branches",))
    assert {metric.name: metric.available for metric in found.metrics} == {
        "branch_mpki": True,
        "branch_miss_ratio": False,
    }
    (branches,) = [event for event in found.events if event.name == "branches"]
    assert branches.unavailable == Unavailable("it is taken", "give it back")


def test_json_reads_back(tmp_path: Path) -> None:
    found = listed("intel-sapphire-rapids", tmp_path, everything=True)
    text = event_list.as_json(found)
    assert msgspec.json.decode(text, type=EventList) == found
    assert '"schema_version": 1' in text
    assert len({event.name for event in found.events}) == len(found.events)


@pytest.mark.parametrize("width", [60, 80, 120, 200])
@pytest.mark.parametrize("tree", ["amd-zen4", "intel-alder-lake", "intel-sapphire-rapids", "arm-neoverse-v2"])
def test_everything_is_shown_within_the_width(tmp_path: Path, tree: str, width: int) -> None:
    found = listed(tree, tmp_path, everything=True)
    text = shown(found, width)
    assert max(map(len, text.splitlines())) <= width
    folded = "".join(text.split())
    for event in found.events:
        assert event.name in folded and "".join(event.code.split()) in folded, event.name
        if width < event_view.WIDE:
            assert "".join(event.meaning.split()) in folded, event.name
    for metric in found.metrics:
        assert metric.name in folded, metric.name
    for number in range(1, len(found.sets) + 1):
        assert f"\n  {number}  " in text
    assert not any(line.endswith(" ") for line in text.splitlines())


@pytest.mark.parametrize("width", [80, 130])
def test_what_cannot_be_had_is_marked_with_reason_and_remedy(tmp_path: Path, width: int) -> None:
    text = shown(listed("amd-zen4", tmp_path, "branch", missing=("branches",)), width)
    assert "no branches" in text and "no branch_miss_ratio" in text
    assert "no branch-misses" not in text and "no branch_mpki" not in text
    assert "not available: it is taken. Try: give it back" in " ".join(text.split())


def test_one_reason_for_all_stands_at_the_top_and_not_at_each(tmp_path: Path) -> None:
    found = listed("amd-zen4", tmp_path, "branch", missing=("branches", "branch-misses", "instructions"))
    found.unavailable = Unavailable("it is taken", "give it back")
    text = shown(found, 80)
    assert text.index("not available: it is taken. Try: give it back") < text.index("branch_mpki")
    assert text.count("it is taken") == 1
    assert "no branches" in text


def test_another_processor_has_no_marks(tmp_path: Path) -> None:
    text = shown(listed("amd-zen4", tmp_path, "branch", tried=False), 80)
    assert not any(line.strip().startswith("no ") for line in text.splitlines() if "no counter" not in line)


def test_what_the_processor_lacks_is_listed_with_one_reason(tmp_path: Path) -> None:
    text = " ".join(shown(listed("amd-zen2", tmp_path, "topdown", "cpi"), 80).split())
    assert "topdown_heavy: AMD Zen 2 has no events for it" in text
    assert text.count("has no events for it") == 1
