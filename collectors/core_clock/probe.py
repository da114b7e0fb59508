"""How fast the core runs: chains of dependent instructions of known latency, timed by the time stamp counter.

A register multiplication takes 3 cycles on every Intel core since Nehalem and on every Zen, an addition of registers 1
(Fog, Instruction tables; uops.info). Each link waits for the one before, so a chain takes its latency whatever else the
core does, another thread on it included. Two kinds of chains that agree show that the latencies hold here.
"""

from __future__ import annotations

import ctypes
from typing import Final

from collectors.shared.machine_code import Function
from collectors.shared.time_stamp_counter import READ

CYCLES: Final = 48
"""Of a round of either chain."""

MULTIPLICATIONS: Final = bytes.fromhex("480fafc9") * (CYCLES // 3)  # imul rcx, rcx
ADDITIONS: Final = bytes.fromhex("4801c9") * CYCLES  # add rcx, rcx

ROUNDS: Final = 200
"""Of a chain: 2.5 µs, so that the time stamp counter's steps (some dozen ticks) are 1% of it."""

TRIES: Final = 4
"""The fastest counts: interrupts, the hypervisor's too, only ever add time."""


def chain(links: bytes) -> Function:
    """A function of one argument, the number of rounds (1 or more), that returns the ticks they took."""
    counted = links + bytes.fromhex("48ffcf")  # dec rdi
    rounds = counted + b"\x0f\x85" + (-(len(counted) + 6)).to_bytes(4, "little", signed=True)  # jnz to the first link
    begin = READ + bytes.fromhex("4889c6 b903000000")  # mov rsi, rax; mov ecx, 3
    return Function(begin + rounds + READ + bytes.fromhex("4829f0 c3"), ctypes.c_uint64, ctypes.c_long)


class Probe:
    """Both chains."""

    def __init__(self) -> None:
        self._chains = chain(MULTIPLICATIONS), chain(ADDITIONS)

    def __call__(self) -> tuple[float, float]:
        """Cycles per tick of the time stamp counter by multiplications, and by additions; takes about 50 µs."""
        multiplications, additions = self._chains
        return _cycles_per_tick(multiplications), _cycles_per_tick(additions)


def _cycles_per_tick(function: Function) -> float:
    around = min(int(function.call(1)) for _ in range(TRIES))  # reading the counter, and one round
    ticks = min(int(function.call(ROUNDS)) for _ in range(TRIES)) - around
    return (ROUNDS - 1) * CYCLES / max(1, ticks)
