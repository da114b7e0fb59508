"""``struct perf_event_attr`` of perf_event_open(2): its one layout, its flags, and how it is packed."""

from __future__ import annotations

import struct
from enum import IntFlag
from typing import Final


class Flag(IntFlag):
    """The structure's bit field, as far as it is used here; ``precise_ip`` is the number at ``PRECISE_SHIFT``."""

    DISABLED = 1 << 0
    INHERIT = 1 << 1
    EXCLUDE_USER = 1 << 4
    EXCLUDE_KERNEL = 1 << 5
    EXCLUDE_HV = 1 << 6
    MMAP = 1 << 8
    COMM = 1 << 9
    FREQ = 1 << 10
    TASK = 1 << 13
    WATERMARK = 1 << 14
    SAMPLE_ID_ALL = 1 << 18
    EXCLUDE_CALLCHAIN_KERNEL = 1 << 21
    MMAP2 = 1 << 23
    USE_CLOCKID = 1 << 25
    CONTEXT_SWITCH = 1 << 26


PRECISE_SHIFT: Final = 15

# type, size, config, sample_period or sample_freq, sample_type, read_format, flags, wakeup, bp_type, config1, config2,
# branch_sample_type, sample_regs_user, sample_stack_user, clockid, sample_regs_intr, aux_watermark, sample_max_stack,
# reserved
_LAYOUT: Final = struct.Struct("=IIQQQQQIIQQQQIiQIHH")
_SIZE: Final = struct.Struct("=I")
_SIZE_OFFSET: Final = 4

PUBLISHED_SIZES: Final = (64, 72, 80, 96, 104, 112)
"""PERF_ATTR_SIZE_VER0 (which every kernel takes) to VER5 (Linux 4.8, the first to limit the depth of call chains)."""


def pack(
    type: int,
    config: int,
    *,
    flags: int,
    read_format: int = 0,
    config1: int = 0,
    config2: int = 0,
    period_or_frequency: int = 0,
    sample_type: int = 0,
    wakeup: int = 0,
    user_registers: int = 0,
    stack_bytes: int = 0,
    clock_id: int = 0,
    max_stack: int = 0,
) -> bytes:
    """The structure's bytes in native order: of the published sizes the smallest that holds all fields, since an old
    kernel refuses what it does not know."""
    whole = bytearray(
        _LAYOUT.pack(
            type,
            0,
            config,
            period_or_frequency,
            sample_type,
            read_format,
            flags,
            wakeup,
            0,
            config1,
            config2,
            0,
            user_registers,
            stack_bytes,
            clock_id,
            0,
            0,
            max_stack,
            0,
        )
    )
    size = next(size for size in PUBLISHED_SIZES if not any(whole[size:]))
    _SIZE.pack_into(whole, _SIZE_OFFSET, size)
    return bytes(whole[:size])
