"""Why threads left their processor: the records, the frames that lead to the callers, and what their names mean."""

from __future__ import annotations

import ctypes
import struct
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.sampler import off_cpu_reasons
from collectors.sampler.off_cpu_reasons import Reason, reason_of
from collectors.sampler.record_file import decode_all
from collectors.sampler.switch_outs import (
    CONTEXT_USER,
    INSTRUCTION,
    REGISTERS,
    STACK_POINTER,
    SwitchOut,
    parse_switch_out,
)
from collectors.sampler.unwinding import Unwinder
from collectors.shared.symbols.domains import Domain
from collectors.shared.symbols.frames import INDEX_ENTRY, CallFrames, Frame, Rows, open_call_frames
from collectors.shared.symbols.kallsyms import read_kallsyms
from collectors.shared.symbols.kernels import Kernel
from collectors.shared.symbols.mappings import Mapping, executable_mappings
from collectors.shared.symbols.resolver import Resolver
from hwprof.run.schema import conform
from tests.support.sampler_records import Sample, record, switch

CONTEXT_KERNEL = 2**64 - 128
EVENT = 99
X86 = sorted(REGISTERS["x86_64"].items())

words = st.integers(1, 2**62)
made = st.builds(
    SwitchOut,
    tid=st.integers(1, 2**31 - 1),
    time_ns=words,
    kernel=st.lists(st.integers(2**63, 2**64 - 4096), max_size=10).map(tuple),
    user=st.none() | words,
    registers=st.fixed_dictionaries({dwarf: words for _, dwarf in X86}) | st.just({}),
    stack=st.lists(words, max_size=16).map(lambda found: np.array(found, dtype=np.uint64)),
)


def packed(one: SwitchOut, room: int = 32) -> bytes:
    """As the kernel writes it: the piece of the stack has ``room`` words, of which those that were there are filled."""
    chain = [CONTEXT_KERNEL, *one.kernel, *([CONTEXT_USER, one.user] if one.user is not None else [])]
    body = struct.pack("<QQIIQIIQ", EVENT, 2**63, 7, one.tid, one.time_ns, 0, 0, 1)
    body += struct.pack(f"<{1 + len(chain)}Q", len(chain), *chain)
    if one.registers:
        values = [one.registers[dwarf] for _, dwarf in X86]
        stack = [*one.stack.tolist(), *[0] * (room - len(one.stack))]
        body += struct.pack(f"<{1 + len(values)}Q", 2, *values)
        body += struct.pack(f"<{2 + room}Q", 8 * room, *stack, 8 * len(one.stack))
    else:
        body += struct.pack("<QQ", 0, 0)
    return record(9, 1, body)


def same(one: SwitchOut, other: SwitchOut | None) -> bool:
    return other is not None and vars(one) | {"stack": one.stack.tolist()} == vars(other) | {
        "stack": other.stack.tolist()
    }


@given(made)
def test_a_record_tells_what_was_written(one: SwitchOut) -> None:
    without_stack = SwitchOut(one.tid, one.time_ns, one.kernel, one.user, {}, one.stack[:0])
    data = np.frombuffer(packed(one), dtype=np.uint64)
    assert same(one if one.registers else without_stack, parse_switch_out(data, "x86_64"))


@given(made, st.integers(0, 200))
def test_a_record_that_is_cut_off_breaks_nothing(one: SwitchOut, kept: int) -> None:
    parse_switch_out(np.frombuffer(packed(one), dtype=np.uint64)[:kept], "x86_64")


@given(st.lists(st.one_of(made, st.builds(Sample, event=st.just(7))), max_size=20))
def test_switch_outs_are_told_from_samples_by_their_event(stream: list[SwitchOut | Sample]) -> None:
    data = b"".join(packed(one) if isinstance(one, SwitchOut) else one.record(reading=False) for one in stream)
    recording = decode_all(memoryview(data), reading=False, switch_out_events={EVENT})
    left = [one.time_ns for one in stream if isinstance(one, SwitchOut)]
    assert [one.time_ns for one in recording.switch_outs] == left
    assert len(recording.samples.time_ns) == len(stream) - len(left)
    assert recording.torn_bytes == 0


# --- what names mean


def kernel(*names: str) -> list[Kernel]:
    return [Kernel(Domain.KERNEL, "[kernel]", name) for name in names]


