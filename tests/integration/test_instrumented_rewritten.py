"""Code that becomes other code while there are copies of it: what is executed is what stands there, always, and that
counts are not complete is said."""

from __future__ import annotations

import platform
from textwrap import dedent

import pytest

from tests.support.code_in_memory import BEGIN
from tests.support.instrumented_process import child

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="code is instrumented on x86-64")

WAYS = {
    "in place": """
        at = memory(RWX)
        engine.instrument()
        for value in range(6):
            write(at, value)
            expect(value, call(at))
            expect(value, call(at))
    """,
    "across a page's end": """
        at = memory(RWX) + 4096 - 3
        engine.instrument()
        for value in range(6):
            write(at, value << 16)
            expect(value, call(at) >> 16)
            expect(value, call(at) >> 16)
    """,
    "made writable and executable again": """
        at = memory(RW)
        engine.instrument()
        for value in range(6):
            libc.mprotect(at, 8192, RW)
            write(at, value)
            libc.mprotect(at, 8192, RX)
            expect(value, call(at))
            expect(value, call(at))
    """,
    "mapped over": """
        at = memory(RWX)
        engine.instrument()
        for value in range(6):
            memory(RWX, at)
            write(at, value)
            expect(value, call(at))
            expect(value, call(at))
    """,
    "moved there": """
        at = memory(RWX)
        write(at, 99)
        engine.instrument()
        call(at)
        for value in range(6):
            other = memory(RWX)
            write(other, value)
            assert libc.mremap(other, 8192, 8192, 3, at) == at
            expect(value, call(at))
            expect(value, call(at))
    """,
    "moved away, written, moved back": """
        at, other = memory(RWX), memory(RWX)
        write(at, 99)
        engine.instrument()
        for value in range(6):
            call(at)
            assert libc.mremap(at, 8192, 8192, 3, other) == other
            write(other, value)
            expect(value, call(other))
            assert libc.mremap(other, 8192, 8192, 3, at) == at
            expect(value, call(at))
    """,
    "through another mapping": """
        file = os.memfd_create("code")
        os.ftruncate(file, 8192)
        at, alias = memory(RX, None, file, SHARED), memory(RW, None, file, SHARED)
        engine.instrument()
        for value in range(6):
            write(alias, value)
            expect(value, call(at))
            expect(value, call(at))
    """,
    "through the file": """
        file = os.memfd_create("code")
        os.ftruncate(file, 8192)
        at = memory(RX, None, file)
        engine.instrument()
        for value in range(6):
            os.pwrite(file, code(value), 0)
            expect(value, call(at))
            expect(value, call(at))
    """,
    "by the kernel": """
        at = memory(RWX)
        target = (ctypes.c_char * 6).from_address(at)
        file = os.memfd_create("bytes")
        engine.instrument()
        for value in range(6):
            os.pwrite(file, code(value), 0)
            assert os.preadv(file, [target], 0) == 6
            expect(value, call(at))
            os.lseek(file, 0, 0)
            os.pwrite(file, code(value + 50), 0)
            assert os.readv(file, [target]) == 6
            expect(value + 50, call(at))
    """,
    "by another thread": """
        at = memory(RWX)
        engine.instrument()
        for value in range(6):
            elsewhere(write, at, value)
            expect(value, call(at))
            expect(value, call(at))
    """,
    "while others handle faults": """
        at = memory(RWX)
        engine.instrument()
        faulthandler.enable()
        for value in range(6):
            write(at, value)
            expect(value, call(at))
            expect(value, call(at))
    """,
    "instrumented anew": """
        at = memory(RWX)
        for value in range(3):
            engine.instrument()
            write(at, value)
            expect(value, call(at))
            expect(value, call(at))
            engine.uninstrument()
            write(at, value + 50)
            engine.instrument()
            expect(value + 50, call(at))
            expect(value + 50, call(at))
            engine.uninstrument()
        engine.instrument()
        call(at)
        write(at, 7)
        expect(7, call(at))
    """,
    "often": """
        at = memory(RWX)
        engine.instrument()
        for value in range(100):
            write(at, value)
            expect(value, call(at))
    """,
}


@pytest.mark.parametrize("way", list(WAYS))
def test_what_is_executed_is_what_stands_there(way: str) -> None:
    said = child(f"{dedent(BEGIN)}\n{dedent(WAYS[way])}\nend(wrong=wrong, right=len(right), outcome=outcome())")
    assert said["wrong"] == []
    assert said["right"] >= 12
    assert "was rewritten" in said["outcome"]


UNSEEN = {
    "by another thread's system calls": """
        at = memory(RW)
        write(at, 1)
        libc.mprotect(at, 8192, RX)
        engine.instrument()
        call(at)
        elsewhere(lambda: (libc.mprotect(at, 8192, RW), write(at, 2), libc.mprotect(at, 8192, RX)))
    """,
    "by another thread's system calls, and back at an edge": """
        at = memory(RW)
        write(at, 1)
        libc.mprotect(at, 8192, RX)
        engine.instrument()
        call(at)
        for value in (2, 1):
            elsewhere(lambda: (libc.mprotect(at, 8192, RW), write(at, value), libc.mprotect(at, 8192, RX)))
            engine.edge()
    """,
    "in a library's file": """
        file = tempfile.NamedTemporaryFile()
        os.pwrite(file.fileno(), code(1) + bytes(8192), 0)
        at = memory(RX, None, file.fileno())
        engine.instrument()
        call(at)
        os.pwrite(file.fileno(), code(2), 0)
    """,
    "in a library's memory": """
        at = ctypes.cast(libc.labs, ctypes.c_void_p).value
        engine.instrument()
        assert libc.labs(-3) == 3
        page = at & -4096
        libc.mprotect(page, 8192, RWX)
    """,
}


@pytest.mark.parametrize("way", list(UNSEEN))
def test_what_nobody_saw_is_found_out_afterwards(way: str) -> None:
    said = child(f"{dedent(BEGIN)}\n{dedent(UNSEEN[way])}\nend(outcome=outcome())")
    assert "was rewritten" in said["outcome"]


HARMLESS = {
    "other code beside it": """
        at = memory(RWX)
        engine.instrument()
        for value in range(40):
            write(at + 16 * value, value)
            expect(value, call(at + 16 * value))
            expect(0, call(at))
    """,
    "written as it was": """
        at = memory(RWX)
        engine.instrument()
        for value in range(40):
            write(at, 7)
            expect(7, call(at))
    """,
    "protected as it was": """
        at = memory(RW)
        write(at, 7)
        libc.mprotect(at, 8192, RX)
        engine.instrument()
        for value in range(12):
            libc.mprotect(at, 8192, RX)
            expect(7, call(at))
    """,
    "unmapped, and other code in its place": """
        at = memory(RWX)
        engine.instrument()
        for value in range(12):
            write(at, value)
            expect(value, call(at))
            libc.munmap(ctypes.c_void_p(at), ctypes.c_size_t(8192))
            at = memory(RWX)
    """,
    "callbacks that come and go": """
        engine.instrument()
        for value in range(40):
            back = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: value)
            expect(value, call(ctypes.cast(back, ctypes.c_void_p).value))
            del back
    """,
}


@pytest.mark.parametrize("way", list(HARMLESS))
def test_code_that_stays_as_it_is_stays_counted(way: str) -> None:
    said = child(f"{dedent(BEGIN)}\n{dedent(HARMLESS[way])}\nend(wrong=wrong, right=len(right), outcome=outcome())")
    assert said["wrong"] == []
    assert said["right"] >= 12
    assert said["outcome"] is None
