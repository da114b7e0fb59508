"""Code that becomes other code while there are copies of it: what is executed is what stands there, always, and that
counts are not complete is said."""

from __future__ import annotations

import platform
from textwrap import dedent

import pytest

from tests.support.instrumented_process import child

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="code is instrumented on x86-64")

BEGIN = """
    from collectors.instrumented.notes import check_complete
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = libc.mremap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    libc.mremap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]
    RW, RX, RWX, PRIVATE, FIXED = 3, 5, 7, 0x22, 0x10

    def memory(protection, at=None):
        made = libc.mmap(at, 8192, protection, PRIVATE | (FIXED if at else 0), -1, 0)
        assert made != ctypes.c_void_p(-1).value
        return made

    def write(at, value):  # mov eax, value; ret
        ctypes.memmove(at, b"\\xb8" + value.to_bytes(4, "little") + b"\\xc3", 6)

    def call(at):
        return ctypes.PYFUNCTYPE(ctypes.c_int)(at)()

    def outcome():
        engine.uninstrument()
        try:
            check_complete(engine)
        except HwprofError as error:
            return error.message
        return None

    wrong, right = [], []

    def expect(value, got):
        (right if got == value else wrong).append((value, got))

    engine = Engine()
"""

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
    "by another thread": """
        at = memory(RWX)
        engine.instrument()
        for value in range(6):
            thread = threading.Thread(target=write, args=(at, value))
            thread.start()
            thread.join()
            expect(value, call(at))
            expect(value, call(at))
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
