"""The encoder benchmark compares like with like: every writer writes the same events."""

from __future__ import annotations

import io
import json

import pytest

from scripts.benchmarks import encoder
from tests.support import trace_decoding as decoding
from tests.support.requirements import require_module

Plain = list[tuple[float, str, str | None, str | None, str | None]]
LETTER = {1: "B", 2: "E"}


def written(name: str, detailed: bool) -> io.BytesIO:
    file = io.BytesIO()
    prepared = [encoder.WRITERS[name].prepare(batch) for batch in encoder.batches(400)]
    encoder.encode(name, prepared, detailed, file)
    return file


def by_columns(detailed: bool) -> Plain:
    return [
        (event.time_ns, LETTER[event.type], event.name, event.category, event.annotations.get("input_shapes"))
        for event in decoding.events(written("columns", detailed))
    ]


def by_builder(detailed: bool) -> Plain:
    return [
        (
            packet.timestamp,
            LETTER[packet.track_event.type],
            packet.track_event.name or None,
            packet.track_event.categories[0] if packet.track_event.categories else None,
            packet.track_event.debug_annotations[0].string_value if packet.track_event.debug_annotations else None,
        )
        for packet in decoding.packets(written("builder", detailed))
        if packet.HasField("track_event")
    ]


def by_json(detailed: bool) -> Plain:
    return [
        (
            round(event["ts"] * 1e3),
            event["ph"],
            event.get("name"),
            event.get("cat"),
            event.get("args", {}).get("input_shapes"),
        )
        for event in json.loads(written("json", detailed).getvalue())["traceEvents"]
    ]


@pytest.mark.parametrize("detailed", [False, True])
def test_all_writers_write_the_same_events(detailed: bool) -> None:
    require_module("perfetto")
    ours = by_columns(detailed)
    assert len(ours) == 400
    assert ours == by_builder(detailed)
    assert ours == by_json(detailed)
