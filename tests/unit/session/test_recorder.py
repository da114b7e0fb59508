"""The span recorder, on a clock that the tests turn."""

from __future__ import annotations

import threading
import tracemalloc
from collections.abc import Callable, Sequence

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwprof.analysis.owners import own
from hwprof.collector.contract import Availability, Collected, Collector, CountedSpan, PassContext
from hwprof.session.process_cpu_time import ProcessCpuTime, Reading
from hwprof.session.recorder import GAP_NS, SpanRecorder
from hwprof.session.span_rows import parents


class Clock:
    """Every reading takes one nanosecond."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        self.now += 1
        return self.now


class Readings(Collector):
    """An edge counter that only remembers which of its readers was called."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def availability(self) -> Availability:
        return Availability()

    def start(self, context: PassContext) -> None: ...

    def stop(self) -> Collected:
        return Collected()

    def event_sets(self) -> Sequence[Sequence[str]]:
        return [["task-clock"]]

    def begin_iteration(self, event_set: int) -> None:
        self.calls.append(f"set {event_set}")

    def full_reader(self) -> Callable[[], None]:
        return lambda: self.calls.append("full")

    def enter_reader(self) -> Callable[[], None]:
        return lambda: self.calls.append("enter")

    def leave_reader(self) -> Callable[[], None]:
        return lambda: self.calls.append("leave")

    def gap_reader(self) -> Callable[[], None]:
        return lambda: self.calls.append("gap")

    def counts(self, spans: Sequence[CountedSpan]) -> pl.DataFrame:
        return pl.DataFrame()


def test_layers_nest_in_stages_and_iterations() -> None:
    recorder = SpanRecorder(Clock())
    inner = recorder.timed(recorder.path_number("model.0.conv"), lambda value: value + 1)
    outer = recorder.timed(recorder.path_number("model.0"), inner)
    with recorder.iteration(0, warmup=False, event_set=None), recorder.stage("inference"):
        assert outer(1) == 2
    table = recorder.table(pid=7)
    assert table["path"].to_list() == ["iteration 0", "inference", "model.0", "model.0.conv"]
    assert table["parent"].to_list() == [None, 0, 1, 2]
    assert table["kind"].to_list() == ["iteration", "stage", "layer", "layer"]
    assert table["pid"].unique().to_list() == [7]
    assert (table["end_ns"] > table["begin_ns"]).all()


def test_leaves_read_all_threads_and_only_the_main_one_after_a_gap_that_is_short() -> None:
    clock = Clock()
    readings = Readings()
    recorder = SpanRecorder(clock)
    recorder.count_with([readings])
    first = recorder.counted(recorder.path_number("a"), lambda: None)
    second = recorder.counted(recorder.path_number("b"), lambda: None)
    with recorder.iteration(3, warmup=False, event_set=0):
        clock.now += 2 * GAP_NS
        first()
        second()
    # iteration's begin, a's begin (long after), a's end, b's begin (right after), b's end, iteration's end
    assert readings.calls == ["set 0", "full", "enter", "leave", "gap", "leave", "full"]
    spans = recorder.counted_spans()
    assert [(span.begin_edge, span.end_edge) for span in spans] == [(0, 5), (1, 2), (3, 4)]
    assert {span.iteration for span in spans} == {3}


def test_a_module_around_layers_is_read_at_its_edges_unless_a_layer_just_was() -> None:
    clock = Clock()
    readings = Readings()
    recorder = SpanRecorder(clock)
    recorder.count_with([readings])

    def work(ns: int) -> Callable[[], None]:
        def done() -> None:
            clock.now += ns

        return done

    leaf = recorder.counted(recorder.path_number("a.b"), work(2 * GAP_NS))

    for afterwards_ns, leaves in ((0, "gap"), (2 * GAP_NS, "full")):
        readings.calls.clear()
        steps = (leaf, work(afterwards_ns))
        around = recorder.counted(recorder.path_number("a"), lambda steps=steps: [step() for step in steps], leaf=False)
        with recorder.iteration(0, warmup=False, event_set=0):
            around()
        assert readings.calls == ["set 0", "full", "gap", "gap", "leave", leaves, "full"]
    spans = recorder.counted_spans()[:3]
    assert [(span.begin_edge, span.end_edge) for span in spans] == [(0, 5), (1, 4), (2, 3)]


def test_the_reading_is_outside_of_the_layer_s_time() -> None:
    clock = Clock()
    readings = Readings()
    recorder = SpanRecorder(clock)
    recorder.count_with([readings])

    def slow_reading() -> None:
        clock.now += 1_000_000

    readings.enter_reader = readings.leave_reader = lambda: slow_reading  # type: ignore[method-assign]

    def work() -> None:
        clock.now += 500

    layer = recorder.counted(recorder.path_number("a"), work)
    with recorder.iteration(0, warmup=False, event_set=0):
        layer()
    row = recorder.table(1).row(1, named=True)
    assert row["end_ns"] - row["begin_ns"] == 501


