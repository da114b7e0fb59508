"""What frida leaves behind: it unpacks a helper (10 MB) into the folder for temporary files and starts it as a daemon,
also where a process only attaches to itself. Nobody ends it, and nobody takes the folder away."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from hwprof.errors import HwprofError

VARIABLES: Final = ("TMPDIR", "XDG_CONFIG_HOME")
"""Where frida puts its helper's program, and a file that says who it is."""

SOCKET_PATH_BYTES: Final = 107
"""As long as a socket's path can be (``sun_path``, and its NUL): frida cuts longer ones off, and never finds what lies
there then."""

DESCRIPTORS: Final = 28
"""As many as it opens while it attaches: with 27 it crashes (tried out)."""

SPACE_BYTES: Final = 1 << 30
"""Of addresses, so much is to be left; what each thread counts in is most of what comes."""

IMPORT_BYTES: Final = 1830 << 20
"""Of addresses, that importing frida takes: without them its library ends the process, with a page of its own."""

FILE_BYTES: Final = 36 << 20
"""As large as its agent's file is (36,774,216 bytes), or a little more: where none may be as large it aborts the
process."""

SPARE: Final = 6
"""Descriptors: a folder's for each level of what is taken away, and one to list processes."""


def require_limits() -> None:
    """Raises ``HwprofError`` where a limit of this process would be frida's end, and so its own, or have it wait for
    ever for what it cannot get. To be asked before frida is imported."""
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = sum(1 for _ in Path("/proc/self/fd").iterdir()) - 1  # without the one that lists them
    if descriptors != resource.RLIM_INFINITY and descriptors - taken < DESCRIPTORS:
        text = f"frida needs {DESCRIPTORS} file descriptors beside those that are open, of {descriptors} in all"
        raise HwprofError(text, "raise the limit: ulimit -n 1024")
    space, _ = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    needed = SPACE_BYTES if "frida" in sys.modules else SPACE_BYTES + IMPORT_BYTES
    if space != resource.RLIM_INFINITY and space - used < needed:
        text = f"{used >> 20} of {space >> 20} MiB of address space are in use, which leaves frida too little"
        raise HwprofError(text, "raise the limit: ulimit -v unlimited")
    file_bytes, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if file_bytes != resource.RLIM_INFINITY and file_bytes < FILE_BYTES:
        text = f"frida writes files of up to {FILE_BYTES >> 20} MiB, and none may be larger than {file_bytes >> 20} MiB"
        raise HwprofError(text, "raise the limit of the size of files: ulimit -f unlimited")


@contextmanager
def helper_taken_away(place: Path | None = None) -> Iterator[None]:
    """While frida attaches. What runs in this process afterwards does not need the helper. ``place``: the folder for
    its files, so that even of a process that is killed meanwhile nothing lies elsewhere; None, or where programs may
    not run: that for temporary files. Raises ``OSError`` where there is no room, or no descriptor to look for its
    processes and take its files away with."""
    spare = [os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC) for _ in range(SPARE)]
    if place is not None and os.statvfs(place).f_flag & os.ST_NOEXEC:
        place = None
    folder = Path(tempfile.mkdtemp(prefix="frida-", dir=place))
    cut_off = Path(os.fsdecode(os.fsencode(folder)[:SOCKET_PATH_BYTES]))
    was_there = os.path.lexists(cut_off)
    users = {name: os.environ.get(name) for name in VARIABLES}
    os.environ |= dict.fromkeys(VARIABLES, str(folder))
    try:
        yield
    finally:
        for name, value in users.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        for descriptor in spare:
            os.close(descriptor)
        end_programs_in(folder)
        shutil.rmtree(folder, ignore_errors=True)
        if not was_there and cut_off.is_socket():
            cut_off.unlink()


def end_programs_in(folder: Path) -> None:
    """Ends every process whose program lies there, and those that they have forked meanwhile."""
    while found := [number for number, program in _programs() if program.is_relative_to(folder)]:
        for number in found:
            with suppress(OSError):  # it is gone
                os.kill(number, signal.SIGKILL)


def _programs() -> Iterator[tuple[int, Path]]:
    """The processes whose program may be known, with its path."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # gone, or another user's
            yield int(process.name), (process / "exe").readlink()
