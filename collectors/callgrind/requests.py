"""What a program asks of callgrind while it runs under it.

PyTorch has two of callgrind's requests built in. The third, to begin with counting at all, is made here: until then
valgrind runs the program several times faster, which importing torch is glad of.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
from collections.abc import Callable
from typing import Any, Final

from hwprof.errors import HwprofError

CODE: Final = bytes.fromhex(
    "4889f8"  # mov rax, rdi       the request and its arguments
    "31d2"  # xor edx, edx         the answer where nobody hears it
    "48c1c703 48c1c70d 48c1c73d 48c1c733"  # rol rdi, 3, 13, 61, 51: nothing happens
    "4887db"  # xchg rbx, rbx      and after these, nothing again: valgrind takes it for the request
    "4889d0 c3"  # mov rax, rdx; ret
)
"""valgrind.h's request on x86-64, as a function of the arguments' address."""

RUNNING_ON_VALGRIND: Final = 0x1001
START_INSTRUMENTATION: Final = (ord("C") << 24 | ord("T") << 16) + 4
STOP_INSTRUMENTATION: Final = START_INSTRUMENTATION + 1
"""As callgrind.h numbers them."""


def can_request() -> bool:
    """Whether instrumentation can be asked for: the request's code is of one processor."""
    return platform.machine() == "x86_64"


class Requester:
    """Makes requests of valgrind."""

    def __init__(self) -> None:
        """Raises ``HwprofError`` outside of valgrind."""
        self._code = mmap.mmap(-1, len(CODE), prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        self._code.write(CODE)
        buffer: Any = (ctypes.c_char * 0).from_buffer(self._code)
        self._function = ctypes.CFUNCTYPE(ctypes.c_ulong, ctypes.c_void_p)(ctypes.addressof(buffer))
        if not self._request(RUNNING_ON_VALGRIND):
            raise HwprofError("this process does not run under valgrind")

    def _request(self, number: int) -> int:
        arguments = (ctypes.c_uint64 * 6)(number)
        return int(self._function(ctypes.addressof(arguments)))

    def start_instrumentation(self) -> None:
        """From here on instructions are counted, while collecting is on."""
        self._request(START_INSTRUMENTATION)

    def stop_instrumentation(self) -> None:
        """From here on the program runs faster again."""
        self._request(STOP_INSTRUMENTATION)


def torch_requests() -> tuple[Callable[[], None], Callable[[], None]]:
    """PyTorch's own: collecting on or off; and the same, then a dump of what was collected since the last one.

    Raises ``HwprofError`` where PyTorch was built without them.
    """
    import torch

    library: Any = torch._C
    if not getattr(library, "_valgrind_supported_platform", bool)():
        raise HwprofError("this build of PyTorch has no callgrind requests", "use PyTorch's own wheel for Linux")
    return library._valgrind_toggle, library._valgrind_toggle_and_dump_stats
