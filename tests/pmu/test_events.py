"""``hwprof events`` on a kernel with a PMU: what the catalogue describes opens, or says why it does not."""

from __future__ import annotations

import msgspec
import pytest

from hwprof.hardware.catalogue import microarchitecture
from hwprof.report.document.events import EventList
from tests.pmu.machine import Results


@pytest.fixture
def listed(found: Results) -> EventList:
    return msgspec.convert(found["events"], EventList)


def test_the_processor_is_found_and_counts(listed: EventList) -> None:
    assert listed.microarchitectures == ["arm-neoverse-n1"]
    assert listed.this_machine and listed.unavailable is None


def test_every_event_of_the_file_is_asked_of_the_kernel(listed: EventList) -> None:
    """QEMU counts cycles and instructions; the kernel's driver opens the other events as well, which stay at 0."""
    known = microarchitecture("arm-neoverse-n1")
    assert known is not None
    events = {event.name: event for event in listed.events}
    assert set(events) >= {event.name for event in known.catalogue.events}
    assert events["cycles"].unavailable is None and events["instructions"].unavailable is None
    assert events["mine"].unavailable is None
    for event in listed.events:
        assert event.unavailable is None or event.unavailable.reason, event.name


def test_metrics_follow_their_events(listed: EventList) -> None:
    metrics = {metric.name: metric for metric in listed.metrics}
    assert metrics["cpi"].available
    closed = {event.name for event in listed.events if event.unavailable is not None}
    for metric in listed.metrics:
        assert metric.available == (not closed & set(metric.events)), metric.name
