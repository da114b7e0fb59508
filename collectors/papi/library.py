"""libpapi, bound through ctypes: found, initialised, and the few calls that counting by thread needs.

Of PAPI's structures only the parts are read that stand at the same place in every version from 6.0 on: a component's
name and the reason why it is disabled.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib.util
import os
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from hwprof.errors import HwprofError
from hwprof.hardware.perf_event import GROUP_HEADER_WORDS

ENVIRONMENT: Final = "PAPI_LIBRARY"
"""The variable that names the library to use."""

SONAMES: Final = ("libpapi.so", "libpapi.so.7.2", "libpapi.so.7.1", "libpapi.so.7.0", "libpapi.so.7", "libpapi.so.6.0")
"""Tried where the linker's cache knows no libpapi."""

VERSIONS: Final = tuple((major, minor) for major in (7, 6) for minor in range(10))
"""Those that the library is asked to start as: it says no to every one but its own."""

INSTALL: Final = f"sudo apt-get install libpapi-dev, or pip install python-papi, or {ENVIRONMENT}=/path/to/libpapi.so"
NEWER: Final = f"install a newer PAPI (sudo apt-get install libpapi-dev), or name it: {ENVIRONMENT}=/path/to/libpapi.so"

# papi.h: error codes that are distinguished
ESYS: Final = -3
ENOEVNT: Final = -7
ECNFLCT: Final = -8
EPERM: Final = -15
ENOSUPP: Final = -18
ECOUNT: Final = -23
_OK: Final = 0
_NULL: Final = -1
_LIB_VERSION: Final = 21
_DOMAIN_USER: Final = 1
_DOMAIN_KERNEL: Final = 2

# PAPI_component_info_t begins: name[128], short_name[64], description[128], version[64], support_version[64],
# kernel_version[64], disabled_reason[128 in 6.0, 1024 since 7.0]
_DISABLED_REASON: Final = 128 + 64 + 128 + 3 * 64

COMPONENT: Final = "perf_event"
"""PAPI's component that counts by thread."""


