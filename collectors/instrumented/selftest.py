"""Whether counting can be trusted on this machine: tried in the worker at every start.

Loops of known length come out exact on every instrumented thread, vector and mask registers survive the ways between
basic blocks, and the fault that would corrupt them was found and mended.
"""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from typing import Final

from collectors.instrumented.engine import Engine, processor_flags
from collectors.instrumented.facts import Fact
from collectors.instrumented.log import Log
from collectors.instrumented.machine_code import Loop, keep_registers, loops
from collectors.shared.machine_code import Function
from hwprof.errors import HwprofError

ROUNDS: Final = 1003
PASSES: Final = 3
"""How often registers go through: copying a block the first time takes another way than running the copy."""

ZMM: Final = 64
YMM: Final = 32
REGISTERS: Final = {ZMM: 32, YMM: 16}
"""How many there are of each width in bytes."""

MASKS: Final = 8


@dataclass(frozen=True)
class SelfTest:
    """What was tried and held."""

    loops: tuple[str, ...]
    registers: int
    mended_helpers: int
    threads: int


@dataclass(frozen=True)
class Trial:
    """What was tried, and what it must have come to."""

    _called: tuple[_Called, ...]
    _held: SelfTest

    def check(self, log: Log) -> SelfTest:
        """Whether the loops were counted as they were executed. Raises ``HwprofError`` with the first thing that does
        not hold. Not while instrumented: numpy's code would be copied, for nobody; and to stop for this would throw
        away all copies that are there by then, the interpreter's."""
        for called in self._called:
            _check(called, log)
        return self._held


def try_out(engine: Engine) -> Trial:
    """Tries the engine, which must be instrumenting. Raises ``HwprofError`` where a thread is missing, or a register is
    not what it was."""
    flags = processor_flags()
    contexts = engine.memory.contexts()
    if len(contexts) < engine.openmp.threads:
        raise _failed(f"{len(contexts)} of {engine.openmp.threads} threads are instrumented")
    mended = [context.mended for context in contexts]
    if engine.memory.control.mend_epilog and not all(mended):
        raise _failed("frida's fault with AVX-512 registers was not found where it is mended")
    called = tuple(_call(engine, loop) for loop in loops() if flags.issuperset(loop.needs))
    width = ZMM if {"avx512f", "avx512bw"} <= flags else YMM if "avx" in flags else None
    if width is not None:
        _try_registers(width)
    names = tuple(one.loop.name for one in called)
    return Trial(called, SelfTest(names, REGISTERS.get(width or 0, 0), sum(mended), len(contexts)))


def self_test(engine: Engine) -> SelfTest:
    """Tries and checks the engine, which must be instrumenting, and is again. Raises ``HwprofError``."""
    trial = try_out(engine)
    engine.uninstrument()
    try:
        return trial.check(Log.of(engine.memory))
    finally:
        engine.instrument()


@dataclass(frozen=True)
class _Called:
    """A loop that every thread has called once in an interval of the log."""

    loop: Loop
    function: Function
    interval: int
    result: int


def _call(engine: Engine, loop: Loop) -> _Called:
    """One call on every thread, and one more on this one for the result."""
    function = Function(loop.machine_code, ctypes.c_long, ctypes.c_long)
    engine.edge()
    engine.openmp.each(function.start, ROUNDS)
    engine.edge()
    return _Called(loop, function, int(engine.memory.control.edges) - 1, function.call(ROUNDS))


def _check(called: _Called, log: Log) -> None:
    loop, function = called.loop, called.function
    if loop.result is not None and called.result != loop.result.each * ROUNDS + loop.result.once:
        raise _failed(f"the loop {loop.name} returned {called.result}")
    expected = loop.expected(ROUNDS)
    for number, context in enumerate(log.contexts):
        counted = log.facts_within(called.interval, number, function.start, function.end)
        if counted != expected:
            wrong = next(fact for fact in Fact if counted[fact] != expected[fact])
            raise _failed(
                f"the loop {loop.name} has {expected[wrong]} {wrong.name.lower().replace('_', ' ')},"
                f" counted were {counted[wrong]} on thread {context.tid}"
            )


def _try_registers(width: int) -> None:
    """Fills all vector registers, and the masks, with noise that must come out again. Compared as bytes: numpy would
    compare in the very registers that may be corrupted."""
    pointer = ctypes.c_void_p
    function = Function(keep_registers(width), None, pointer, pointer, pointer, pointer)
    vectors = ctypes.create_string_buffer(os.urandom(width * REGISTERS[width]), width * REGISTERS[width])
    masks = ctypes.create_string_buffer(os.urandom(8 * MASKS), 8 * MASKS)
    for _ in range(PASSES):
        kept, kept_masks = ctypes.create_string_buffer(len(vectors)), ctypes.create_string_buffer(len(masks))
        function.call(vectors, masks, kept, kept_masks)
        for i in range(REGISTERS[width]):
            register = slice(width * i, width * (i + 1))
            if kept.raw[register] != vectors.raw[register]:
                raise _failed(f"the register {'zmm' if width == ZMM else 'ymm'}{i} was corrupted")
        if width == ZMM and kept_masks.raw != masks.raw:
            raise _failed("mask registers were corrupted")


def _failed(why: str) -> HwprofError:
    return HwprofError(
        f"the self-test of counting by instrumenting the code failed: {why}", "leave it out with --no-instrumented"
    )