def test_nothing_else_happens_between_the_readings_of_a_layer_that_is_counted_alone() -> None:
    events: list[str] = []

    class Noting(Clock):
        def __call__(self) -> int:
            events.append("clock")
            return super().__call__()

    readings = Readings()
    readings.calls = events
    recorder = SpanRecorder(Noting())
    recorder.count_with([readings])
    layer = recorder.counted_alone(recorder.path_number("a"), lambda: events.append("work"))
    with recorder.iteration(0, warmup=False, event_set=0):
        layer()
    at = events.index("work")
    assert events[at - 1] in ("enter", "gap")
    assert events[at + 1] == "leave"


def test_warm_up_is_marked_and_not_counted() -> None:
    recorder = SpanRecorder(Clock())
    recorder.count_with([Readings()])
    with recorder.iteration(0, warmup=True, event_set=None), recorder.stage("inference"):
        pass
    assert recorder.table(1)["warmup"].all()
    assert not recorder.counted_spans()


def test_a_layer_that_raises_is_recorded_and_raises() -> None:
    recorder = SpanRecorder(Clock())

    def fail() -> None:
        raise ValueError("shape")

    layer = recorder.timed(recorder.path_number("a"), fail)
    with pytest.raises(ValueError, match="shape"), recorder.iteration(0, warmup=False, event_set=None):
        layer()
    assert "a" in recorder.table(1)["path"].to_list()


def test_regions_lie_outside_of_iterations() -> None:
    recorder = SpanRecorder(Clock())
    with recorder.region("idle"):
        pass
    row = recorder.table(1).row(0, named=True)
    assert (row["kind"], row["path"], row["iteration"]) == ("region", "idle", -1)


@st.composite
def _trees(draw: st.DrawFn) -> list[tuple[int, int, int, int | None]]:
    """Properly nested spans with the parent that each was made under: (thread, begin, end, parent). They may share
    edges: a clock's grain is coarser than the shortest of them."""
    spans: list[tuple[int, int, int, int | None]] = []

    def add(begin: int, end: int, parent: int | None, depth: int) -> None:
        number = len(spans)
        spans.append((1, begin, end, parent))
        at = draw(st.integers(begin, end - 1))
        while depth < 4 and at < end and draw(st.booleans()):
            until = draw(st.integers(at + 1, end))
            add(at, until, number, depth + 1)
            at = draw(st.integers(until, end))

    add(0, draw(st.integers(1, 60)), None, 0)
    return spans


@given(_trees())
def test_parents_are_found_again(tree: list[tuple[int, int, int, int | None]]) -> None:
    threads, _, ends = np.array([span[:3] for span in tree], dtype=np.int64).reshape(-1, 3).T
    assert parents(threads, ends).tolist() == [-1 if span[3] is None else span[3] for span in tree]


def test_of_spans_that_no_clock_tells_apart_the_one_that_ended_last_is_around_the_others() -> None:
    recorder = SpanRecorder(lambda: 5)
    inner = recorder.timed(recorder.path_number("a.b"), lambda: None)
    outer = recorder.timed(recorder.path_number("a"), inner)
    with recorder.iteration(0, warmup=False, event_set=None), recorder.stage("inference"):
        outer()
    table = recorder.table(1)
    assert table["path"].to_list() == ["iteration 0", "inference", "a", "a.b"]
    assert table["parent"].to_list() == [None, 0, 1, 2]


def test_what_a_module_did_itself_is_without_the_modules_that_it_called() -> None:
    """Every call takes its 5 ns, and what the clock takes to be read."""
    clock = Clock()
    recorder = SpanRecorder(clock)

    def work(*called: Callable[[], None]) -> Callable[[], None]:
        def function() -> None:
            clock.now += 5
            for one in called:
                one()

        return function

    leaf = recorder.timed(recorder.path_number("block.conv"), work())
    block = recorder.timed(recorder.path_number("block"), work(leaf, leaf))
    other = recorder.timed(recorder.path_number("other"), work())
    root = recorder.timed(recorder.path_number(""), work(block, other, block))
    for iteration in range(2):
        with recorder.iteration(iteration, warmup=False, event_set=None), recorder.stage("inference"):
            root()
    found = recorder.own_times_ns(1, {"block.conv", "other"})
    assert found.keys() == {"block.conv", own("block"), "other", own("")}
    table = recorder.table(1).filter(kind="layer", iteration=1)
    assert sum(found.values()) == table.filter(path="").select(pl.col("end_ns") - pl.col("begin_ns")).item()
    assert 4 * 5 <= found["block.conv"] <= 4 * 6 and 5 <= found["other"] <= 6
    assert recorder.own_times_ns(7, {"block.conv"}) == {}


