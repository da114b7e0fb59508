"""Machine code whose instructions can be counted on fingers: for the aarch64 guest."""

from __future__ import annotations

import ctypes
import mmap
from typing import Final

# subs x0, x0, #1 ; b.ne -4 ; ret
_LOOP: Final = bytes.fromhex("000400f1e1ffff54c0035fd6")

_memory = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
_memory[: len(_LOOP)] = _LOOP

LOOP_ADDRESS: Final = ctypes.addressof(ctypes.c_char.from_buffer(_memory))
LOOP_END: Final = LOOP_ADDRESS + len(_LOOP)

loop = ctypes.CFUNCTYPE(None, ctypes.c_uint64)(LOOP_ADDRESS)
"""``loop(n)`` executes exactly 2 n + 1 instructions (n > 0) besides the call. It runs without the interpreter lock."""

A_WHILE: Final = 30_000_000
"""Turns, each 2 ns an instruction, after which an event that stayed 0 is told."""