class PapiError(Exception):
    """A call that PAPI refused; ``code`` is PAPI's."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Papi:
    """The initialised library. Raises ``HwprofError`` where its version is not one that this binding knows."""

    def __init__(self, library: ctypes.PyDLL, path: str) -> None:
        self._library = library
        self.path = path
        library.PAPI_strerror.restype = ctypes.c_char_p
        library.PAPI_get_component_info.restype = ctypes.c_void_p
        library.PAPI_attach.argtypes = [ctypes.c_int, ctypes.c_ulong]
        currents = (major << 24 | minor << 16 for major, minor in VERSIONS)  # PAPI_VER_CURRENT of each
        if not any(library.PAPI_library_init(current) == current for current in currents):
            raise HwprofError(f"{path} does not start as PAPI 6 or 7", NEWER)
        number = library.PAPI_get_opt(_LIB_VERSION, None)
        self.version = ".".join(str(number >> shift & 0xFF) for shift in (24, 16, 8))
        self.component = self._component_index()

    # --- What it can count

    def why_disabled(self) -> str | None:
        """Why PAPI counts nothing by thread here, in its own words; None where it does."""
        if self.component < 0:
            return f"it was built without the component {COMPONENT}"
        return self._component_text(self.component, _DISABLED_REASON) or None

    def code(self, name: str) -> int | None:
        """The event's number in this process; None where PAPI does not know the name."""
        code = ctypes.c_int()
        found = self._library.PAPI_event_name_to_code(name.encode(), ctypes.byref(code))
        return code.value if found == _OK else None

    def component_of(self, code: int) -> str:
        """The name of the component that counts an event."""
        return self._component_text(self._library.PAPI_get_event_component(code), 0)

    def has(self, name: str) -> bool:
        """Whether the preset or native event can be asked for on this machine."""
        return bool(self._library.PAPI_query_named_event(name.encode()) == _OK)

    def count_kernel(self, kernel: bool) -> None:
        """Whether event sets made from now on count what the kernel does for the thread, too."""
        domain = _DOMAIN_USER | (_DOMAIN_KERNEL if kernel else 0)
        self._check(self._library.PAPI_set_cmp_domain(domain, self.component))

    # --- Event sets

    def open_set(self, events: Sequence[str], tid: int | None) -> int:
        """An event set on a thread (None: the caller), stopped. Raises ``PapiError``; nothing stays open then."""
        number = ctypes.c_int(_NULL)
        self._check(self._library.PAPI_create_eventset(ctypes.byref(number)))
        try:
            self._check(self._library.PAPI_assign_eventset_component(number, self.component))
            if tid is not None:
                self._check(self._library.PAPI_attach(number, tid))
            for event in events:
                self._check(self._library.PAPI_add_named_event(number, event.encode()))
        except PapiError:
            self.close_set(number.value)
            raise
        return number.value

    def start(self, number: int) -> None:
        """Counts from 0. A thread can have one running set."""
        self._check(self._library.PAPI_start(number))

    def stop(self, number: int) -> None:
        """Ends counting."""
        self._check(self._library.PAPI_stop(number, None))

    def close_set(self, number: int) -> None:
        """Gives the set's descriptors back, running or not."""
        self._library.PAPI_stop(number, None)
        self._library.PAPI_cleanup_eventset(number)
        self._library.PAPI_destroy_eventset(ctypes.byref(ctypes.c_int(number)))

    def values(self, number: int, events: int) -> tuple[int, ...]:
        """The set's values now."""
        values = (ctypes.c_longlong * events)()
        self._check(self._library.PAPI_read(number, values))
        return tuple(values)

    def reader(self, events: int) -> Callable[[int, int], bytes]:
        """A function that reads a set of at most that many events as ``os.read`` reads a group of the kernel's: its
        number, the size in bytes; an empty answer where PAPI refuses. The header's words are 0. One thread at a time.
        """
        words = (ctypes.c_longlong * (GROUP_HEADER_WORDS + events))()
        values = ctypes.byref(words, 8 * GROUP_HEADER_WORDS)
        raw = memoryview(words).cast("B")
        papi_read = self._library.PAPI_read

        def read(number: int, size: int) -> bytes:
            return b"" if papi_read(number, values) else raw[:size].tobytes()

        return read

    # --- within

    def _component_index(self) -> int:
        for index in range(self._library.PAPI_num_components()):
            if self._component_text(index, 0) == COMPONENT:
                return index
        return -1

    def _component_text(self, index: int, offset: int) -> str:
        address = self._library.PAPI_get_component_info(index)
        return ctypes.string_at(address + offset).decode(errors="replace") if address else ""

    def _check(self, code: int) -> None:
        if code < _OK:
            raise PapiError(code, self._message(code))

    def _message(self, code: int) -> str:
        text: bytes | None = self._library.PAPI_strerror(code)
        return text.decode(errors="replace") if text else f"PAPI's error {code}"


@cache
def load() -> Papi:
    """The library, initialised once a process. Raises ``HwprofError`` with what to install where there is none."""
    named = os.environ.get(ENVIRONMENT)
    if named:
        try:
            return Papi(_open(named), named)
        except (OSError, AttributeError) as error:
            raise HwprofError(f"{ENVIRONMENT} names {named}, which is not libpapi ({error})", INSTALL) from error
    for path in _candidates():
        try:
            return Papi(_open(path), path)
        except (OSError, AttributeError):
            continue
    raise HwprofError("libpapi is not installed", INSTALL)


def _open(path: str) -> ctypes.PyDLL:
    # PyDLL: a call takes about a microsecond, less than giving the interpreter lock away and getting it back
    return ctypes.PyDLL(path)


def _candidates() -> Iterator[str]:
    """Where libpapi may be: the system's own, then the one inside the python-papi wheel."""
    known = ctypes.util.find_library("papi")
    if known:
        yield known
    yield from SONAMES
    wheel = importlib.util.find_spec("pypapi")
    for folder in wheel.submodule_search_locations or () if wheel else ():
        for file in sorted(Path(folder).glob("_papi*.so")):
            yield str(file)