def user(*names: str | None, domain: Domain = Domain.SYSTEM) -> list[Kernel]:
    return [Kernel(domain, "libx.so", name) for name in names]


FUTEX = ("schedule", "futex_do_wait", "__futex_wait", "do_futex", "__x64_sys_futex", "do_syscall_64")


@pytest.mark.parametrize(
    ("system", "program", "expected"),
    [
        (("schedule", "do_nanosleep", "__x64_sys_clock_nanosleep"), ("clock_nanosleep",), ("sleep", "clock_nanosleep")),
        (("schedule", "anon_pipe_read", "__arm64_sys_read"), (None,), ("I/O", "read")),
        (
            ("schedule", "io_schedule", "handle_mm_fault", "exc_page_fault"),
            ("memcpy",),
            ("page fault", "handle_mm_fault"),
        ),
        (FUTEX, (None, "pthread_mutex_lock"), ("lock", "pthread_mutex_lock")),
        (FUTEX, ("__GI___lll_lock_wait", "___pthread_mutex_lock"), ("lock", "pthread_mutex_lock")),
        (FUTEX, (None, "pthread_cond_wait@@GLIBC_2.3.2"), ("condition", "pthread_cond_wait")),
        (FUTEX, (None, "pthread_cond_timedwait", "take_gil", "f"), ("GIL", "take_gil")),
        (FUTEX, (None, "sem_clockwait", "PyThread_acquire_lock_timed"), ("lock", "PyThread_acquire_lock_timed")),
        (FUTEX, (None, "sem_wait", "work"), ("semaphore", "sem_wait")),
        (FUTEX, (None, "work"), None),
        ((), ("__poll",), ("I/O", "poll")),
        ((), (None, "pthread_cond_wait"), ("condition", "pthread_cond_wait")),
        (("schedule", "__x64_sys_unheard_of"), ("unheard_of",), None),
        (("schedule", "irqentry_exit_to_user_mode"), ("busy",), None),
    ],
)
def test_what_was_waited_for(
    system: tuple[str, ...], program: tuple[str | None, ...], expected: tuple[str, str] | None
) -> None:
    innermost, *callers = user(*program)
    assert reason_of(kernel(*system), innermost, callers) == (Reason(*expected) if expected else None)


def test_the_openmp_runtime_waits_at_barriers() -> None:
    (waits,) = user("gomp_team_barrier_wait_end", domain=Domain.OPENMP)
    assert reason_of(kernel(*FUTEX), waits, []) == Reason("barrier", "gomp_team_barrier_wait_end")
    (nameless,) = user(None, domain=Domain.OPENMP)
    assert reason_of([], nameless, []) == Reason("barrier", "libx.so")


def test_what_is_called_like_a_call_of_libc_elsewhere_is_none() -> None:
    (poll,) = user("poll", domain=Domain.TORCH)
    assert reason_of([], poll, []) is None


def test_a_function_that_called_last_of_all_is_the_one_before_the_address() -> None:
    """Where it returns to is the next function's first instruction already."""
    symbols = read_kallsyms(f"{2**63 + 0x100:x} T __x64_sys_read\n{2**63 + 0x110:x} T __x64_sys_poll\n")
    asked = SwitchOut(1, 5, (2**63 + 0x110,), None, {}, np.empty(0, dtype=np.uint64))
    found = off_cpu_reasons.explain([asked], [], Resolver([], kernel=lambda: symbols))
    assert found == [Reason("I/O", "read")]


# --- which switch-out a switch belongs to


def test_a_switch_has_the_reason_told_right_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        off_cpu_reasons,
        "explain",
        lambda found, *_: [Reason("lock", str(one.time_ns)) if one.user else None for one in found],
    )
    switches = conform(
        "switches",
        pl.DataFrame(
            [(1, None, 5, None), (1, 10, 20, False), (2, 11, 12, True), (1, 30, 40, False), (1, 50, None, False)],
            schema={"tid": pl.Int32, "out_ns": pl.Int64, "in_ns": pl.Int64, "preempted": pl.Boolean},
            orient="row",
        ),
    )
    nothing = np.empty(0, dtype=np.uint64)
    told = [
        SwitchOut(tid, time_ns, (), 1, {}, nothing) for tid, time_ns in ((1, 9), (2, 10), (1, 19), (1, 49), (2, 29))
    ]
    found = off_cpu_reasons.with_reasons(switches, told, [])
    assert found["function"].to_list() == [None, "9", None, None, "49"], "19 was before it came back"
    assert found.schema == switches.schema
    assert off_cpu_reasons.with_reasons(switches, [], [])["reason"].null_count() == switches.height


