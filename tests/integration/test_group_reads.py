"""Group reads of real counters: what they say of sleeping and waking threads is what a read of each would say."""

from __future__ import annotations

import ctypes
import hashlib
import mmap
import os
import random
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from collectors.shared.counting.group_reads import NativeGroupReads, PythonGroupReads, make_group_reads, rings
from collectors.shared.counting.group_reads_library import NoLibraryError, library
from hwprof.hardware import perf_event
from hwprof.hardware.perf_event import Attributes, group_read_bytes, open_event
from tests.support.requirements import missing
from tests.support.worker_thread import WorkerThread

pytestmark = pytest.mark.alone

PAGE_FAULTS, CONTEXT_SWITCHES, CPU_MIGRATIONS = 2, 3, 4
EVENTS = (perf_event.CONFIG_TASK_CLOCK, PAGE_FAULTS, CONTEXT_SWITCHES, CPU_MIGRATIONS)
SIZE = group_read_bytes(len(EVENTS))
SOME, ALL = 0, 1


@pytest.fixture
def groups() -> Iterator[Callable[[int], int]]:
    """Opens a group of software events on a thread; gives its leader."""
    fds: list[int] = []

    def open_group(tid: int) -> int:
        try:
            leader = open_event(Attributes(perf_event.TYPE_SOFTWARE, EVENTS[0]), tid)
        except OSError as error:
            missing(f"perf events ({error})")
        fds.append(leader)
        members = [Attributes(perf_event.TYPE_SOFTWARE, config, disabled=False) for config in EVENTS[1:]]
        fds.extend(open_event(member, tid, leader) for member in members)
        perf_event.enable_group(leader)
        return leader

    yield open_group
    for fd in fds:
        os.close(fd)


@pytest.fixture
def native() -> NativeGroupReads:
    try:
        made = NativeGroupReads(library(), frozenset({ALL}))
    except NoLibraryError as reason:
        missing(f"the compiled group reader ({reason})")
    return made


