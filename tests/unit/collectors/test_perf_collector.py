"""The perf collector's course of a pass, against a made-up kernel with made-up threads."""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from collectors.perf.collector import PerfCollector
from collectors.perf.plan import make_plan
from collectors.shared import child_processes
from collectors.shared.counting.group_reads import PythonGroupReads
from collectors.shared.counting.notes import SILENT_NS
from collectors.shared.counting.readings import Readings
from hwprof.analysis.attribution import owned_counts
from hwprof.collector.contract import CountedSpan, PassContext
from hwprof.errors import HwprofError
from hwprof.hardware import perf_event
from hwprof.hardware.catalogue import microarchitecture
from hwprof.hardware.countable import Countable, Selection
from hwprof.hardware.metrics import operands
from hwprof.hardware.perf_event import Attributes
from hwprof.run.manifest import MetricDefinition
from tests.support.fake_perf import HYBRID, Kernel, countable, machine, raw, selection
from tests.support.reported import texts

MAIN, WORKER, LATE = 11, 12, 13
CLOCK = ("task-clock",)


class Life(Kernel):
    """A kernel in which threads work: every event of a group that is switched on counts ``rate`` a ns."""

    def begin(self, monkeypatch: pytest.MonkeyPatch, tids: Sequence[int]) -> None:
        """From now on it keeps account, instead of answering trials."""
        self.tids = list(tids)
        self.gone: set[int] = set()
        self.dying: set[int] = set()
        self.owner: dict[int, int] = {}
        self.on: set[int] = set()
        self.words: dict[int, list[int]] = {}
        self.rates: dict[str, int] = {}
        listdir = os.listdir
        monkeypatch.setattr(perf_event, "open_event", self.open_for)
        monkeypatch.setattr(perf_event, "enable_group", self.on.add)
        monkeypatch.setattr(perf_event, "disable_group", self.on.discard)
        monkeypatch.setattr(perf_event, "read_group", self.read_words)
        monkeypatch.setattr(
            os, "listdir", lambda path: [str(tid) for tid in self.tids] if path == "/proc/self/task" else listdir(path)
        )

    def open_for(self, attributes: Attributes, tid: int = 0, group_fd: int = -1, cpu: int = -1) -> int:
        if tid in self.gone and group_fd < 0:
            raise OSError(errno.ESRCH, "No such process")
        if tid in self.dying and group_fd >= 0:
            raise OSError(errno.ENODEV, "No such device")
        fd = self.open_event(attributes, tid, group_fd, cpu)
        if group_fd < 0:
            self.on.discard(fd)
            self.owner[fd] = tid
        leader = fd if group_fd < 0 else group_fd
        self.words[leader] = [0] * (2 + len(self.groups[leader]))
        return fd

    def read_words(self, fd: int, events: int) -> tuple[int, int, tuple[int, ...]]:
        enabled_ns, running_ns, *values = self.words[fd]
        assert len(values) == events
        return enabled_ns, running_ns, tuple(values)

    def read_bytes(self, fd: int, size: int) -> bytes:
        words = self.words[fd]
        assert size == 8 * (1 + len(words))
        return struct.pack(f"={size // 8}Q", len(words) - 2, *words)

    def work(self, tid: int, ns: int, pmu: str = "cpu", share: float = 1) -> None:
        """A thread works on that kind of core; its counters run for ``share`` of the time."""
        for fd in self.on:
            if self.owner[fd] != tid:
                continue
            words, group = self.words[fd], self.groups[fd]
            kind = next((event.pmu for event in group if event.pmu), None)
            running = ns if kind is None else round(share * ns) if kind == pmu else 0
            words[0] += ns
            words[1] += running
            words[2:] = [
                value + running * self.rates.get(event.name, 1) for value, event in zip(words[2:], group, strict=True)
            ]


def counting(
    monkeypatch: pytest.MonkeyPatch, chosen: Selection, tids: Sequence[int], fake: Life | None = None
) -> tuple[Life, PerfCollector]:
    """A collector that knows what to count, before ``start``."""
    life = Life() if fake is None else fake
    life.install(monkeypatch, chosen)
    collector = PerfCollector()
    collector._selection = chosen
    collector._plan_made = make_plan(chosen, machine(life.cores), root=Path("/nonexistent"))
    collector._readings = Readings(PythonGroupReads(life.read_bytes))
    life.begin(monkeypatch, tids)
    return life, collector


