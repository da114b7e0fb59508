"""Varints, one at a time and by the column: seven bits a byte, low ones first, the top bit says that more follows."""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

UInt64s: TypeAlias = npt.NDArray[np.uint64]
Lengths: TypeAlias = npt.NDArray[np.uint8]

MAX_BYTES: Final = 10
_SHORT: Final = tuple(bytes((number,)) for number in range(128)) + tuple(
    bytes((number & 127 | 128, number >> 7)) for number in range(128, 1 << 14)
)
_UINT64: Final = (1 << 64) - 1


def varint(number: int) -> bytes:
    """One integer; a negative one as its 64-bit two's complement, as protobuf's int64 has it."""
    if 0 <= number < 1 << 14:
        return _SHORT[number]
    if 0 <= number < 1 << 21:
        return bytes((number & 127 | 128, number >> 7 & 127 | 128, number >> 14))
    number &= _UINT64
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def lengths(numbers: UInt64s) -> Lengths:
    """How many bytes each number takes."""
    result = np.ones(len(numbers), np.uint8)
    largest = int(numbers.max(initial=0))
    limit = 128
    while limit <= largest:
        result += numbers >= np.uint64(limit)
        limit <<= 7
    return result


def fill(numbers: UInt64s, sizes: Lengths, out: npt.NDArray[np.uint8]) -> None:
    """Writes each number into a row of ``out`` (rows x largest size); what lies beyond ``sizes`` is left undefined."""
    width = out.shape[1]
    if width == 1:
        out[:, 0] = numbers
        return
    for byte in range(width):
        part = (numbers >> np.uint64(7 * byte)).astype(np.uint8)
        part &= np.uint8(127)
        if byte + 1 < width:
            part |= (sizes > byte + 1).view(np.uint8) << np.uint8(7)
        out[:, byte] = part
