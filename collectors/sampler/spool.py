"""The file that rings were emptied into, read again: samples and switches of a whole pass."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from collectors.sampler.chains import Stacks
from collectors.sampler.records import Decoder, Samples, Switches, joined

BLOCK_BYTES: Final = 32 << 20
"""Decoded at a time: what keeps memory bounded, and arrays in reach of the caches."""


@dataclass
class Recording:
    """What the rings held."""

    samples: Samples
    switches: Switches
    stacks: Stacks
    lost: int
    throttled: int
    torn_bytes: int


def read_spool(file: Path, *, reading: bool) -> Recording:
    """Decodes the file block by block."""
    decoder = Decoder(reading=reading)
    batches = []
    with file.open("rb") as handle:
        while block := handle.read(BLOCK_BYTES):
            batches.append(decoder.decode(block))
    batches = batches or [decoder.decode(b"")]
    decoder.finish()
    return Recording(
        samples=joined([batch.samples for batch in batches]),
        switches=joined([batch.switches for batch in batches]),
        stacks=decoder.chains.stacks(),
        lost=sum(batch.lost for batch in batches),
        throttled=sum(batch.throttled for batch in batches),
        torn_bytes=decoder.torn_bytes,
    )
