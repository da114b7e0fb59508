"""Where each record of a stream begins.

A record's size stands in its header, so that each must be looked at to find the next one: a loop, and for millions of
records a slow one. Instead a stream is walked at many places at once, from words that look like headers; whether they
are any is proven afterwards, since each walk must end exactly where the next one began, and the first one began at the
beginning. What cannot be proven is walked record by record.
"""

from __future__ import annotations

from array import array
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hwprof.hardware.perf_sampling import RECORD_SAMPLE

Words = NDArray[np.uint64]
Numbers = NDArray[np.int64]

WORD: Final = 8

CHUNK_WORDS: Final = 1024
"""From one walk's beginning to the next one's: some dozens of records, all steps of which are done at once."""

SEARCHED_WORDS: Final = 128
"""Of each chunk, for a sample's header: most samples are shorter."""

_LOW: Final = np.uint64(0xFFFF_FFFF)
_SIZE: Final = np.uint64(48)


def record_offsets(data: bytes | memoryview, chunk_words: int = CHUNK_WORDS) -> tuple[Numbers, int]:
    """Where each whole record begins, in 64-bit words, and how many bytes these records have; ends at a record that is
    cut off, or whose size is impossible."""
    words = np.frombuffer(data, dtype=np.uint64, count=len(data) // WORD)
    proven = _proven(words, chunk_words) if len(words) > 2 * chunk_words else np.zeros(1, dtype=np.int64)
    last = int(proven[-1])
    rest, used = walk(memoryview(data)[last * WORD :])
    return np.concatenate((proven[:-1], rest + last)), used + last * WORD


def walk(data: memoryview) -> tuple[Numbers, int]:
    """``record_offsets``, record by record."""
    halves = data[: len(data) // WORD * WORD].cast("B").cast("H")
    begins = array("q")
    append = begins.append
    at, end = 0, len(halves)  # in 16-bit halves: a header's last one is its record's size in bytes
    while at < end:
        size = halves[at + 3]
        if size & 7 or not size:
            break
        append(at)
        at += size >> 1
    if at > end:
        at = begins.pop()
    return np.frombuffer(begins, dtype=np.int64) // 4, at * 2


def _proven(words: Words, chunk_words: int) -> Numbers:
    """Record beginnings in order, every record up to the last of them; only the first one where nothing is proven."""
    starts = _starts(words, chunk_words)
    at, goal = starts[:-1], starts[1:]
    begins = np.zeros(len(words), dtype=bool)
    begins[starts[-1]] = True
    while len(at):
        begins[at] = True
        sizes = _sizes(words.take(at))
        at = at + sizes
        on_the_way = at < goal
        if not np.array_equal(at[~on_the_way], goal[~on_the_way]) or not sizes.all():
            return np.zeros(1, dtype=np.int64)
        at, goal = at[on_the_way], goal[on_the_way]
    return np.flatnonzero(begins)


def _starts(words: Words, chunk_words: int) -> Numbers:
    """The beginning, and the first word of each chunk that looks like a sample's header."""
    places = np.arange(chunk_words, len(words) - chunk_words, chunk_words)
    near = words[places[:, None] + np.arange(min(chunk_words, SEARCHED_WORDS))]
    headers = ((near & _LOW) == RECORD_SAMPLE) & (_sizes(near) > 0)
    found = headers.any(axis=1)
    starts = places[found] + headers[found].argmax(axis=1)
    return np.concatenate((np.zeros(1, dtype=np.int64), starts))


def _sizes(headers: Words) -> Numbers:
    """In words; 0 where that is impossible."""
    size = (headers >> _SIZE).astype(np.int64)
    return np.where(size & 7, 0, size >> 3)
