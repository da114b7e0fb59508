"""What is known of a basic block: how much of each kind one execution of it does.

The C module gets the same numbers: ``source`` writes its enumeration from this one.
"""

from __future__ import annotations

from enum import IntEnum, auto


class Fact(IntEnum):
    """The index of a fact in a block's record. Instructions unless noted otherwise."""

    @staticmethod
    def _generate_next_value_(name: str, start: int, count: int, last_values: list[int]) -> int:
        return count

    INSTRUCTIONS = auto()
    CONDITIONAL_BRANCHES = auto()
    JUMPS = auto()
    CALLS = auto()
    RETURNS = auto()
    SYSCALLS = auto()
    LOADS = auto()  # memory operands that are read
    STORES = auto()
    LOAD_BYTES = auto()  # bytes
    STORE_BYTES = auto()
    FLOPS_FP32_SCALAR = auto()  # FLOPs; the widths of a precision follow one another
    FLOPS_FP32_128 = auto()
    FLOPS_FP32_256 = auto()
    FLOPS_FP32_512 = auto()
    FLOPS_FP64_SCALAR = auto()
    FLOPS_FP64_128 = auto()
    FLOPS_FP64_256 = auto()
    FLOPS_FP64_512 = auto()
    FLOPS_FP16 = auto()
    FLOPS_BF16 = auto()
    OPERATIONS_INT8 = auto()  # multiplications and additions of dot products
    OPERATIONS_INT16 = auto()
    FLOAT_INSTRUCTIONS = auto()  # arithmetic
    MULTIPLY_ADDS = auto()
    DOT_PRODUCTS = auto()  # of integers
    VECTOR_SCALAR = auto()  # on one element of a vector register; the widths follow one another
    VECTOR_128 = auto()
    VECTOR_256 = auto()
    VECTOR_512 = auto()
    VECTOR_INTEGER = auto()
    VECTOR_MOVES = auto()  # and shuffles
    MASKED = auto()
    BROADCASTS = auto()  # of an element from memory, within an instruction
    GATHERS = auto()  # and scatters
    PREFETCHES = auto()
    REPEATED = auto()  # with a rep prefix
    TILES = auto()  # AMX
