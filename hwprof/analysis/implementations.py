"""What oneDNN's names of implementations mean (``primitives.toml``): fallbacks, vectors, and layers that bypass it."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import cache
from typing import NamedTuple

import msgspec

from hwprof.data_files import read_toml


class Verdict(NamedTuple):
    """What is to be said of an implementation: nothing, where ``kind`` is None. It is ``reference``, ``plain`` or
    ``generic`` code, or its vectors are more ``narrow`` than the processor's."""

    kind: str | None = None
    reason: str | None = None
    remedy: str | None = None  # None: none is known


class Fallback(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an implementation's name means."""

    pattern: str
    kind: str
    reason: str
    remedy: str | None = None
    primitive: list[str] | None = None  # None: any

    def means(self, primitive: str, implementation: str) -> bool:
        """Whether it is about this implementation."""
        named = not self.primitive or primitive in self.primitive
        return named and re.fullmatch(self.pattern, implementation) is not None


class InstructionSet(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One family of vector instructions."""

    word: str
    bits: int
    flags: list[str]


class Bypass(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Why layers of these types may execute no primitive."""

    types: list[str]
    reason: str
    remedy: str | None = None


class Knowledge(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file ``primitives.toml``."""

    reorder_kernel: list[str]  # patterns of the names of functions
    reorder: dict[str, str]  # how to do without: of which tensor
    bypass: list[Bypass]
    fallback: list[Fallback]
    instruction_set: list[InstructionSet]


def fallback(primitive: str, implementation: str, flags: Collection[str], restricted_to: str | None = None) -> Verdict:
    """What is to be said of an implementation on a processor with these flags.

    ``restricted_to``: the variable that forbade oneDNN the processor's newest instructions.
    """
    free = f"{restricted_to} is set: unset it" if restricted_to is not None else None
    for known in knowledge().fallback:
        if known.means(primitive, implementation):
            return Verdict(known.kind, known.reason, free or known.remedy)
    has, used = vector_bits(flags), _used_bits(implementation)
    if has is not None and used is not None and used < has:
        return Verdict("narrow", f"its vectors have {used} bits, the processor's {has}", free)
    return Verdict()


@cache
def is_reorder(function: str | None) -> bool:
    """Whether a sampled function of this name changes a tensor's layout for oneDNN."""
    return function is not None and any(re.fullmatch(known, function) for known in knowledge().reorder_kernel)


def vector_bits(flags: Collection[str]) -> int | None:
    """The length of the processor's vectors; None where no instruction set is known."""
    return max((known.bits for known in knowledge().instruction_set if set(known.flags) <= set(flags)), default=None)


def _used_bits(implementation: str) -> int | None:
    """By the instruction set in the name's last part; None where it names none (``jit:uni`` takes what there is)."""
    last: Sequence[str] = implementation.rpartition(":")[2].split("_")
    by_word = {known.word: known.bits for known in knowledge().instruction_set}
    return by_word.get(last[0])


@cache
def knowledge() -> Knowledge:
    """What names of implementations mean."""
    return read_toml(__name__, "primitives.toml", Knowledge)
