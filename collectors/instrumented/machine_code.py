"""Machine code that is known to the byte: loops for the self-test, and a function that keeps every vector register."""

from __future__ import annotations

from functools import cache
from typing import Final

import msgspec

from collectors.instrumented.facts import Fact
from hwprof.data_files import read_toml


class Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``each`` × rounds + ``once``."""

    each: int
    once: int


class Loop(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A function of one argument, the number of rounds; see ``loops.toml``."""

    name: str
    assembly: str
    code: str
    needs: tuple[str, ...] = ()
    result: Line | None = None
    once: dict[str, int]
    each: dict[str, int]

    @property
    def machine_code(self) -> bytes:
        """What is executed."""
        return bytes.fromhex("".join(self.code.split()))

    def expected(self, rounds: int) -> list[int]:
        """Every fact of one call, by its index."""
        names = [fact.name.lower() for fact in Fact]
        return [self.once.get(name, 0) + rounds * self.each.get(name, 0) for name in names]


class _File(msgspec.Struct, forbid_unknown_fields=True):
    loop: tuple[Loop, ...]


@cache
def loops() -> tuple[Loop, ...]:
    """All that are known."""
    return read_toml(__name__, "loops.toml", _File).loop


# The registers of x86-64 as the encodings number them.
RDI, RSI, RDX, RCX = 7, 6, 2, 1

BLOCKS: Final = bytes.fromhex(
    "eb01 90"  # jmp +1; nop
    "eb01 90"
    "488d0503000000 ffe0 90"  # lea rax, [rip+3]; jmp rax; nop
    "e802000000 eb01 c3"  # call +2; jmp +1; ret
    "4885ff 7402 eb01 90"  # test rdi, rdi; jz +2; jmp +1; nop
)
"""Several ways from one basic block to the next."""


def keep_registers(width: int) -> bytes:
    """A function (in, masks_in, out, masks_out) that loads all vector registers of ``width`` bytes (64: zmm0 to zmm31
    and k0 to k7; 32: ymm0 to ymm15) from ``in``, goes through several basic blocks, and stores them to ``out``."""
    if width == 64:
        load = [_zmm(0x10, RDI, i) for i in range(32)] + [_mask(0x90, RSI, i) for i in range(8)]
        store = [_zmm(0x11, RDX, i) for i in range(32)] + [_mask(0x91, RCX, i) for i in range(8)]
    else:
        load = [_ymm(0x10, RDI, i) for i in range(16)]
        store = [_ymm(0x11, RDX, i) for i in range(16)]
    return b"".join([*load, BLOCKS, *store, b"\xc5\xf8\x77\xc3"])  # vzeroupper; ret


def _zmm(opcode: int, base: int, i: int) -> bytes:
    """vmovups between zmm{i} and [base + 64*i]; the displacement counts in units of 64 bytes."""
    inverted = (~i >> 3 & 1) << 7 | (~i >> 4 & 1) << 4
    return bytes([0x62, 0x61 | inverted, 0x7C, 0x48, opcode, 0x40 | (i & 7) << 3 | base, i])


def _ymm(opcode: int, base: int, i: int) -> bytes:
    """vmovups between ymm{i} and [base + 32*i]."""
    displacement = (32 * i).to_bytes(4, "little")
    return bytes([0xC5, 0x7C | (~i >> 3 & 1) << 7, opcode, 0x80 | (i & 7) << 3 | base]) + displacement


def _mask(opcode: int, base: int, i: int) -> bytes:
    """kmovq between k{i} and [base + 8*i]."""
    return bytes([0xC4, 0xE1, 0xF8, opcode, 0x40 | i << 3 | base, 8 * i])
