"""What one process does: a batch of sequences natively, in single steps, and instrumented, each from the same state.

    python -m scripts.fuzzing.process SEED COUNT far|near PROGRESS [FIRST]

Says what differed as JSON. PROGRESS is a file that holds the number of the sequence that is being executed, for when
this process is killed by it.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import random
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from collectors.instrumented.engine import Engine, processor_flags
from collectors.instrumented.facts import Fact
from collectors.instrumented.log import Log
from hwprof.c_compiler import compiled
from scripts.fuzzing.sequences import Batch, batch
from scripts.fuzzing.writing import FLAGS_AT, Facts

STATE: Final = 4096
"""Bytes before what r15 points at: registers and flags, see ``frame.s``."""

MEMORY: Final = 4096
STACK: Final = 8192
STACK_AT: Final = STATE + MEMORY + STACK - 1024
TARGET, STACK_POINTER, FLAGS, X87, VECTORS, MASKS = 120, 128, 112, 512, 1024, 3072
R13: Final = 11
"""The place of r13 among the general registers of the state."""

STATUS_FLAGS: Final = 0xCD5
TRAP_FLAG: Final = 0x100
FAR: Final = 0x100_0000_0000
"""Where code is far from everything else: what its copies refer to is out of the reach of 32 bits."""

MAP_FIXED_NOREPLACE: Final = 0x100000
STEPS: Final = 1 << 16
PASSES: Final = 2
"""Each sequence is executed so often instrumented: the copy is made in the first."""

COMPARED: Final = (
    *(Fact.INSTRUCTIONS, Fact.CONDITIONAL_BRANCHES, Fact.JUMPS, Fact.CALLS, Fact.RETURNS),
    *(Fact.LOADS, Fact.STORES, Fact.LOAD_BYTES, Fact.STORE_BYTES, Fact.FLOPS_BF16),
    *(fact for fact in Fact if fact.name.startswith(("FLOPS_FP32", "FLOPS_FP64"))),
)


class Difference(msgspec.Struct):
    """What a sequence did differently when it was instrumented."""

    number: int
    what: str
    text: str


class Said(msgspec.Struct):
    """What a process found out. ``instructions``: executed in single steps."""

    sequences: int
    instructions: int
    differences: list[Difference]


@dataclass(frozen=True)
class Code:
    """A batch in memory. ``offsets``: of each sequence's instructions; ``begin`` is where the first lies."""

    begin: int
    pools: tuple[int, int]
    offsets: list[list[int]]


def assembled(source: str) -> bytes:
    """Its bytes. Raises ``CalledProcessError`` where the assembler refuses it."""
    with tempfile.TemporaryDirectory() as folder:
        text, linkable, flat = (Path(folder, name) for name in ("a.s", "a.o", "a.bin"))
        text.write_text(source)
        subprocess.run(["as", "--64", "-o", linkable, text], check=True)
        subprocess.run(["objcopy", "-O", "binary", "-j", ".text", linkable, flat], check=True)
        return flat.read_bytes()


def stepping() -> ctypes.CDLL:
    """The library that executes in single steps. Raises ``NoLibraryError``."""
    source = resources.files(__package__).joinpath("stepping.c").read_bytes()
    return ctypes.CDLL(str(compiled("stepping", source)))


def placed(code: bytes, address: int) -> int:
    """The bytes in executable memory, at the address or, if it is 0, anywhere."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    protection = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | (MAP_FIXED_NOREPLACE if address else 0)
    made = libc.mmap(address, len(code), protection, flags, -1, 0)
    if made in (None, ctypes.c_void_p(-1).value):
        raise OSError(ctypes.get_errno(), "no memory for code")
    ctypes.memmove(made, code, len(code))
    return int(made)


def loaded(made: Batch, address: int) -> Code:
    """The batch in memory, its pointers set."""
    code = assembled(made.source)
    pools, offsets_at, pointers_at = struct.unpack("<3q", code[-24:])
    begin = placed(code, address)
    numbers = np.frombuffer(code[offsets_at:pointers_at], np.uint32)
    for where, target in struct.iter_unpack("<2q", code[pointers_at : len(code) - 24]):
        ctypes.c_uint64.from_address(begin + where).value = begin + target
    offsets, at = [], 0
    for facts in made.facts:
        offsets.append([int(offset) for offset in numbers[at : at + len(facts)]])
        at += len(facts)
    return Code(begin, (begin + pools, offsets_at - pools), offsets)


class Machine:
    """Executes sequences of a batch, each from a state that follows from its number."""

    def __init__(self, seed: int, code: Code) -> None:
        self._seed, self._code = seed, code
        self._wide = {"avx512f", "avx512bw"} <= processor_flags()
        source = resources.files(__package__).joinpath("frame.s").read_text()
        frame = assembled(f".set WIDE, {self._wide:d}\n{source}")
        self._memory = mmap.mmap(-1, STATE + MEMORY + STACK)
        self._base = ctypes.addressof((ctypes.c_char * 0).from_buffer(self._memory))
        self._frame = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(placed(frame, 0))
        self._pools = ctypes.string_at(*code.pools)

    def run(self, number: int, flags: int = 0) -> bytes:
        """All that a sequence leaves behind."""
        self._prepare(number, flags)
        self._frame(self._base)
        return self._left()

    def _prepare(self, number: int, flags: int) -> None:
        noise = random.Random(f"{self._seed} {number} state")
        state = bytearray(noise.randbytes(STATE + MEMORY + STACK))
        words = {
            8 * R13: noise.randrange(32),
            FLAGS: noise.getrandbits(12) & STATUS_FLAGS & ~0x400 | 0x202 | flags,
            TARGET: self._code.begin + self._code.offsets[number][0],
            STACK_POINTER: self._base + STACK_AT,
        }
        for at, value in words.items():
            struct.pack_into("<Q", state, at, value)
        state[X87 : X87 + 512] = bytes(512)
        struct.pack_into("<HH", state, X87, 0x37F, 0)
        struct.pack_into("<I", state, X87 + 24, 0x1F80 | noise.randrange(4) << 13)
        self._memory[:] = bytes(state)
        ctypes.memmove(self._code.pools[0], self._pools, len(self._pools))

    def _left(self) -> bytes:
        """Without what says where the code lay, and below the stack's end."""
        state = bytearray(self._memory[: STATE + MEMORY])
        flags = struct.unpack_from("<Q", state, STATE + FLAGS_AT)[0]
        struct.pack_into("<Q", state, STATE + FLAGS_AT, flags & STATUS_FLAGS)
        state[FLAGS:X87] = bytes(X87 - FLAGS)
        state[X87 + 6 : X87 + 24] = bytes(18)  # the last x87 instruction and its operand
        state[X87 + 416 : VECTORS] = bytes(VECTORS - X87 - 416)
        return bytes(state) + ctypes.string_at(*self._code.pools)