# --- frames


class Known(Unwinder):
    """With frames of its own."""

    def __init__(self, frames: dict[int, Frame]) -> None:
        super().__init__([], "x86_64")
        self.frames = frames

    def _frame(self, address: int) -> Frame | None:
        return self.frames.get(address)


SP, BP, IP = STACK_POINTER["x86_64"], 6, INSTRUCTION["x86_64"]


def test_callers_are_found_by_frames_of_both_kinds() -> None:
    """One by the stack pointer, the next by a register that the first one kept."""
    stack = np.array([0, 0x7_0028, 0x2001, 0, 0, 0x3001], dtype=np.uint64)
    frames = {
        0x1000: Frame(SP, 24, ((BP, -16), (IP, -8)), IP),
        0x2000: Frame(BP, 8, ((IP, -8),), IP),
    }
    one = SwitchOut(1, 1, (), 0x1000, {SP: 0x7_0000, BP: 5, IP: 0x1000}, stack)
    assert Known(frames).callers(one) == [0x2001, 0x3001]
    short = SwitchOut(1, 1, (), 0x1000, one.registers, stack[:4])
    assert Known(frames).callers(short) == [0x2001], "the piece of the stack ends"
    assert Known({}).callers(one) == []


@given(st.dictionaries(st.integers(1, 20), st.tuples(st.sampled_from([SP, BP]), st.integers(-64, 64)), max_size=10))
def test_frames_that_lead_nowhere_end(found: dict[int, tuple[int, int]]) -> None:
    stack = np.arange(64, dtype=np.uint64) % np.uint64(20)
    frames = {at: Frame(register, offset, ((IP, -8),), IP) for at, (register, offset) in found.items()}
    registers = {SP: 0x7_0000, BP: 0x7_0080, IP: 5}
    assert len(Known(frames).callers(SwitchOut(1, 1, (), 5, registers, stack))) <= 8


def test_a_frame_holds_from_its_instruction_to_the_next_ones() -> None:
    first, second, third = (Frame(7, offset, (), 16) for offset in (8, 16, 24))
    told = {0: (110, [(100, first), (105, second)]), 1: (130, [(120, third)])}

    class Told(CallFrames):
        def _decode(self, offset: int) -> Rows:
            return told[offset]  # type: ignore[return-value]

    index = np.array([(100, 0), (120, 1)], dtype=INDEX_ENTRY)
    frames = Told(index, 0, SimpleNamespace(address=0))  # type: ignore[arg-type]
    expected = {99: None, 100: first, 104: first, 105: second, 109: second, 110: None, 119: None, 120: third, 130: None}
    assert {address: frames.at(address) for address in expected} == expected


def test_libc_tells_the_frames_of_its_functions() -> None:
    """Right at the beginning of a function only the address that it returns to lies on the stack."""
    mappings = executable_mappings(Path("/proc/self/maps").read_text())
    address = ctypes.cast(ctypes.CDLL(None).qsort, ctypes.c_void_p).value
    assert address is not None
    frame = Unwinder(mappings, "x86_64")._frame(address)
    if frame is None:
        pytest.skip("this libc has no table of frames that is searched")
    assert (frame.register, frame.offset, frame.saved) == (SP, 8, ((IP, -8),))
    assert Unwinder([Mapping(0, 1, 0, "/nonexistent")], "x86_64")._frame(0) is None


def test_switches_beside_switch_outs_are_decoded_as_ever() -> None:
    data = switch(out=True).record(reading=False)
    assert decode_all(memoryview(data), reading=False, switch_out_events={EVENT}).switch_outs == []


def test_nearly_all_of_a_real_librarys_functions_have_frames() -> None:
    """Also those whose tables hold instructions that only handlers of exceptions need."""
    libraries = {one.path for one in executable_mappings(Path("/proc/self/maps").read_text()) if "/lib" in one.path}
    found = [(frames, frames.functions()[::50]) for path in libraries if (frames := open_call_frames(Path(path)))]
    places = [(frames, at) for frames, some in found for at in some]
    if not places:
        pytest.skip("no library here has a table of frames that is searched")
    assert sum(frames.at(at + 1) is not None for frames, at in places) > 0.9 * len(places)
