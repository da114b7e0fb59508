"""Instruments threads of its own process with frida's Stalker: each counts the basic blocks that it executes.

Stalker copies a basic block when it is first executed and runs the copy, into which the C module (``native/``) has put
one increment. Threads have counters of their own. Nothing is traced from outside: no ptrace, no privilege.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
from collections.abc import Callable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from collectors.instrumented.cache_geometry import Geometry
from collectors.instrumented.cache_memory import CacheMemory
from collectors.instrumented.deleted_libraries import deleted_libraries
from collectors.instrumented.faults import handle_faults
from collectors.instrumented.frida_helper import helper_taken_away, require_limits
from collectors.instrumented.memory import SharedMemory
from collectors.instrumented.openmp import OpenMP
from collectors.instrumented.signal_handlers import call_by, watched_signals
from collectors.instrumented.source import agent_source, module_source
from hwprof.errors import HwprofError, first_line
from hwprof.hardware.machine import cpuinfo
from hwprof.printable import printable

FRIDA_VERSION: Final = "17.26.0"
"""The C module knows structures that frida's headers do not show, as they are in this version."""

FUNCTIONS: Final = (
    *("clock_gettime", "close", "memcmp", "mmap", "mprotect", "munmap", "open", "pread", "pthread_self", "read"),
    *("signal", "syscall"),
)
"""Of the C library, which the C module calls."""

REMEDY: Final = f"pip install frida=={FRIDA_VERSION}"


@cache
def processor_flags() -> frozenset[str]:
    """The instruction set extensions as the kernel names them."""
    return cpuinfo().flags


def installed_frida() -> str | None:
    """Its version, without importing it."""
    try:
        return version("frida")
    except PackageNotFoundError:
        return None


