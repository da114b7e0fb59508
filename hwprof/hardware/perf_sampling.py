"""The other half of perf_event_open(2): events that write records (samples, switches, births, names, mappings) into a
ring buffer. What the kernel is asked for, what a record looks like, and the limits that it sets."""

from __future__ import annotations

import ctypes
import fcntl
import platform
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Final

CONFIG_CPU_CLOCK: Final = 0
CONFIG_CONTEXT_SWITCHES: Final = 3
CONFIG_DUMMY: Final = 9
"""Of ``perf_event.TYPE_SOFTWARE``: processor time by the clock, switch-outs, and an event that never
happens and only carries records."""

CLOCK_MONOTONIC: Final = 1

# --- What a sample holds (perf_event_sample_format), in the order in which the kernel writes it
SAMPLE_IDENTIFIER: Final = 1 << 16
SAMPLE_IP: Final = 1 << 0
SAMPLE_TID: Final = 1 << 1
SAMPLE_TIME: Final = 1 << 2
SAMPLE_CPU: Final = 1 << 7
SAMPLE_PERIOD: Final = 1 << 8
SAMPLE_READ: Final = 1 << 4
SAMPLE_CALLCHAIN: Final = 1 << 5
SAMPLE_REGS_USER: Final = 1 << 12
SAMPLE_STACK_USER: Final = 1 << 13

# --- Kinds of record (perf_event_type)
RECORD_LOST: Final = 2
RECORD_COMM: Final = 3
RECORD_THROTTLE: Final = 5
RECORD_FORK: Final = 7
RECORD_SAMPLE: Final = 9
RECORD_MMAP2: Final = 10
RECORD_LOST_SAMPLES: Final = 13
RECORD_SWITCH: Final = 14

# --- perf_event_header.misc
CPUMODE_MASK: Final = 7
CPUMODES: Final = {1: "kernel", 2: "user", 3: "hypervisor", 4: "guest kernel", 5: "guest user"}
UNKNOWN_MODE: Final = "unknown"
MISC_SWITCH_OUT: Final = 1 << 13
MISC_SWITCH_OUT_PREEMPT: Final = 1 << 14

CONTEXT_MAX: Final = 2**64 - 4095
"""Addresses of a call chain from here on are no addresses: they say whose the following ones are."""

PROT_EXEC: Final = 4

# --- perf_event_attr's flags
_DISABLED: Final = 1 << 0
_INHERIT: Final = 1 << 1
_EXCLUDE_KERNEL: Final = 1 << 5
_EXCLUDE_HV: Final = 1 << 6
_MMAP: Final = 1 << 8
_COMM: Final = 1 << 9
_FREQUENCY: Final = 1 << 10
_TASK: Final = 1 << 13
_WATERMARK: Final = 1 << 14
_PRECISE_SHIFT: Final = 15
_SAMPLE_ID_ALL: Final = 1 << 18
_EXCLUDE_CALLCHAIN_KERNEL: Final = 1 << 21
_MMAP2: Final = 1 << 23
_USE_CLOCKID: Final = 1 << 25
_CONTEXT_SWITCH: Final = 1 << 26

# type, size, config, sample_freq, sample_type, read_format, flags, wakeup, bp_type, config1, config2,
# branch_sample_type, sample_regs_user, sample_stack_user, clockid, sample_regs_intr, aux_watermark, sample_max_stack,
# reserved: the fifth published version, of Linux 4.8, the first that limits the depth of call chains
_ATTRIBUTES: Final = struct.Struct("=IIQQQQQIIQQQQIiQIHH")

_IOC_ID: Final = 0x40082407 if platform.machine().startswith("ppc") else 0x80082407


@dataclass(frozen=True)
class SamplingAttributes:
    """What to sample, or, without a frequency, what else to be told. Times are CLOCK_MONOTONIC's."""

    type: int
    config: int
    config1: int = 0
    config2: int = 0
    frequency_hz: int = 0
    period: int = 0  # instead of a frequency: one sample every so many
    sample_type: int = 0
    read_format: int = 0
    precise: int = 0  # 0 to 3: how exactly the address must be the one that caused the sample
    exclude_kernel: bool = False
    max_stack: int = 0  # addresses of a call chain
    kernel_callers: bool = False  # whether the kernel's own belong to it
    user_registers: int = 0  # which, as a mask (perf_regs.h)
    stack_bytes: int = 0  # of the user's stack, from its innermost end on
    wakeup_bytes: int = 0  # who polls is woken when so much is unread; 0: when the ring is half full
    disabled: bool = False
    inherit: bool = False
    switches: bool = False
    births: bool = False
    mappings: bool = False
    names: bool = False

    def pack(self) -> bytes:
        """The structure's bytes in native order."""
        flags = _SAMPLE_ID_ALL | _USE_CLOCKID | _WATERMARK | self.precise << _PRECISE_SHIFT
        without_kernel = self.sample_type & SAMPLE_CALLCHAIN and not self.kernel_callers
        flags |= _EXCLUDE_CALLCHAIN_KERNEL if without_kernel else 0
        flags |= _FREQUENCY if self.frequency_hz else 0
        flags |= _EXCLUDE_KERNEL | _EXCLUDE_HV if self.exclude_kernel else 0
        flags |= _DISABLED if self.disabled else 0
        flags |= _INHERIT if self.inherit else 0
        flags |= _CONTEXT_SWITCH if self.switches else 0
        flags |= _TASK if self.births else 0
        flags |= _MMAP | _MMAP2 if self.mappings else 0
        flags |= _COMM if self.names else 0
        return _ATTRIBUTES.pack(
            self.type,
            _ATTRIBUTES.size,
            self.config,
            self.frequency_hz or self.period,
            self.sample_type,
            self.read_format,
            flags,
            self.wakeup_bytes,
            0,
            self.config1,
            self.config2,
            0,
            self.user_registers,
            self.stack_bytes,
            CLOCK_MONOTONIC,
            0,
            0,
            self.max_stack,
            0,
        )


def event_id(fd: int) -> int:
    """The number by which the event's samples name it (``SAMPLE_IDENTIFIER``)."""
    number = ctypes.c_uint64()
    fcntl.ioctl(fd, _IOC_ID, number)
    return number.value


def highest_frequency_hz(root: Path = Path("/")) -> int | None:
    """``kernel.perf_event_max_sample_rate``, which the kernel lowers by itself where samples take too long; None where
    it does not tell."""
    return _number(root / "proc/sys/kernel/perf_event_max_sample_rate")


def deepest_stack(root: Path = Path("/")) -> int | None:
    """``kernel.perf_event_max_stack``: the longest call chain that the kernel records."""
    return _number(root / "proc/sys/kernel/perf_event_max_stack")


def _number(file: Path) -> int | None:
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return None
