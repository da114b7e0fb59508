"""Shows, inside the guest, that the emulated PMU counts what it should; run by ``pmu_vm.sh selftest``.

Needs Python's standard library only.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import mmap
import os
import platform
import struct
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

PERF_EVENT_OPEN = 241
HARDWARE = 0
CYCLES, INSTRUCTIONS, CACHE_REFERENCES, CACHE_MISSES, BRANCH_MISSES = 0, 1, 2, 3, 5
TIMES, TIMES_AND_GROUP = 3, 11  # read_format: enabled and running time, with the whole group
SAMPLE_IP = 1
ENABLE, DISABLE, RESET = 0x2400, 0x2401, 0x2403

# count_loop(fd, n): enable fd; n times {subs; b.ne}; disable fd
COUNT_LOOP = bytes.fromhex(
    "e90300aaea0301aa018084d2020080d2a80380d2010000d44a0500f1e1ffff54e00309aa218084d2020080d2010000d4c0035fd6"
)
LOOP = bytes.fromhex("ea0300aa") + COUNT_LOOP[24:32] + COUNT_LOOP[48:]  # loop(n): the loop alone
LOOP_OFFSET = 256

libc = ctypes.CDLL(None, use_errno=True)
code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code[: len(COUNT_LOOP)] = COUNT_LOOP
code[LOOP_OFFSET : LOOP_OFFSET + len(LOOP)] = LOOP
code_address = ctypes.addressof(ctypes.c_char.from_buffer(code))
count_loop = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_int, ctypes.c_uint64)(code_address)
loop = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_uint64)(code_address + LOOP_OFFSET)

failures: list[str] = []


def check(what: str, passed: bool, detail: object) -> None:
    if not passed:
        failures.append(what)
    print("ok  " if passed else "FAIL", what, "--", detail, flush=True)


@contextlib.contextmanager
def counter(
    config: int,
    *,
    group: int = -1,
    read_format: int = TIMES,
    inherit: bool = False,
    period: int = 0,
    sample: int = 0,
    disabled: bool = True,
) -> Iterator[int]:
    """An event of the calling thread, in user mode only."""
    flags = disabled | inherit << 1 | 1 << 5 | 1 << 6
    attributes = struct.pack("<IIQQQQQII", HARDWARE, 128, config, period, sample, read_format, flags, 1, 0)
    fd = libc.syscall(PERF_EVENT_OPEN, attributes.ljust(128, b"\0"), 0, -1, group, 8)
    if fd < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    try:
        yield fd
    finally:
        os.close(fd)


def ioctl(fd: int, request: int, argument: int = 0) -> None:
    libc.ioctl(fd, ctypes.c_ulong(request), ctypes.c_ulong(argument))


def read(fd: int, words: int = 3) -> tuple[int, ...]:
    return struct.unpack(f"<{words}Q", os.read(fd, 8 * words))


def instructions_are_exact() -> None:
    over: dict[int, set[int]] = {}
    with counter(INSTRUCTIONS) as fd:
        for turns in (10, 1000, 100_000, 10_000_000):
            over[turns] = set()
            for _ in range(5):
                ioctl(fd, RESET)
                count_loop(fd, turns)
                over[turns].add(read(fd)[0] - 2 * turns)
    check("instructions exact", len(set.union(*over.values())) == 1, f"count minus 2n, for each n: {over}")


def cycles_count() -> None:
    with counter(CYCLES) as fd:
        count_loop(fd, 1_000_000)
        cycles = read(fd)[0]
    check("cycles count", cycles > 1_000_000, f"1000000 turns of two instructions: {cycles} cycles")


def others_are_refused() -> None:
    events = {
        "cache-references": CACHE_REFERENCES,
        "cache-misses": CACHE_MISSES,
        "branch-misses": BRANCH_MISSES,
    }
    for name, config in events.items():
        try:
            with counter(config):
                check(f"{name} refused", False, "opened")
        except OSError as error:
            check(f"{name} refused", error.errno == errno.ENOENT, errno.errorcode[error.errno or 0])


def groups_and_inheritance() -> None:
    for inherit in (False, True):
        with (
            counter(INSTRUCTIONS, read_format=TIMES_AND_GROUP, inherit=inherit) as leader,
            counter(CYCLES, group=leader, read_format=TIMES_AND_GROUP, inherit=inherit, disabled=False),
        ):
            ioctl(leader, ENABLE, 1)
            threads = [threading.Thread(target=loop, args=(2_000_000,)) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            ioctl(leader, DISABLE, 1)
            _, _, _, instructions, cycles = read(leader, 5)
        expected = 16_000_000 <= instructions < 18_000_000 if inherit else instructions < 2_000_000
        detail = f"four threads of 4000000 instructions: {instructions} instructions, {cycles} cycles"
        check(f"group read, inherit={inherit:d}", expected, detail)


def multiplexing() -> None:
    with contextlib.ExitStack() as stack:
        fds = [stack.enter_context(counter(INSTRUCTIONS)) for _ in range(12)]
        for fd in fds:
            ioctl(fd, ENABLE)
        loop(60_000_000)
        for fd in fds:
            ioctl(fd, DISABLE)
        results = [read(fd) for fd in fds]
    shares = [running / enabled for _, enabled, running in results]
    right = all(abs(value / share / 120e6 - 1) < 0.05 for (value, _, _), share in zip(results, shares, strict=True))
    listed = " ".join(f"{share:.2f}" for share in shares)
    check("multiplexing", max(shares) < 0.7 and right, f"12 events on 6 counters, running/enabled {listed}")


def sampling() -> None:
    period = 100_000
    with counter(CYCLES, period=period, sample=SAMPLE_IP) as fd:
        ring = mmap.mmap(fd, 17 * mmap.PAGESIZE)
        ioctl(fd, ENABLE)
        loop(5_000_000)
        ioctl(fd, DISABLE)
        cycles = read(fd)[0]
        written = struct.unpack_from("<Q", ring, 1024)[0]  # data_head of the first page
        offset, hits, samples = mmap.PAGESIZE, 0, 0
        while offset < mmap.PAGESIZE + written:
            kind, _, size, address = struct.unpack_from("<IHHQ", ring, offset)
            offset += size
            if kind == 9:  # PERF_RECORD_SAMPLE
                samples += 1
                hits += code_address + LOOP_OFFSET <= address < code_address + LOOP_OFFSET + len(LOOP)
        ring.close()
    expected = abs(samples - cycles // period) <= 2 and hits > 0.9 * samples
    check("sampling on cycles", expected, f"{samples} samples for {cycles} cycles at period {period}, {hits} inside")


def main() -> int:
    if platform.machine() != "aarch64":
        sys.exit("selftest: made for the aarch64 guest")
    names = sorted(entry.name for entry in Path("/sys/bus/event_source/devices").iterdir())
    check("armv8_pmuv3 driver", "armv8_pmuv3" in names, " ".join(names))
    instructions_are_exact()
    cycles_count()
    others_are_refused()
    groups_and_inheritance()
    multiplexing()
    sampling()
    print("PMU self-test:", f"{len(failures)} failed" if failures else "passed")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
