from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwprof.trace import encoder
from hwprof.trace.annotations import SharedAnnotations
from hwprof.trace.encoder import Events
from hwprof.trace.packets import EventType
from tests.support import trace_decoding as decoding
from tests.support.trace_decoding import CLOCK, Event

START_NS = CLOCK.monotonic_ns
TRACK = 2

gaps = st.integers(0, 300) | st.integers(0, 10**12)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
flows = st.integers(0, (1 << 64) - 1)


@st.composite
def event_lists(draw: st.DrawFn) -> list[Event]:
    """Events in order of time; whether they nest is no concern of the encoder."""
    time_ns, made = START_NS, []
    for _ in range(draw(st.integers(1, 40))):
        time_ns += draw(gaps)
        event = Event(time_ns, draw(st.sampled_from([EventType.BEGIN, EventType.END])), TRACK)
        if event.type == EventType.BEGIN:
            event.name = draw(texts)
            event.category = draw(st.none() | texts)
            event.annotations = {key: draw(texts) for key in draw(st.sets(st.sampled_from(["shapes", "stream"])))}
            event.flows = [flow for flow in [draw(flows)] if flow]
            event.terminating_flows = [flow for flow in [draw(flows)] if flow]
        made.append(event)
    return made


@settings(deadline=None)
@given(event_lists(), st.integers(1, 7))
def test_columns_read_back_as_written(written: list[Event], batch: int) -> None:
    file, sequence = decoding.sequence()
    columns = Events(
        np.array([event.time_ns for event in written]),
        np.array([event.type for event in written], np.uint8),
        sequence.names(event.name for event in written),
        sequence.categories(event.category for event in written),
        {key: sequence.strings(event.annotations.get(key) for event in written) for key in ("shapes", "stream")},
        np.array([sum(event.flows) for event in written], np.uint64),
        np.array([sum(event.terminating_flows) for event in written], np.uint64),
    )
    for start in range(0, len(written), batch):
        sequence.write(columns.rows(start, start + batch))
    assert decoding.events(file) == written


@settings(deadline=None)
@given(event_lists())
def test_one_by_one_and_by_the_column_are_the_same(written: list[Event]) -> None:
    file, sequence = decoding.sequence()
    for event in written:
        if event.type == EventType.END:
            sequence.end(event.time_ns)
        else:
            assert event.name is not None
            sequence.begin(
                event.time_ns,
                event.name,
                category=event.category,
                annotations=event.annotations,
                flows=event.flows,
                terminating_flows=event.terminating_flows,
            )
    assert decoding.events(file) == written


@settings(deadline=None)
@given(st.lists(st.tuples(gaps, st.integers(-(1 << 63), (1 << 63) - 1)), min_size=1, max_size=30))
def test_integer_counters_are_exact(values: list[tuple[int, int]]) -> None:
    file, sequence = decoding.sequence()
    time_ns = START_NS + np.cumsum([gap for gap, _ in values])
    counts = np.array([value for _, value in values])
    sequence.write(Events(time_ns, np.full(len(values), EventType.COUNTER, np.uint8), value=counts))
    sequence.count(int(time_ns[-1]), values[-1][1])
    read = decoding.events(file)
    assert [event.value for event in read] == [*counts.tolist(), values[-1][1]]
    assert [event.time_ns for event in read] == [*time_ns.tolist(), time_ns[-1]]


@settings(deadline=None)
@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=30))
def test_double_counters_are_exact(values: list[float]) -> None:
    file, sequence = decoding.sequence()
    time_ns = START_NS + np.arange(len(values))
    sequence.write(Events(time_ns, np.full(len(values), EventType.COUNTER, np.uint8), value=np.array(values)))
    sequence.count(int(time_ns[-1]), values[-1])
    assert [event.value for event in decoding.events(file)] == [*values, values[-1]]


leaves = st.booleans() | st.integers(-(1 << 63), (1 << 63) - 1) | st.floats(allow_nan=False) | texts
mappings = st.dictionaries(
    texts,
    st.recursive(
        leaves,
        lambda inner: st.lists(inner, min_size=1, max_size=4) | st.dictionaries(texts, inner, min_size=1, max_size=4),
        max_leaves=12,
    ),
    max_size=6,
)


@settings(deadline=None)
@given(mappings)
def test_annotations_of_any_shape_read_back(given_annotations: dict[str, Any]) -> None:
    file, sequence = decoding.sequence()
    sequence.begin(START_NS, "slice", annotations=given_annotations)
    (event,) = decoding.events(file)
    assert event.annotations == given_annotations


