"""The PAPI collector with the real libpapi, beside perf over the same edges, with the events that need no PMU."""

from __future__ import annotations

import re
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from collectors.papi.collector import PapiCollector
from hwprof.hardware import catalogue, perf_event
from tests.support.papi import require_papi
from tests.support.papi_beside_perf import PAGES, ROUNDS, SOFTWARE, side_by_side, table
from tests.support.reported import fields
from tests.support.requirements import require_tool

pytestmark = pytest.mark.alone

HASHING = 100_000
"""Tens of milliseconds of work a thread: a reading is a small part of it."""


@pytest.fixture(scope="module")
def papi_avail() -> str:
    """The program that comes with the library."""
    return require_tool("papi_avail")


@pytest.fixture(scope="module")
def both(papi_avail: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    require_papi()
    return side_by_side(SOFTWARE, tmp_path_factory.mktemp("both"), HASHING)


def threads_counted(both: dict[str, Any]) -> dict[str, int]:
    """Name and first span of the threads that PAPI can count here: without a PMU it attaches to none."""
    if both["detail"]["papi"]["every_thread"]:
        return {"main": 0, "hand": 0, "late": 1}
    return {"main": 0}


def test_papi_and_perf_count_the_same(both: dict[str, Any]) -> None:
    """Every edge reads PAPI's sets first and perf's groups then, so what lies between the two readings of an edge is
    counted on different sides of it: the reading of a few threads, some ten microseconds, and now and then a page that
    Python touches, or a switch. The typical span must agree to that; no span may be further off than a time slice."""
    perf, papi = table(both["counts"]["perf"]), table(both["counts"]["papi"])
    for name, first in threads_counted(both).items():
        tid = both["threads"][name]
        for perfs_name, papis_name in SOFTWARE.items():
            pairs = [
                (papi[span, tid, papis_name]["value"], perf[span, tid, perfs_name]["value"])
                for span in range(first, ROUNDS)
            ]
            off = sorted(abs(ours - theirs) for ours, theirs in pairs)
            if perfs_name == "task-clock":
                assert off[len(off) // 2] < 200_000 and off[-1] < 5_000_000, (name, pairs)
                assert min(ours for ours, _ in pairs) > 10 * 200_000
            else:
                assert off[len(off) // 2] == 0 and off[-1] <= 5, (name, perfs_name, pairs)
        faults = sorted(papi[span, tid, "perf::PAGE-FAULTS"]["value"] for span in range(first, ROUNDS))
        assert PAGES <= faults[0] <= faults[len(faults) // 2] <= PAGES + 2


def test_the_times_are_the_task_clocks(both: dict[str, Any]) -> None:
    """PAPI tells no times; perf's own for the same span agree, and there is no span in which a set did not run."""
    perf, papi = table(both["counts"]["perf"]), table(both["counts"]["papi"])
    tid = both["threads"]["main"]
    for span in range(ROUNDS):
        ours, theirs = papi[span, tid, "perf::PAGE-FAULTS"], perf[span, tid, "page-faults"]
        assert ours["enabled_ns"] == ours["running_ns"] == papi[span, tid, "perf::TASK-CLOCK"]["value"]
        assert ours["enabled_ns"] == pytest.approx(theirs["enabled_ns"], abs=5_000_000)
    assert {row["provenance"] for row in both["counts"]["papi"]} == {"measured"}


def test_threads_are_listed_and_the_late_one_is_counted_from_its_first_whole_iteration(both: dict[str, Any]) -> None:
    counted = threads_counted(both)
    listed, spans = both["listed"]["papi"], table(both["counts"]["papi"])
    for name, tid in both["threads"].items():
        assert (tid in listed) == (name in counted)
        seen = {span for span, thread, _ in spans if thread == tid}
        assert seen == set(range(counted[name], ROUNDS) if name in counted else ())


def test_where_papi_reaches_no_other_thread_it_says_so(both: dict[str, Any]) -> None:
    """PAPI opens a hardware event before it attaches: where there is none, the main thread is all that it counts."""
    if perf_event.core_pmu_counts():
        assert both["detail"]["papi"]["every_thread"]
        return
    assert both["detail"]["papi"]["every_thread"] is False
    assert any("main thread only" in note for note in both["notes"]["papi"])


def test_events_have_their_meaning_in_the_manifest(both: dict[str, Any]) -> None:
    assert ["perf::TASK-CLOCK", "ns", "software"] in both["described"]
    assert [name for name, _, _ in both["described"]] == list(SOFTWARE.values())


def test_presets_without_a_pmu_are_refused_with_the_reason(both: dict[str, Any]) -> None:
    detail = fields(PapiCollector().availability().detail)
    if perf_event.core_pmu_counts():
        assert detail["hardware"]
        return
    assert detail["hardware"] == [] and detail["software"]
    cycles = detail["unavailable"]["PAPI_TOT_CYC"]
    assert "PMU" in cycles["reason"] and cycles["remedy"]


def test_the_catalogue_has_every_preset_of_this_papi(papi_avail: str) -> None:
    done = subprocess.run([papi_avail], capture_output=True, text=True, check=True, timeout=180)
    presets = set(re.findall(r"^(PAPI_\w+)", done.stdout, re.MULTILINE))
    assert len(presets) > 100
    assert presets <= set(catalogue.catalogue(catalogue.PAPI).named())


def test_closed_sets_leave_no_descriptors(both: dict[str, Any], tmp_path: Path) -> None:
    before = set(Path("/proc/self/fd").iterdir())
    side_by_side(SOFTWARE, tmp_path, 10)
    assert len(set(Path("/proc/self/fd").iterdir())) <= len(before)
    assert threading.active_count() > 1