def context() -> PassContext:
    return PassContext("measure", os.getpid(), MAIN, Path("/nonexistent"), {})


def rows(collector: PerfCollector, edges: int) -> list[dict[str, Any]]:
    spans = [CountedSpan(number, 0, number, number + 1) for number in range(edges - 1)]
    return collector.counts(spans).to_dicts()


def test_an_event_that_stays_0_while_others_count_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = selection(["cycles", "r1", "r2"], [("cycles", "r1", "r2")], CLOCK)
    life, collector = counting(monkeypatch, chosen, [MAIN])
    life.rates = {"r1": 0}
    collector.start(context())
    collector.begin_iteration(0)
    collector.full_reader()()
    life.work(MAIN, SILENT_NS)
    collector.full_reader()()
    (note,) = [note for note in texts(collector.stop().notes) if "counted 0" in note]
    assert note == (
        "r1: counted 0 throughout: it never happened here, or this processor (or its hypervisor) does not implement it"
    )


@pytest.mark.parametrize("model", ["single precision", "integers"])
def test_a_precision_that_the_model_does_not_have_is_no_alarm(monkeypatch: pytest.MonkeyPatch, model: str) -> None:
    """Sapphire Rapids counts FLOPs with five events; a model in single precision moves two of them."""
    known = microarchitecture("intel-sapphire-rapids")
    assert known is not None
    names = operands(known.catalogue.recipes["counted_gflops"].of)
    events = [Countable(name, known.catalogue.named()[name], raw(name[-7:], "cpu"), name, "cpu") for name in names]
    chosen = selection(["cycles", *events], [("cycles", *names)], CLOCK)
    life, collector = counting(monkeypatch, chosen, [MAIN], Life(counters=8))
    moved = [name for name in names if "single" in name or "scalar" in name] if model == "single precision" else []
    life.rates = {name: int(name in moved) for name in names}
    collector.start(context())
    for event_set in range(len(collector.event_sets())):
        collector.begin_iteration(event_set)
        life.work(MAIN, SILENT_NS)
    notes = [note for note in texts(collector.stop().notes) if "counted 0" in note or "arithmetic" in note]
    if model == "single precision":
        assert len(moved) == 2 and not notes
    else:
        (note,) = notes
        assert "no arithmetic was counted: " in note and all(name in note for name in names)


def test_an_event_that_hardly_ran_is_not_called_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = selection(["cycles", "r1"], [("cycles", "r1")], CLOCK)
    life, collector = counting(monkeypatch, chosen, [MAIN])
    life.rates = {"r1": 0}
    collector.start(context())
    collector.begin_iteration(0)
    life.work(MAIN, SILENT_NS - 1)
    assert not [note for note in texts(collector.stop().notes) if "counted 0" in note]


def test_metrics_and_events_are_handed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    cpi = MetricDefinition(name="cpi", title="c", unit="1", digits=0, formula='"cycles"', meaning="m")
    _, collector = counting(monkeypatch, selection(["cycles"], [("cycles",)], CLOCK, [cpi]), [MAIN])
    collector.start(context())
    collected = collector.stop()
    assert collected.metrics == [cpi]
    assert [(event.name, event.kind) for event in collected.events] == [
        ("cycles", "hardware"),
        ("task-clock", "software"),
    ]


@pytest.mark.parametrize("after", ["the list was read", "its leader was opened"])
def test_a_thread_that_ends_before_it_can_be_opened_is_no_loss(monkeypatch: pytest.MonkeyPatch, after: str) -> None:
    life, collector = counting(monkeypatch, selection(["cycles"], [("cycles",)], CLOCK), [MAIN, WORKER])
    life.gone, life.dying = ({WORKER}, set()) if after == "the list was read" else (set(), {WORKER})
    collector.start(context())
    collected = collector.stop()
    assert collected.tables["threads"]["tid"].to_list() == [MAIN]
    assert not [note for note in texts(collected.notes) if "threads not counted" in note]


def test_a_main_thread_that_cannot_be_counted_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    life, collector = counting(monkeypatch, selection(["cycles"], [("cycles",)], CLOCK), [MAIN])
    life.gone = {MAIN}
    with pytest.raises(HwprofError, match="cannot count the main thread"):
        collector.start(context())


