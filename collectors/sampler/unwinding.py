"""The callers of a thread that waits, from its registers and the innermost part of its stack."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from functools import cache
from typing import Final

import numpy as np

from collectors.sampler.switch_outs import INSTRUCTION, STACK_POINTER, SwitchOut
from collectors.shared.symbols.frames import Frame, open_call_frames
from collectors.shared.symbols.library import as_address, open_library
from collectors.shared.symbols.mappings import Mapping
from collectors.shared.symbols.ranges import NONE, Ranges

DEEPEST: Final = 8
"""Callers that are looked for: those that show what is waited for are next to the wait."""

WORD: Final = 8


class Unwinder:
    """Of one process, with its ``mappings``."""

    def __init__(self, mappings: Sequence[Mapping], machine: str = platform.machine()) -> None:
        self._mappings = mappings
        self._ranges = Ranges.of(
            np.array([mapping.start for mapping in mappings], dtype=np.uint64),
            np.array([mapping.end for mapping in mappings], dtype=np.uint64),
        )
        self._frame_at = cache(self._frame)
        self._stack_pointer = STACK_POINTER.get(machine)
        self._instruction = INSTRUCTION.get(machine)

    def callers(self, switch_out: SwitchOut) -> list[int]:
        """The addresses that the innermost function and its callers return to, innermost first, as far as the part of
        the stack and the files' own tables lead."""
        found: list[int] = []
        if self._stack_pointer is None or self._instruction is None or not len(switch_out.stack):
            return found
        registers = dict(switch_out.registers)
        base, stack = registers[self._stack_pointer], switch_out.stack.tolist()
        at = registers[self._instruction]
        while len(found) < DEEPEST:
            frame = self._frame_at(at)
            known = _outer(frame, registers, base, stack) if frame is not None else None
            if frame is None or known is None:
                break
            registers = {**registers, **known, self._stack_pointer: registers[frame.register] + frame.offset}
            returns_to = registers.get(frame.return_register)
            if not returns_to or (found and returns_to == found[-1] and not known):
                break
            found.append(returns_to)
            at = returns_to - 1  # a call may be the last instruction of its function
        return found

    def _frame(self, address: int) -> Frame | None:
        number = int(self._ranges.find(np.array([address], dtype=np.uint64))[0])
        if number == NONE:
            return None
        mapping = self._mappings[self._ranges.owners[number]]
        if mapping.file is None:
            return None
        begin = open_library(mapping.file).address(mapping.offset)
        place = as_address(address - mapping.start + begin) if begin is not None else None
        if place is None:
            return None
        frames = open_call_frames(mapping.file)
        return frames.at(place) if frames is not None else None


def _outer(frame: Frame, registers: dict[int, int], base: int, stack: list[int]) -> dict[int, int] | None:
    """The caller's registers that the frame keeps; None where one lies beyond that part of the stack."""
    if frame.register not in registers:
        return None
    begin = registers[frame.register] + frame.offset - base
    known = {}
    for register, offset in frame.saved:
        place, rest = divmod(begin + offset, WORD)
        if rest or not 0 <= place < len(stack):
            return None
        known[register] = stack[place]
    return known
