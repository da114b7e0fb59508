"""The file that rings were emptied into, read again: samples and switches of a whole pass."""

from __future__ import annotations

import mmap
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from collectors.sampler.chains import Stacks
from collectors.sampler.leavings import Leaving
from collectors.sampler.records import Decoder, Samples, Switches, joined

BLOCK_BYTES: Final = 8 << 20
"""Decoded at a time: many records, and few enough for the caches."""


@dataclass
class Recording:
    """What the rings held. ``torn_bytes`` could not be decoded."""

    samples: Samples
    switches: Switches
    leavings: list[Leaving]
    stacks: Stacks
    lost: int
    throttled: int
    torn_bytes: int


def read_spool(file: Path, *, reading: bool, leaving: Collection[int] = ()) -> Recording:
    """Decodes the file block by block. ``leaving``: the events that say why threads leave their processor."""
    with file.open("rb") as handle, mapped(handle) as data:
        return decode_all(data, reading=reading, leaving=leaving)


def decode_all(
    data: memoryview, *, reading: bool, leaving: Collection[int] = (), block_bytes: int = BLOCK_BYTES
) -> Recording:
    """Decodes a stream of records. Blocks must have room for the largest record, 64 KiB."""
    decoder, batches, at = Decoder(reading=reading, leaving=leaving), [], 0
    while True:
        batch, used = decoder.decode(data[at : at + block_bytes])
        batches.append(batch)
        at += used
        if not used:
            break
    return Recording(
        samples=joined([batch.samples for batch in batches]),
        switches=joined([batch.switches for batch in batches]),
        leavings=[one for batch in batches for one in batch.leavings],
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
