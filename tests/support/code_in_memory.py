"""Code that a test writes into memory, and calls, in a process of its own that is instrumented (``child``)."""

from __future__ import annotations

BEGIN = """
    import faulthandler, tempfile
    from collectors.instrumented.notes import check_complete
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = libc.mremap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    libc.mremap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]
    RW, RX, RWX, SHARED, PRIVATE, ANONYMOUS, FIXED = 3, 5, 7, 1, 2, 0x20, 0x10

    def memory(protection, at=None, file=-1, kind=PRIVATE):
        flags = kind | (FIXED if at else 0) | (ANONYMOUS if file < 0 else 0)
        made = libc.mmap(at, 8192, protection, flags, file, 0)
        assert made != ctypes.c_void_p(-1).value
        return made

    def code(value):  # mov eax, value; ret
        return b"\\xb8" + value.to_bytes(4, "little") + b"\\xc3"

    def write(at, value):
        ctypes.memmove(at, code(value), 6)

    def call(at):
        return ctypes.PYFUNCTYPE(ctypes.c_int)(at)()

    def elsewhere(function, *arguments):  # on a thread that is not instrumented
        thread = threading.Thread(target=function, args=arguments)
        thread.start()
        thread.join()

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
"""What such a program begins with."""