def test_a_thread_that_dies_in_a_layer_keeps_its_last_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its descriptors stay open until the next iteration, and are then given back."""
    life, collector = counting(monkeypatch, selection(["cycles"], [("cycles",)], CLOCK), [MAIN, WORKER])
    collector.start(context())
    collector.begin_iteration(0)
    collector.full_reader()()
    life.work(WORKER, 700)
    life.tids.remove(WORKER)
    collector.full_reader()()
    before = len(list(Path("/proc/self/fd").iterdir()))
    collector.begin_iteration(0)
    assert len(list(Path("/proc/self/fd").iterdir())) == before - 2
    values = {(row["tid"], row["event"]): row["value"] for row in rows(collector, 2)}
    assert values[WORKER, "cycles"] == 700
    assert set(collector.stop().tables["threads"]["tid"]) == {MAIN, WORKER}


def test_event_sets_take_turns_on_old_and_new_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = selection(["cycles", "r1", "r2", "r3", "r4", "r5"], [("r1", "r2", "r3"), ("r4", "r5")], CLOCK)
    life, collector = counting(monkeypatch, chosen, [MAIN])
    collector.start(context())
    life.tids.append(LATE)
    spans = []
    for iteration in range(2):
        collector.begin_iteration(iteration)
        collector.full_reader()()
        life.work(MAIN, 10)
        life.work(LATE, 20)
        collector.full_reader()()
        spans.append(CountedSpan(iteration, iteration, 2 * iteration, 2 * iteration + 1))
    found = {(row["span"], row["tid"], row["event"]): row["value"] for row in collector.counts(spans).to_dicts()}
    assert [set(names) for names in collector.event_sets()] == [
        {"cycles", "r1", "r2", "r3", "task-clock"},
        {"cycles", "r4", "r5", "task-clock"},
    ]
    expected = {
        (span, tid, event): value
        for span, names in enumerate(collector.event_sets())
        for event in names
        for tid, value in ((MAIN, 10), (LATE, 20))
    }
    assert found == expected


def test_descriptors_go_to_the_threads_that_work_most(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = selection(["cycles"], [("cycles",)], CLOCK)
    _, collector = counting(monkeypatch, chosen, [MAIN, WORKER, LATE])
    monkeypatch.setattr("collectors.shared.counting.threads.descriptors_left", lambda needed: 4)
    monkeypatch.setattr("collectors.shared.counting.threads.cpu_time_ns", {MAIN: 0, WORKER: 1, LATE: 9}.get)
    collector.start(context())
    collected = collector.stop()
    assert collected.tables["threads"]["tid"].to_list() == [MAIN, LATE]
    (note,) = [note for note in texts(collected.notes) if "threads not counted" in note]
    assert note.startswith("threads not counted (1): Too many open files")
    assert "ulimit -n" in note


def test_the_work_of_child_processes_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    _, collector = counting(monkeypatch, selection(["cycles"], [("cycles",)], CLOCK), [MAIN])
    times = iter([{}, {77: ("python3", 3_000_000_000)}])
    monkeypatch.setattr(child_processes, "_living", lambda pid: (next(times), set()))
    monkeypatch.setattr(child_processes, "_stat", lambda pid, words: ("python3", 5))
    collector.start(context())
    (note,) = [note for note in texts(collector.stop().notes) if "child" in note]
    assert note.startswith("child processes: worked for 3.00 s, which is not counted: python3 (pid 77)")


def test_children_that_ended_are_known_by_what_they_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Living at the beginning with 1 s, waited for at the end with 4 s in all: 3 s of work in between."""
    living = iter([{77: ("python3", 1_000_000_000)}, {}])
    reaped = iter([2_000_000_000, 6_000_000_000])
    monkeypatch.setattr(child_processes, "_living", lambda pid: (next(living), set()))
    monkeypatch.setattr(child_processes, "_stat", lambda pid, words: ("python3", next(reaped)))
    assert child_processes.Children().worked() == child_processes.Work(3_000_000_000, (), 3_000_000_000)


