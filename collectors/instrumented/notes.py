"""Diagnostics of a pass: whether counts are complete, notes for people, detail for the manifest, its threads."""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final

import polars as pl

from collectors.instrumented.detail import EngineDetail
from collectors.instrumented.engine import FRIDA_VERSION, Engine, processor_flags
from collectors.instrumented.log import Log
from collectors.instrumented.memory import Control
from collectors.instrumented.selftest import SelfTest
from collectors.instrumented.uninstrumented import UninstrumentedThreads
from collectors.shared.counting.threads import thread_name
from hwprof.collector.contract import Note, NoteKind, PassContext
from hwprof.errors import HwprofError
from hwprof.processes import perf_map_of

JIT_PROFILE: Final = "ONEDNN_JIT_PROFILE"
JIT_NAMES: Final = "2"
"""The variable, and its value with which oneDNN writes the names of the code that it makes to perf's file of them."""

TILES: Final = "amx_tile"
WIDEST: Final = "ONEDNN_MAX_CPU_ISA"
"""The variable by which oneDNN's kernels are restricted to an instruction set."""

ROOM: Final = {
    errno.ENOSPC: "free some space, another --output, or fewer images; --no-instrumented leaves it out",
    errno.EFBIG: "raise the limit of the size of files: ulimit -f unlimited; --no-instrumented leaves it out",
}
"""What to do where the log has no room, by ``errno``."""

UNINSTRUMENTED_SHARE: Final = 0.002
"""Processor time of threads that were not instrumented that is worth a note."""


def check_complete(engine: Engine, unwritten: OSError | None = None) -> None:
    """Raises ``HwprofError`` where something was executed that is not in the log, or was not the code any more.
    ``unwritten``: why not all of the log could be kept."""
    control = engine.memory.control
    wrong, remedy = None, "leave it out with --no-instrumented"
    if control.undecoded:
        wrong = f"the code has an instruction that cannot be instrumented ({_undecoded(control)})"
    elif control.rewritten:
        wrong = f"the code at {control.rewritten_address:#x} was rewritten after it had been instrumented"
    elif control.unguarded:
        wrong = "there is more code made at run time than can be watched for changes"
    elif any(context.lost_blocks for context in engine.memory.contexts()):
        wrong = "the code has more basic blocks than there is room for"
    elif unwritten is not None:
        wrong = f"the log of what was executed cannot be written: {unwritten.strerror}"
        remedy = ROOM.get(unwritten.errno or 0, remedy)
    elif control.log_overflowed:
        wrong = "there is more to log than there is room for (fewer images help)"
    if wrong is not None:
        raise HwprofError(f"{wrong}, so counts are not complete", remedy)


def _undecoded(control: Control) -> str:
    """Its bytes behind a bar, and those before it, of the same page."""
    code = bytes(control.undecoded_bytes)[: control.undecoded_shown]
    before, after = code[: control.undecoded_before], code[control.undecoded_before :]
    return f"{before.hex(' ')} | {after.hex(' ')} at {control.undecoded_address:#x}"


def tile_notes(flags: Collection[str], environment: Mapping[str, str]) -> list[Note]:
    """Of a processor that multiplies tiles: how many operations one instruction is, its configuration says, which
    nobody reads. Single precision has none."""
    if TILES not in flags or environment.get(WIDEST, "").upper().startswith("AVX"):
        return []
    text = "those of AMX's tiles, which oneDNN uses, are not counted"
    remedy = f"{WIDEST}=AVX512_CORE_BF16 in the environment, where kernels without AMX tell enough"
    return [Note(NoteKind.INCOMPLETE, text, "bfloat16 and int8 operations", remedy)]


def engine_notes(engine: Engine, log: Log, uninstrumented: UninstrumentedThreads, cpu_ns: int) -> list[Note]:
    """What the user should know. ``cpu_ns``: the process's CPU time while it was instrumented."""
    scope = "user code on the calling thread and its OpenMP pool; the kernel's code is not in them"
    found = [Note(NoteKind.SCOPE, scope, "counts")]
    found += jit_notes(os.environ, perf_map_of(os.getpid())) + tile_notes(processor_flags(), os.environ)
    worked = uninstrumented.worked({int(context.tid) for context in log.contexts})
    total_ns = sum(worked.values())
    if total_ns > UNINSTRUMENTED_SHARE * cpu_ns:
        busy = sorted(worked, key=lambda name: -worked[name])[:5]
        names = ", ".join(name for name in busy if worked[name] > total_ns / 20)
        share = f"{total_ns / cpu_ns:.1%} of the CPU time of this pass, which instrumentation makes longer"
        text = f"uninstrumented threads worked for {total_ns / 1e6:.3g} ms ({share}): {names}"
        found.append(Note(NoteKind.INCOMPLETE, text))
    handlers_ns = sum(context.handlers_ns for context in log.contexts)
    if handlers_ns > UNINSTRUMENTED_SHARE * cpu_ns:
        text = f"signal handlers worked for {handlers_ns / 1e6:.3g} ms on instrumented threads, uninstrumented"
        found.append(Note(NoteKind.INCOMPLETE, text))
    if refused := engine.memory.control.refused_contexts:
        text = f"too many threads: {refused} basic blocks of those beyond the limit were not counted"
        found.append(Note(NoteKind.INCOMPLETE, text))
    return found


def jit_notes(environment: Mapping[str, str], names: Path) -> list[Note]:
    """Why code that was made at run time has no names, where nothing wrote the file of ``names``."""
    if names.exists():
        return []
    if environment.get(JIT_PROFILE) != JIT_NAMES:
        return [Note(NoteKind.INCOMPLETE, f"no names: {JIT_PROFILE}={JIT_NAMES} is not set", "JIT kernels")]
    if not os.access(names.parent, os.W_OK):
        return [Note(NoteKind.INCOMPLETE, f"no names: {names.parent} cannot be written", "JIT kernels")]
    return [Note(NoteKind.SCOPE, "oneDNN made none, other JIT code has no names", "JIT kernels")]


def engine_detail(engine: Engine, log: Log, tried: SelfTest) -> EngineDetail:
    """For the manifest."""
    control = engine.memory.control
    return EngineDetail(
        frida=FRIDA_VERSION,
        self_test=list(tried.loops),
        registers_tried=tried.registers,
        mended_helpers=tried.mended_helpers,
        blocks=[len(blocks) for blocks in log.blocks],
        partly_decoded_blocks=sum(int(blocks["partly_decoded"].sum()) for blocks in log.blocks),
        slow_increments=int(sum(context.slow_increments for context in log.contexts)),
        kept_mappings=control.kept_mappings,
        log_entries=control.log_given + control.log_used,
    )


def threads_table(log: Log, context: PassContext) -> pl.DataFrame:
    """The instrumented threads."""
    tids = dict.fromkeys(int(instrumented.tid) for instrumented in log.contexts)
    rows: list[dict[str, Any]] = [
        {
            "pass": context.pass_name,
            "pid": context.pid,
            "tid": tid,
            "name": thread_name(tid),
            "role": "main" if tid == context.main_tid else "worker",
        }
        for tid in tids
    ]
    return pl.DataFrame(rows)
