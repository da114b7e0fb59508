"""Both kinds of attributes are packed by one function; the kernel's reading of the bytes is the judge of the layout."""

from __future__ import annotations

import errno
import os
import struct
from pathlib import Path
from typing import Any

import pytest

from hwprof.hardware import perf_event, perf_sampling
from hwprof.hardware.perf_event import Attributes, Packable
from hwprof.hardware.perf_event_attr import PUBLISHED_SIZES, Flag, pack
from hwprof.hardware.perf_sampling import SamplingAttributes
from tests.support.requirements import missing

CPU_CLOCK = (perf_event.TYPE_SOFTWARE, perf_sampling.CONFIG_CPU_CLOCK)


def size_of(packed: bytes) -> int:
    return int(struct.unpack_from("=I", packed, 4)[0])


@pytest.mark.parametrize(
    ("fields", "size"),
    [
        ({}, 64),
        ({"config1": 1}, 64),
        ({"config2": 1}, 72),
        ({"user_registers": 1}, 96),
        ({"stack_bytes": 8}, 96),
        ({"clock_id": 1}, 96),
        ({"max_stack": 1}, 112),
        ({"config2": 1, "max_stack": 1}, 112),
    ],
)
def test_the_structure_is_as_short_as_its_fields_allow(fields: dict[str, Any], size: int) -> None:
    packed = pack(1, 2, flags=0, **fields)
    assert len(packed) == size_of(packed) == size and size in PUBLISHED_SIZES


def test_what_is_sampled_stands_where_the_kernel_looks_for_it() -> None:
    attributes = SamplingAttributes(
        4, 5, 6, 7, frequency_hz=999, sample_type=perf_sampling.SAMPLE_IP, precise=2, max_stack=32, task_events=True
    )
    packed = attributes.pack()
    assert struct.unpack_from("=IIQQQQQII", packed) == (
        4,
        112,
        5,
        999,
        perf_sampling.SAMPLE_IP,
        0,
        Flag.SAMPLE_ID_ALL | Flag.USE_CLOCKID | Flag.WATERMARK | Flag.FREQ | Flag.TASK | 2 << 15,
        0,
        0,
    )
    assert struct.unpack_from("=QQ", packed, 56) == (6, 7)
    assert struct.unpack_from("=iQIHH", packed, 92) == (perf_sampling.CLOCK_MONOTONIC, 0, 0, 32, 0)


def opened(attributes: Packable) -> int:
    """A descriptor on this thread; where the kernel lets this user open nothing, that is missing."""
    try:
        os.close(perf_event.open_event(Attributes(*CPU_CLOCK, exclude_kernel=True)))
    except OSError as error:
        missing(f"perf_event_open ({error})")
    return perf_event.open_event(attributes)


@pytest.mark.parametrize(
    "attributes",
    [
        Attributes(*CPU_CLOCK, exclude_kernel=True),
        SamplingAttributes(*CPU_CLOCK, exclude_kernel=True, frequency_hz=99, sample_type=perf_sampling.SAMPLE_IP),
        SamplingAttributes(
            *CPU_CLOCK, exclude_kernel=True, period=10**6, sample_type=perf_sampling.SAMPLE_CALLCHAIN, max_stack=3
        ),
        SamplingAttributes(
            perf_event.TYPE_SOFTWARE,
            perf_sampling.CONFIG_DUMMY,
            exclude_kernel=True,
            mappings=True,
            task_events=True,
            thread_names=True,
            context_switches=True,
        ),
    ],
    ids=["64 bytes", "96 bytes", "112 bytes", "records only"],
)
def test_the_kernel_takes_every_size(attributes: Packable) -> None:
    os.close(opened(attributes))


def test_the_kernel_finds_each_field_of_the_longest_structure() -> None:
    """A depth beyond its limit, a clock that is none and a stack of no whole words are each refused: so the kernel read
    them where they were written."""
    os.close(opened(SamplingAttributes(*CPU_CLOCK, exclude_kernel=True, frequency_hz=99)))
    deepest = perf_sampling.deepest_stack(Path("/")) or 127
    chain, stack = perf_sampling.SAMPLE_CALLCHAIN, perf_sampling.SAMPLE_STACK_USER
    too_deep = SamplingAttributes(
        *CPU_CLOCK, exclude_kernel=True, frequency_hz=99, sample_type=chain, max_stack=deepest + 1
    )
    with pytest.raises(OSError) as refused:
        perf_event.open_event(too_deep)
    assert refused.value.errno == errno.EOVERFLOW
    odd = SamplingAttributes(*CPU_CLOCK, exclude_kernel=True, frequency_hz=99, sample_type=stack, stack_bytes=13)
    with pytest.raises(OSError) as refused:
        perf_event.open_event(odd)
    assert refused.value.errno == errno.EINVAL