def test_a_stage_that_is_called_like_a_layer_is_no_call_of_it() -> None:
    recorder = SpanRecorder(Clock())
    layer = recorder.timed(recorder.path_number("head"), lambda: None)
    with recorder.iteration(0, warmup=False, event_set=None), recorder.stage("head"):
        layer()
        layer()
    table = recorder.table(1)
    assert table.filter(pl.col("path") == "head").select("kind", "call").rows() == [
        ("stage", None),
        ("layer", 0),
        ("layer", 1),
    ]


def test_the_window_of_a_count_reaches_back_to_the_reading_that_it_holds() -> None:
    clock = Clock()
    recorder = SpanRecorder(clock)
    recorder.count_with([Readings()])

    def work() -> None:
        clock.now += 5_000

    first = recorder.counted(recorder.path_number("a"), work)
    second = recorder.counted(recorder.path_number("b"), work)
    with recorder.iteration(0, warmup=False, event_set=0):
        clock.now += 2 * GAP_NS
        first()
        clock.now += GAP_NS // 2
        second()
    whole, of_first, of_second = recorder.windows_ns()
    rows = recorder.table(1)
    spans = (rows["end_ns"] - rows["begin_ns"]).to_list()
    assert spans[1] < of_first < spans[1] + 20
    assert spans[2] + GAP_NS // 2 < of_second < spans[2] + GAP_NS // 2 + 20
    assert of_first + of_second <= whole


def test_calls_of_a_path_are_numbered_within_their_iteration() -> None:
    recorder = SpanRecorder(Clock())
    layer = recorder.timed(recorder.path_number("a"), lambda: None)
    other = recorder.timed(recorder.path_number("b"), lambda: None)
    for index in range(2):
        with recorder.iteration(index, warmup=False, event_set=None):
            layer()
            other()
            layer()
    table = recorder.table(1)
    assert table.filter(pl.col("path") == "a")["call"].to_list() == [0, 1, 0, 1]
    assert table.filter(pl.col("path") == "b")["call"].to_list() == [0, 0]
    assert table.filter(pl.col("kind") == "iteration")["call"].null_count() == 2


class Account(ProcessCpuTime):
    """An account of the process that grows by a microsecond each time that it is read."""

    def __init__(self, calls: list[str]) -> None:
        super().__init__()
        self.calls = calls

    def look(self) -> None:
        self.calls.append("look")

    def now(self) -> Reading:
        self.calls.append("account")
        return Reading(1000 * self.calls.count("account"), {})


def test_the_account_of_the_process_is_read_on_both_sides_of_both_edges() -> None:
    """New threads are looked for where nothing is counted: before the first edge and after the last."""
    counter = Readings()
    recorder = SpanRecorder(Clock(), Account(counter.calls))
    recorder.count_with([counter])
    with recorder.iteration(0, warmup=True, event_set=None):
        pass
    assert counter.calls == []
    with recorder.iteration(1, warmup=False, event_set=0), recorder.stage("inference"):
        pass
    edge = ["account", "full"]
    assert counter.calls == ["set 0", "look", *edge, "account", "full", "full", *edge, "look", "account"]
    (found,) = recorder.cpu_times().items()
    assert found == (1, (1000, 3000, 3000))


def test_a_thread_that_ends_within_the_iteration_has_its_number() -> None:
    """As that of an executor that a forward makes for itself."""
    recorder, met = SpanRecorder(), []
    called = recorder.timed(recorder.path_number("a"), lambda: met.append(threading.get_native_id()))
    with recorder.iteration(0, warmup=False, event_set=None):
        helper = threading.Thread(target=called)
        helper.start()
        helper.join()
    assert recorder.table(1).filter(pl.col("path") == "a")["tid"].to_list() == met != [threading.get_native_id()]


def test_of_an_iteration_that_is_over_next_to_nothing_is_held() -> None:
    """In an hour there are some 40,000: with four stages each less than a kilobyte."""
    recorder = SpanRecorder()

    def iterate(indices: range) -> None:
        for index in indices:
            with recorder.iteration(index, warmup=False, event_set=None):
                for name in ("read", "preprocess", "inference", "postprocess"):
                    with recorder.stage(name):
                        pass

    iterate(range(100))
    tracemalloc.start()
    try:
        iterate(range(100, 1100))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held / 1000 < 1000
    rows = recorder.table(1)
    assert rows.height == 5 * 1100 and rows.filter(kind="iteration")["path"].to_list()[-1] == "iteration 1099"
    assert set(recorder.cpu_times()) == set(range(1100))