class Engine:
    """The one engine of a process. Leave the process with ``os._exit``: copies of code stay in use until then."""

    def __init__(
        self, *, mend_epilog: bool | None = None, caches: Geometry | None = None, place: Path | None = None
    ) -> None:
        """Loads frida's agent into this process and compiles the C module.

        ``mend_epilog``: whether to mend the fault of ``native/epilog.c``; None: where there are registers to lose.
        ``caches``: what the cache model simulates; None: nothing. ``place``: as ``helper_taken_away`` has it.
        Raises ``HwprofError``.
        """
        found = installed_frida()
        if found != FRIDA_VERSION:
            raise HwprofError(f"frida {FRIDA_VERSION} is needed, found {found or 'none'}", REMEDY)
        if gone := deleted_libraries():
            raise HwprofError(
                f"frida cannot instrument a process whose library's file was deleted: {printable(gone[0])}",
                "keep the file for as long as the model runs",
            )
        wanted = "avx512f" in processor_flags() if mend_epilog is None else mend_epilog
        self.openmp = OpenMP()
        self.memory = _memory(wanted, self.openmp.threads)
        self.cache_memory = CacheMemory(caches, self.openmp.threads)
        self.instrumenting = False
        self._agent = self._attach(place)
        self._instrument_address = int(self._agent["instrument"], 16)
        self._uninstrument_address = int(self._agent["uninstrument"], 16)
        self._begin_epoch = ctypes.PYFUNCTYPE(None)(int(self._agent["beginEpoch"], 16))
        self.edge: Callable[[], None] = ctypes.PYFUNCTYPE(None)(int(self._agent["edge"], 16))
        """Logs what every instrumented thread has executed since the last edge."""
        self._look_for_changes = ctypes.PYFUNCTYPE(None)(int(self._agent["lookForChanges"], 16))
        self.memory.control.memory_file = os.open("/proc/self/mem", os.O_RDONLY | os.O_CLOEXEC)
        self.memory.control.task_folder = os.open("/proc/self/task", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._handle_faults()
        self._time_handlers()
        atexit.register(self.uninstrument)
        os.register_at_fork(before=self._before_fork, after_in_parent=self._after_fork, after_in_child=self._in_child)
        self._interrupted = False
        self._thread = 0  # that began instrumentation, and whose pool it is

    @property
    def own_code(self) -> tuple[int, int]:
        """Begin and end of the C module's code."""
        start, size = self._agent["ownCode"]
        return int(start, 16), int(start, 16) + int(size)

    def instrument(self) -> None:
        """From here on the calling thread and its OpenMP pool are instrumented, each by itself."""
        if not self.instrumenting:
            self._begin_epoch()
            self._thread = threading.get_ident()
            self.instrumenting = True
            with self.memory.arena.only_room():
                self.openmp.each(self._instrument_address)

    def uninstrument(self) -> None:
        """The same threads run their own code again. What was copied is compared with what stands there now, and what
        nobody saw change is noted."""
        if self.instrumenting:
            self.openmp.each(self._uninstrument_address)
            self.instrumenting = False
            self._look_for_changes()

    def compile(self, source: str, name: str) -> int:
        """The address of a function of a C source that needs nothing else. Raises ``HwprofError``."""
        import frida

        try:
            return int(self._script.exports_sync.compile(source, name), 16)
        except frida.core.RPCException as error:
            raise HwprofError(f"frida cannot compile {name}: {first_line(error)}") from error

    def _handle_faults(self) -> None:
        try:
            self.memory.control.fault_handler = handle_faults(int(self._agent["onFault"], 16))
        except OSError as error:
            raise HwprofError(f"writes into code cannot be watched: {error.strerror}") from error

    def _time_handlers(self) -> None:
        """Of signals: what they execute is not counted."""
        control = self.memory.control
        try:
            call_by(int(self._agent["onSignal"], 16), control.handlers)
        except OSError as error:
            raise HwprofError(f"handlers of signals cannot be watched: {error.strerror}") from error
        for number in watched_signals():
            control.handlers_watched[number] = 1

    def _before_fork(self) -> None:
        """A fork of an instrumented thread crashes. Others may fork: of the threads the child has only theirs."""
        if threading.get_ident() == self._thread:
            self._interrupted = self.instrumenting
            self.uninstrument()

    def _after_fork(self) -> None:
        if self._interrupted and threading.get_ident() == self._thread:
            self._interrupted = False
            self.instrument()

    def _in_child(self) -> None:
        """There nobody is instrumented, and the pool is gone."""
        self.instrumenting = False

    def _attach(self, place: Path | None) -> dict[str, Any]:
        require_limits()
        import frida

        try:
            with helper_taken_away(place):
                self._session = frida.attach(0)
            self._script = self._session.create_script(agent_source(), name="hwprof")
            self._script.load()
            agent: dict[str, Any] = self._script.exports_sync.start(module_source(), self._symbols())
        except frida.core.RPCException as error:
            raise HwprofError(f"frida cannot compile the counting module: {first_line(error)}") from error
        except Exception as error:  # frida raises a class of its own for each failure
            raise HwprofError(f"frida cannot be loaded into this process: {first_line(error)}") from error
        sizes = [*self.memory.sizes(), ctypes.sizeof(self.cache_memory.model)]
        if agent["sizes"] != sizes:
            raise HwprofError(f"the counting module's memory differs: {agent['sizes']}, not {sizes}")
        return agent

    def _symbols(self) -> dict[str, str]:
        """Addresses of what the C module calls and shares."""
        c_library = ctypes.CDLL(None)
        addresses = {
            "control": ctypes.addressof(self.memory.control),
            "cache_model": ctypes.addressof(self.cache_memory.model),
            "code_pages": ctypes.addressof(self.memory.code_pages),
            "page_states": ctypes.addressof(self.memory.page_states),
            "page_faults": ctypes.addressof(self.memory.page_faults),
            "maps_reader": ctypes.addressof(self.memory.maps_reader),
        }
        addresses |= {name: function_address(c_library[name]) for name in FUNCTIONS}
        return {name: hex(address) for name, address in addresses.items()}


def _memory(mend_epilog: bool, threads: int) -> SharedMemory:
    try:
        return SharedMemory(mend_epilog=mend_epilog, threads=threads)
    except OSError as error:
        raise HwprofError(str(error.strerror), "raise the limit: ulimit -v unlimited") from error


def function_address(function: Any) -> int:
    """Where a C function begins."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0
