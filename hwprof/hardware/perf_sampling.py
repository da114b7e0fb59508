"""The other half of perf_event_open(2): events that write records (samples, context switches, task events,
mappings) into a ring buffer. What the kernel is asked for, what a record looks like, and the limits that it sets."""

from __future__ import annotations

import ctypes
import fcntl
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hwprof.hardware import perf_event_attr
from hwprof.hardware.perf_event_attr import Flag

CONFIG_CPU_CLOCK: Final = 0
CONFIG_CONTEXT_SWITCHES: Final = 3
CONFIG_DUMMY: Final = 9
"""Of ``perf_event.TYPE_SOFTWARE``: processor time by the clock, switch-outs, and an event that never happens and only
carries records."""

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
SAMPLE_RAW: Final = 1 << 10
SAMPLE_REGS_USER: Final = 1 << 12
SAMPLE_STACK_USER: Final = 1 << 13

# --- Kinds of record (perf_event_type)
RECORD_LOST: Final = 2
RECORD_COMM: Final = 3
RECORD_EXIT: Final = 4
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

_IOC_ID: Final = 0x40082407 if platform.machine().startswith("ppc") else 0x80082407


@dataclass(frozen=True)
class SamplingAttributes:
    """What to sample, or, without a frequency or period, which other records to write. Times are CLOCK_MONOTONIC's."""

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
    context_switches: bool = False  # records: a thread is switched in or out
    task_events: bool = False  # a thread or process is created or ends
    mappings: bool = False  # executable memory is mapped
    thread_names: bool = False  # a thread is renamed

    def pack(self) -> bytes:
        """The structure's bytes in native order."""
        flags = Flag.SAMPLE_ID_ALL | Flag.USE_CLOCKID | Flag.WATERMARK
        wanted = {
            Flag.EXCLUDE_CALLCHAIN_KERNEL: self.sample_type & SAMPLE_CALLCHAIN and not self.kernel_callers,
            Flag.FREQ: self.frequency_hz,
            Flag.EXCLUDE_KERNEL | Flag.EXCLUDE_HV: self.exclude_kernel,
            Flag.DISABLED: self.disabled,
            Flag.INHERIT: self.inherit,
            Flag.CONTEXT_SWITCH: self.context_switches,
            Flag.TASK: self.task_events,
            Flag.MMAP | Flag.MMAP2: self.mappings,
            Flag.COMM: self.thread_names,
        }
        for flag, asked in wanted.items():
            flags |= flag if asked else Flag(0)
        return perf_event_attr.pack(
            self.type,
            self.config,
            flags=flags | self.precise << perf_event_attr.PRECISE_SHIFT,
            read_format=self.read_format,
            config1=self.config1,
            config2=self.config2,
            period_or_frequency=self.frequency_hz or self.period,
            sample_type=self.sample_type,
            wakeup=self.wakeup_bytes,
            user_registers=self.user_registers,
            stack_bytes=self.stack_bytes,
            clock_id=CLOCK_MONOTONIC,
            max_stack=self.max_stack,
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