def test_what_a_collectors_program_did_is_nobodys_though_it_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then it is in the sum of those that have ended: what was known before counts."""
    living = iter([({}, {9}), ({77: ("sh", 3_000_000_000)}, {9}), ({}, set())])
    reaped = iter([0, 0, 8_000_000_000])
    monkeypatch.setattr(child_processes, "_living", lambda pid: next(living))
    monkeypatch.setattr(child_processes, "_stat", lambda pid, words: ("python3", next(reaped)))
    children = child_processes.Children()
    expected = child_processes.Work(3_000_000_000, ("sh (pid 77)",), 0)
    assert [children.worked(), children.worked()] == [expected, expected]


def test_only_children_that_worked_meanwhile_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that only waits, or whose parent has not fetched its end, is none of them."""
    idle, working = ("sh", 4_000_000_000), ("python3", 500_000_000)
    living = iter([{76: idle, 78: ("zombie", 10)}, {76: idle, 77: working, 78: ("zombie", 10)}])
    reaped = iter([2_000_000_000, 2_250_000_000])
    monkeypatch.setattr(child_processes, "_living", lambda pid: (next(living), set()))
    monkeypatch.setattr(child_processes, "_stat", lambda pid, words: ("python3", next(reaped)))
    work = child_processes.Children().worked()
    assert work == child_processes.Work(750_000_000, ("python3 (pid 77)",), 250_000_000)
    (note,) = texts(work.notes(1, "counted"))
    assert note.index("python3 (pid 77)") < note.index("others that have ended")


# --- two kinds of core


def hybrid(monkeypatch: pytest.MonkeyPatch, extra: Sequence[Countable] = ()) -> tuple[Life, PerfCollector]:
    events = [countable("cycles", str(kind.pmu), qualified=True) for kind in HYBRID]
    chosen = selection([*events, *extra], [tuple(event.name for event in [*events, *extra])], CLOCK)
    return counting(monkeypatch, chosen, [MAIN], Life(cores=HYBRID))


def scaled(collector: PerfCollector) -> dict[str, float | None]:
    """What analysis makes of the span between the two edges."""
    counts = collector.counts([CountedSpan(0, 0, 0, 1)])
    owners = pl.DataFrame({"span": [0], "owner": ["layer"], "caller": [MAIN]}, schema_overrides={"caller": pl.Int32})
    owned = owned_counts(owners, counts, None)
    return dict(owned.select("event", "scaled").iter_rows())


@pytest.mark.parametrize(
    ("course", "expected", "noted"),
    [
        ([("cpu_core", 1000, 1.0)], (1000, 0), False),  # a true 0, not "never ran"
        ([("cpu_core", 600, 1.0), ("cpu_atom", 400, 1.0)], (600, 400), False),
        ([("cpu_core", 500, 0.5), ("cpu_atom", 500, 1.0)], (333, 667), True),
    ],
)
def test_analysis_scales_a_hybrids_counts_rightly(
    monkeypatch: pytest.MonkeyPatch, course: list[tuple[str, int, float]], expected: tuple[int, int], noted: bool
) -> None:
    life, collector = hybrid(monkeypatch)
    collector.start(context())
    collector.begin_iteration(0)
    collector.full_reader()()
    for pmu, ns, share in course:
        life.work(MAIN, ns, pmu, share)
    collector.full_reader()()
    found = scaled(collector)
    assert found["cpu_core/cycles/"] == pytest.approx(expected[0], abs=1)
    assert found["cpu_atom/cycles/"] == pytest.approx(expected[1], abs=1)
    assert found["task-clock"] == 1000
    assert any("multiplexed" in note for note in texts(collector.stop().notes)) == noted


def test_events_of_one_kind_of_core_are_told_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    events = [countable(f"r{number}", "cpu_core") for number in range(5)] + [countable("r9", "cpu_atom")]
    chosen = selection(events, [(event.name,) for event in events], CLOCK)
    life, collector = counting(monkeypatch, chosen, [MAIN], Life(cores=HYBRID))
    collector.start(context())
    collector.begin_iteration(1)
    collector.full_reader()()
    life.work(MAIN, 750, "cpu_core")
    life.work(MAIN, 250, "cpu_atom")
    collector.full_reader()()
    (event,) = [name for name in collector.event_sets()[1] if name != "task-clock"]
    assert scaled(collector)[event] == 750
    notes = texts(collector.stop().notes)
    assert f"{event}: only on cpu_core, where 75% of the time was spent" in notes
    assert not any("multiplexed" in note for note in notes)
