"""What the kernel writes into a page that holds code: the system call does what it does without instrumentation."""

from __future__ import annotations

import platform
from textwrap import dedent

import pytest

from tests.support.code_in_memory import BEGIN
from tests.support.instrumented_process import child

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="code is instrumented on x86-64")

WRITES = {
    "read": "os.lseek(file, 0, 0); expect(64, libc.read(file, buffer, 64))",
    "getrandom": "expect(64, libc.getrandom(buffer, 64, 0))",
    "fstat": "expect(0, libc.syscall(5, 0, buffer))",
    "ioctl": "receiver, sender = letter(); expect(0, libc.ioctl(receiver.fileno(), 0x541b, buffer))",
    "preadv2": "expect(64, libc.preadv2(file, parts, 1, ctypes.c_long(0), 0))",
    "process_vm_readv": "expect(64, libc.process_vm_readv(os.getpid(), parts, 1, source, 1, 0))",
    "recvfrom": "receiver, sender = letter(); expect(64, receiver.recv_into(page_part))",
    "recvmsg": "receiver, sender = letter(); expect(64, receiver.recvmsg_into([page_part])[0])",
    "recvmmsg": "receiver, sender = letter(); expect(1, libc.recvmmsg(receiver.fileno(), letters, 1, 0, None))",
}
"""By the system call: 2 KB behind the code is ``buffer`` (``page_part`` is the same for Python), ``parts`` an iovec of
it, ``letters`` a mmsghdr of that."""

PROGRAM = """
    import socket
    def letter():
        receiver, sender = socket.socketpair()
        sender.send(bytes(range(1, 65)))
        return receiver, sender
    file = os.memfd_create("bytes")
    os.write(file, bytes(range(1, 65)))
    at = memory(RWX)
    page_part, other = (ctypes.c_char * 64).from_address(at + 2048), (ctypes.c_char * 64)(*[7] * 64)
    buffer = ctypes.c_void_p(at + 2048)
    parts, source = ((ctypes.c_uint64 * 2)(ctypes.addressof(one), 64) for one in (page_part, other))
    letters = (ctypes.c_uint64 * 8)(0, 0, ctypes.addressof(parts), 1, 0, 0, 0, 0)
    write(at, 5)
    engine.instrument()
    for _ in range(3):
        ctypes.memset(at + 2048, 0, 64)
        expect(5, call(at))
        {write}
        written = bytes(page_part)
        expect(5, call(at))
    end(wrong=wrong, right=len(right), written=any(written), outcome=outcome())
"""


@pytest.mark.parametrize("call", list(WRITES))
def test_the_kernel_writes_where_code_is(call: str) -> None:
    said = child(f"{dedent(BEGIN)}\n{dedent(PROGRAM.format(write=WRITES[call]))}")
    assert said["wrong"] == []
    assert said["right"] == 9
    assert said["written"]
    assert said["outcome"] is None