def touch(pages: int) -> None:
    """Writes to pages that nobody has written to yet."""
    memory = mmap.mmap(-1, pages * mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    ctypes.memset(ctypes.addressof(ctypes.c_char.from_buffer(memory)), 1, len(memory))


def settle(hands: list[WorkerThread], reads: Callable[[int], bytes], fds: list[int]) -> None:
    """Waits until all of them sleep."""
    before: list[bytes] = []
    while (now := [reads(fd) for fd in fds]) != before:
        before = now
        time.sleep(0.002)


def test_this_kernel_rings(native: NativeGroupReads) -> None:
    assert rings(library()) and native.doorbells


def test_whoever_worked_is_seen_and_whoever_slept_has_not_changed(
    groups: Callable[[int], int], native: NativeGroupReads
) -> None:
    """Over hundreds of edges at which some of eight threads have worked, each row is the one that a read of that thread
    gives, while they all sleep again."""
    hands = [WorkerThread() for _ in range(8)]
    time.sleep(0.01)
    tids = [hand.native_id or 0 for hand in hands]
    fds = [groups(tid) for tid in tids]

    def read(fd: int) -> bytes:
        return os.read(fd, SIZE)

    native.begin(fds, [SIZE] * 8, tids, {SOME: range(8), ALL: range(8)})
    edge = native.reader(SOME)
    order = random.Random(0)
    wakes = 0
    for _ in range(150):
        chosen = order.sample(hands, order.choice([0, 0, 1, 2, 8]))
        for hand in chosen:
            hand.begin(lambda: touch(3))
        for hand in chosen:
            hand.done.acquire()
        wakes += len(chosen)
        settle(hands, read, fds)
        for _ in range(3):
            edge()
        expected = b"".join(map(read, fds))
        _, rows = native.take()
        assert [rows[at : at + 8 * SIZE] == expected for at in range(0, len(rows), 8 * SIZE)] == [True] * 3
    native.reader(ALL)()
    assert native.doorbells and wakes > 100


def test_a_thread_that_runs_is_read_at_every_edge(groups: Callable[[int], int], native: NativeGroupReads) -> None:
    hand = WorkerThread()
    time.sleep(0.01)
    tid = hand.native_id or 0
    leader = groups(tid)
    native.begin([leader], [SIZE], [tid], {SOME: [0]})
    edge = native.reader(SOME)
    for _ in range(5):
        edge()  # asleep, and known to be
    native.take()

    def clock_now() -> int:
        return int(memoryview(os.read(leader, SIZE)).cast("Q")[3])

    hand.begin(lambda: hashlib.pbkdf2_hmac("sha256", b"x", b"y", 400_000))
    around: list[tuple[int, int]] = []
    while not hand.done.acquire(timeout=0.001):
        before = clock_now()
        edge()
        around.append((before, clock_now()))
    clocks = memoryview(native.take()[1]).cast("Q").tolist()[3 :: SIZE // 8]
    # With more threads than processors it may be off for a while, but it is never taken for asleep.
    assert len(clocks) == len(around)
    assert [clock for clock, (before, after) in zip(clocks, around, strict=True) if not before <= clock <= after] == []
    assert len(set(clocks)) > 5, "it did run"


def test_a_sleeper_is_not_read(groups: Callable[[int], int], native: NativeGroupReads) -> None:
    hand = WorkerThread()
    time.sleep(0.01)
    tid = hand.native_id or 0
    fd = groups(tid)
    native.begin([fd], [SIZE], [tid], {SOME: [0], ALL: [0]})
    edge, certain = native.reader(SOME), native.reader(ALL)
    edge(), edge()
    nothing = os.open(os.devnull, os.O_RDONLY)
    kept = os.dup(fd)
    try:
        os.dup2(nothing, fd)  # whoever reads it now gets nothing
        edge(), certain()
        os.dup2(kept, fd)
    finally:
        os.close(kept)
        os.close(nothing)
    rows = native.take()[1]
    assert rows[2 * SIZE : 3 * SIZE] == rows[SIZE : 2 * SIZE] and any(rows[SIZE : 2 * SIZE])
    assert rows[3 * SIZE :] == b"\xff" * SIZE


def test_edges_touch_no_new_memory(groups: Callable[[int], int], native: NativeGroupReads) -> None:
    """The page faults that a layer is charged with are its own."""
    tid = threading.get_native_id()
    native.begin([groups(tid)], [SIZE], [tid], {SOME: [0]})
    edge = native.reader(SOME)
    edge()
    for _ in range(10_000):
        edge()
    rows = memoryview(native.take()[1]).cast("Q")
    faults = rows[4 :: SIZE // 8].tolist()
    assert faults[-1] - faults[0] <= 2


def test_a_child_of_the_process_can_pass_an_edge(groups: Callable[[int], int], native: NativeGroupReads) -> None:
    """The kernel does not give a forked child the pages of the doorbells."""
    hand = WorkerThread()
    time.sleep(0.01)
    tid = hand.native_id or 0
    native.begin([groups(tid)], [SIZE], [tid], {SOME: [0]})
    edge = native.reader(SOME)
    edge(), edge(), edge()
    child = os.fork()
    if child == 0:
        edge()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


def test_python_reads_the_same_of_a_sleeper(groups: Callable[[int], int], native: NativeGroupReads) -> None:
    hand = WorkerThread()
    time.sleep(0.01)
    tid = hand.native_id or 0
    fd = groups(tid)
    rows = []
    for reads in (native, PythonGroupReads()):
        reads.begin([fd], [SIZE], [tid], {SOME: [0]})
        for _ in range(4):
            reads.reader(SOME)()
        rows.append(reads.take())
    assert rows[0] == rows[1]


def test_what_is_made_by_default_is_the_compiled_one(native: NativeGroupReads) -> None:
    assert isinstance(make_group_reads(), NativeGroupReads)