def test_what_annotations_cannot_say_as_it_is() -> None:
    file, sequence = decoding.sequence()
    sequence.begin(START_NS, "slice", annotations={"none": None, "large": 1 << 63, "nested": {"none": None, "one": 1}})
    (event,) = decoding.events(file)
    assert event.annotations == {"large": str(1 << 63), "nested": {"one": 1}}
    with pytest.raises(TypeError, match="object"):
        sequence.begin(START_NS, "slice", annotations={"thing": object()})


def test_a_lasting_mapping_is_the_same_each_time() -> None:
    file, sequence = decoding.sequence()
    layer, other = SharedAnnotations(type="Conv2d", index=3), SharedAnnotations(type="SiLU", index=4)
    for facts in (layer, other, layer):
        sequence.begin(START_NS, "slice", annotations={"layer": facts})
    assert [event.annotations["layer"] for event in decoding.events(file)] == [layer, other, layer]


@pytest.mark.parametrize("late", [0, 3, encoder.BATCH_ROWS])
def test_a_time_that_falls_is_refused(late: int) -> None:
    _, sequence = decoding.sequence()
    time_ns = START_NS + np.arange(encoder.BATCH_ROWS + 10)
    sequence.end(START_NS)
    time_ns[late] = START_NS - 1
    with pytest.raises(ValueError, match=r"comes after|out of order"):
        sequence.write(Events(time_ns, np.full(len(time_ns), EventType.END, np.uint8)))
    with pytest.raises(ValueError, match="comes after"):
        sequence.end(START_NS - 1)


def test_no_events_write_nothing() -> None:
    file, sequence = decoding.sequence()
    before = len(file.getvalue())
    sequence.write(Events(np.empty(0, np.int64), np.empty(0, np.uint8)))
    assert len(file.getvalue()) == before


def test_more_names_than_one_byte_can_number_and_more_events_than_a_batch() -> None:
    file, sequence = decoding.sequence()
    names = [f"aten::operator_{number}" for number in range(20_000)]
    time_ns = START_NS + 1_000 * np.arange(len(names))
    sequence.write(Events(time_ns, np.full(len(names), EventType.BEGIN, np.uint8), sequence.names(names)))
    read = decoding.events(file)
    assert [event.name for event in read] == names
    assert [event.time_ns for event in read] == time_ns.tolist()


def test_the_first_packet_ties_the_clocks_together() -> None:
    file, _ = decoding.writer()
    snapshot = decoding.packets(file)[0].clock_snapshot
    assert snapshot.primary_trace_clock == 6
    assert {reading.clock_id: reading.timestamp for reading in snapshot.clocks} == {
        6: CLOCK.boottime_ns,
        3: CLOCK.monotonic_ns,
        5: CLOCK.monotonic_raw_ns,
        1: CLOCK.realtime_ns,
    }


def test_descriptors_give_the_tree() -> None:
    file, trace = decoding.writer()
    process = trace.process(77, "a process")
    trace.thread(77, 78, "a thread")
    group = trace.track("group", process, ordered=True)
    trace.counter("watts", group, unit="W", rank=3, share_axis="power", description="of a socket")
    described = [packet.track_descriptor for packet in decoding.packets(file)[1:]]
    assert [(d.process.pid, d.process.process_name) for d in described[:1]] == [(77, "a process")]
    assert (described[1].thread.pid, described[1].thread.tid, described[1].thread.thread_name) == (77, 78, "a thread")
    assert (described[2].name, described[2].parent_uuid, described[2].child_ordering) == ("group", process, 3)
    counter = described[3]
    assert (counter.parent_uuid, counter.sibling_order_rank, counter.counter.unit_name) == (group, 3, "W")
    assert (counter.counter.y_axis_share_key, counter.description) == ("power", "of a socket")
    assert not described[2].HasField("description")
    assert len({descriptor.uuid for descriptor in described}) == 4


def test_events_are_small() -> None:
    file, sequence = decoding.sequence()
    count = 50_000
    time_ns = START_NS + np.cumsum(np.random.default_rng(0).integers(200, 12_000, 2 * count))
    numbers = np.zeros(2 * count, np.uint32)
    numbers[::2] = sequence.names(f"aten::op_{number % 100}" for number in range(count))
    kinds = np.tile(np.array([EventType.BEGIN, EventType.END], np.uint8), count)
    before = len(file.getvalue())
    sequence.write(Events(time_ns, kinds, numbers))
    assert (len(file.getvalue()) - before) / (2 * count) <= 15