def differences(one: bytes, other: bytes) -> str:
    """Where two states differ."""
    names = ["rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "r8", "r9", "r10", "r11", "r13", "r12", "r14"]
    at = next(i for i in range(len(one)) if one[i] != other[i])
    if at < 8 * len(names):
        return names[at // 8]
    if at < VECTORS:
        return "x87 or mxcsr"
    if at < MASKS:
        return f"vector register {(at - VECTORS) // 64}"
    if at < STATE:
        return f"mask register {(at - MASKS) // 8}"
    return "flags" if STATE + FLAGS_AT <= at < STATE + FLAGS_AT + 8 else "memory"


def expected(facts: Sequence[Facts], offsets: Sequence[int], begin: int, steps: Sequence[int]) -> dict[Fact, int]:
    """What a sequence does by the instructions that were stepped through."""
    numbers = {begin + offset: number for number, offset in enumerate(offsets)}
    found = dict.fromkeys(COMPARED, 0)
    for step in steps:
        for name, value in facts[numbers[step]].items():
            found[Fact[name.upper()]] += value
    return found


def stepped(machine: Machine, made: Batch, code: Code, numbers: Sequence[int]) -> Iterator[dict[Fact, int]]:
    """What each sequence executes, one trap an instruction."""
    library = stepping()
    steps = (ctypes.c_uint64 * STEPS)()
    library.begin(ctypes.c_uint64(code.begin), ctypes.c_uint64(code.pools[0]), steps, ctypes.c_uint64(STEPS))
    library.used.restype = ctypes.c_uint64
    for number in numbers:
        library.reset()
        machine.run(number, TRAP_FLAG)
        yield expected(made.facts[number], code.offsets[number], code.begin, steps[: library.used()])
    library.restore()


def main(seed: int, count: int, far: bool, progress: Path, first: int) -> Said:
    """Executes the sequences from ``first`` on."""
    made = batch(seed, count, processor_flags())
    code = loaded(made, FAR if far else 0)
    machine = Machine(seed, code)
    numbers = range(first, count)
    native = {number: machine.run(number) for number in numbers}
    truth = dict(zip(numbers, stepped(machine, made, code, numbers), strict=True))
    engine, found = Engine(), []
    engine.instrument()
    intervals = []
    with progress.open("wb", buffering=0) as file:
        for number in numbers:
            os.pwrite(file.fileno(), b"%8d" % number, 0)
            for _ in range(PASSES):
                engine.edge()
                left = machine.run(number)
                engine.edge()
                intervals.append((number, engine.memory.control.edges - 1))
                if left != native[number]:
                    found.append(Difference(number, differences(native[number], left), made.texts[number]))
        os.pwrite(file.fileno(), b"%8d" % count, 0)
    engine.uninstrument()
    log = Log.of(engine.memory)
    for number, interval in intervals:
        begin, end = (code.begin + code.offsets[number][i] for i in (0, -1))
        counted: Any = log.facts_within(interval, 0, begin, end + 16)
        wrong = [fact for fact in COMPARED if counted[fact] != truth[number][fact]]
        if wrong:
            what = ", ".join(f"{fact.name.lower()} {counted[fact]} for {truth[number][fact]}" for fact in wrong)
            found.append(Difference(number, what, made.texts[number]))
    return Said(len(numbers), sum(facts[Fact.INSTRUCTIONS] for facts in truth.values()), found)


if __name__ == "__main__":
    seed, count, place, progress, *first = sys.argv[1:]
    said = main(int(seed), int(count), place == "far", Path(progress), int(first[0]) if first else 0)
    print(msgspec.json.encode(said).decode(), flush=True)
    os._exit(0)
