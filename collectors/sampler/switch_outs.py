"""Why threads leave their processor: a sample at each switch-out, with what the kernel and the program were in.

Records are the sampler's, but hold no counters; behind the callers come the program's registers and the innermost
part of its stack, from which the callers are found in code without frame pointers too.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hwprof.hardware import perf_event, perf_sampling
from hwprof.hardware.perf_sampling import CONTEXT_MAX, SamplingAttributes

Words = NDArray[np.uint64]

STACK_BYTES: Final = 1024
"""Of a waiting thread's stack: libc's own frames and those of the next callers."""

CALLERS: Final = 24
"""The operating system's functions, and the program's innermost one."""

CONTEXT_USER: Final = 2**64 - 512
"""The mark in a call chain before the program's own addresses."""

REGISTERS: Final[dict[str, dict[int, int]]] = {
    "x86_64": {1: 3, 6: 6, 7: 7, 8: 16, **{perf: perf - 8 for perf in range(20, 24)}},
    "aarch64": {number: number for number in range(19, 33)},
}
"""By machine: the registers that are recorded, perf's number to DWARF's: those that a function keeps for its caller,
the stack pointer, and the address of the instruction."""

STACK_POINTER: Final = {"x86_64": 7, "aarch64": 31}
INSTRUCTION: Final = {"x86_64": 16, "aarch64": 32}

_TID, _TIME, _CALLERS = 3, 4, 7  # words of a record
_HALF: Final = 32


@dataclass(frozen=True)
class SwitchOut:
    """One switch_out. ``kernel``: the operating system's functions, innermost first; ``user``: the instruction that the
    program was at, None where it is not known. ``registers`` by DWARF's numbers; ``stack`` from its pointer on."""

    tid: int
    time_ns: int
    kernel: tuple[int, ...]
    user: int | None
    registers: dict[int, int]
    stack: Words


def attributes(identifying: int) -> SamplingAttributes:
    """The event; ``identifying``: what every record holds."""
    registers = REGISTERS.get(platform.machine(), {})
    parts = perf_sampling.SAMPLE_IP | perf_sampling.SAMPLE_PERIOD | perf_sampling.SAMPLE_CALLCHAIN
    if registers:
        parts |= perf_sampling.SAMPLE_REGS_USER | perf_sampling.SAMPLE_STACK_USER
    return SamplingAttributes(
        perf_event.TYPE_SOFTWARE,
        perf_sampling.CONFIG_CONTEXT_SWITCHES,
        period=1,
        sample_type=identifying | parts,
        max_stack=CALLERS,
        kernel_callers=True,
        user_registers=sum(1 << number for number in registers),
        stack_bytes=STACK_BYTES if registers else 0,
        disabled=True,
    )


def parse_switch_out(words: Words, machine: str = platform.machine()) -> SwitchOut | None:
    """One record's words, its header first; None where it is damaged."""
    count = int(words[_CALLERS]) if len(words) > _CALLERS else len(words)
    at = _CALLERS + 1 + count
    if at > len(words):
        return None
    kernel, user = _callers(words[_CALLERS + 1 : at])
    registers, stack = _registers_and_stack(words[at:], sorted(REGISTERS.get(machine, {}).items()))
    return SwitchOut(int(words[_TID]) >> _HALF, int(words[_TIME]), kernel, user, registers, stack)


def _callers(words: Words) -> tuple[tuple[int, ...], int | None]:
    chain = words.tolist()
    users = chain.index(CONTEXT_USER) if CONTEXT_USER in chain else len(chain)
    kernel = tuple(address for address in chain[:users] if address < CONTEXT_MAX)
    return kernel, next(iter(chain[users + 1 :]), None)


def _registers_and_stack(words: Words, registers: list[tuple[int, int]]) -> tuple[dict[int, int], Words]:
    """Nothing where the kernel recorded none: a thread of the kernel's has no user registers."""
    count = len(registers)
    if not registers or len(words) < 1 + count + 1 or not words[0]:
        return {}, words[:0]
    values = dict(zip((dwarf for _, dwarf in registers), words[1 : 1 + count].tolist(), strict=True))
    size = int(words[1 + count]) // 8
    stack = words[2 + count : 2 + count + size]
    filled = int(words[2 + count + size]) // 8 if size and len(words) > 2 + count + size else 0
    return values, stack[:filled]
