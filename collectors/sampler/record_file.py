"""The file that rings were emptied into, read again: samples and switches of a whole pass."""

from __future__ import annotations

import mmap
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from collectors.sampler.call_chains import Stacks
from collectors.sampler.record_decoder import Decoder
from collectors.sampler.records import Samples, Switches, joined
from collectors.sampler.switch_outs import SwitchOut
from collectors.sampler.wakeups import Tracepoint, Wakeups

BLOCK_BYTES: Final = 8 << 20
"""Decoded at a time: many records, and few enough for the caches."""


@dataclass
class Recording:
    """What the rings held. ``torn_bytes`` could not be decoded."""

    samples: Samples
    switches: Switches
    switch_outs: list[SwitchOut]
    wakeups: Wakeups
    stacks: Stacks
    lost: int
    throttled: int
    torn_bytes: int


def read_record_file(
    file: Path,
    *,
    reading: bool,
    switch_out_events: Collection[int] = (),
    wakeup_events: Collection[int] = (),
    tracepoint: Tracepoint | None = None,
) -> Recording:
    """Decodes the file block by block. ``switch_out_events``: the events that sample switch-outs, ``wakeup_events``:
    those that record wake-ups by the ``tracepoint``."""
    decoder = Decoder(
        reading=reading,
        switch_out_events=switch_out_events,
        wakeup_events=wakeup_events,
        tracepoint=tracepoint,
    )
    with file.open("rb") as handle, mapped(handle) as data:
        return _decoded(data, decoder, BLOCK_BYTES)


def decode_all(
    data: memoryview, *, reading: bool, switch_out_events: Collection[int] = (), block_bytes: int = BLOCK_BYTES
) -> Recording:
    """Decodes a stream of records. Blocks must have room for the largest record, 64 KiB."""
    return _decoded(data, Decoder(reading=reading, switch_out_events=switch_out_events), block_bytes)


def _decoded(data: memoryview, decoder: Decoder, block_bytes: int) -> Recording:
    batches, at = [], 0
    while True:
        batch, used = decoder.decode(data[at : at + block_bytes])
        batches.append(batch)
        at += used
        if not used:
            break
    return Recording(
        samples=joined([batch.samples for batch in batches]),
        switches=joined([batch.switches for batch in batches]),
        switch_outs=[one for batch in batches for one in batch.switch_outs],
        wakeups=joined([batch.wakeups for batch in batches]),
        stacks=decoder.chains.stacks(),
        lost=sum(batch.lost for batch in batches),
        throttled=sum(batch.throttled for batch in batches),
        torn_bytes=len(data) - at + decoder.damaged_bytes,
    )


@contextmanager
def mapped(handle: BinaryIO) -> Iterator[memoryview]:
    """The file's bytes, read as they are looked at; an empty file cannot be mapped."""
    if not os.fstat(handle.fileno()).st_size:
        yield memoryview(b"")
        return
    with mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) as memory, memoryview(memory) as data:
        yield data
