"""The two ways in which a command ends badly, each with its exit code and what to do next."""

from __future__ import annotations

import errno
from typing import Final

from hwprof.printable import as_text, as_written
from hwprof.unavailable import explain

LONGEST: Final = 300
"""Characters of somebody else's message: some put a whole tensor, or file, into it."""

LONGEST_READ: Final = 100 * LONGEST
"""Of which its first line is taken."""


NO_MEMORY: Final = "not enough memory"

MORE_PROCESSES: Final = "a higher limit of processes: ulimit -u, or the container's"

OF_SIZE: Final = "a higher limit of the size of files (ulimit -f)"

CPU_ALLOCATOR: Final = "DefaultCPUAllocator"
"""Of torch: it names itself where it cannot have what it asks for."""


class HwprofError(Exception):
    """A failure that the user is told about in one line: what went wrong and what to do next.

    ``exit_code`` is 1: the command was understood and could not be carried out.
    """

    exit_code = 1
    trace: str | None = None
    """Of the process in which it happened, where that was another one: for ``--debug``."""

    def __init__(self, message: str, remedy: str | None = None) -> None:
        super().__init__(message)
        self.message = _in_any_output(message)
        self.remedy = _in_any_output(remedy) if remedy is not None else None

    def __str__(self) -> str:
        return explain(self.message, self.remedy)


class UsageError(HwprofError):
    """The command line asks for something that does not exist, is not what the option takes, or does not fit the rest:
    exit code 2."""

    exit_code = 2


class DamagedError(HwprofError):
    """A file of a run is not what was written there, is gone, is another run's, or cannot be read here. ``table``: the
    one that it is of, where that is known."""

    def __init__(self, message: str, remedy: str | None = None, table: str | None = None) -> None:
        super().__init__(message, remedy)
        self.table = table


class FullDiskError(HwprofError):
    """What was to be written has no room."""

    def __init__(self, place: str) -> None:
        super().__init__(
            f"cannot write to {place}: no space left on the device",
            "free some space or choose another place with --output",
        )


def _in_any_output(text: object) -> str:
    """What names a file or a value may hold halves of characters, which neither JSON nor a terminal takes: they are
    told as they are written. Somebody else's collector may give something that is no text."""
    return as_text(as_written(f"{text}"))


def first_line(error: BaseException) -> str:
    """Somebody else's exception in one short line that any output can show: its message's first line, with what follows
    where that only announces it, or its type."""
    lines = [line.strip() for line in _text(error)[:LONGEST_READ].splitlines() if line.strip()]
    if not lines:
        return _kind(error)
    line, *further = lines
    while line.endswith(":") and further:
        line = f"{line} {further.pop(0)}"
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"


def described(error: BaseException) -> str:
    """``ValueError: bad width``."""
    kind, text = _kind(error), first_line(error)
    return kind if kind == text else f"{kind}: {text}"


def with_cause(text: str, error: BaseException) -> str:
    """``text``, which tells of the error, with what began it, where that says something else."""
    first, seen = error, {id(error)}
    while (before := first.__cause__ or (None if first.__suppress_context__ else first.__context__)) is not None:
        if id(before) in seen:
            break
        first = before
        seen.add(id(first))
    return text if first_line(first) in text else f"{text}: caused by {described(first)}"


def of_system(error: OSError) -> str | None:
    """What the operating system says in one line, ``Permission denied: /data/run``; None where it says nothing: that
    error is not the system's."""
    if not error.strerror:
        return None
    return f"{error.strerror}: {error.filename}" if error.filename else error.strerror


def is_full_disk(error: BaseException) -> bool:
    """Whether an error of the system or of a library that writes says that the device is full."""
    return getattr(error, "errno", None) == errno.ENOSPC or "no space left" in _text(error).lower()


STAYS: Final = "leave the run's folder where it is until hwprof has ended"


def cannot_write(place: object, error: OSError) -> HwprofError:
    """What is said where the system refuses to write there."""
    if is_full_disk(error):
        return FullDiskError(str(place))
    return HwprofError(f"cannot write to {place}: {error.strerror or error}", remedy_of_writing(error))


NO_ROOM: Final = "free some space, or choose another place"

WRITING: Final = {
    errno.EFBIG: OF_SIZE,
    errno.ENOENT: f"{STAYS}, or choose another place",
    errno.EMFILE: "more open files: ulimit -n 1024",
    errno.ENOTDIR: "a place below folders only: a part of this path is a file",
    errno.EEXIST: "another place, or take away what has this name",
    errno.EISDIR: "another place, or take away the folder that has this name",
    errno.ELOOP: "a path without a link that leads to itself",
    errno.ENAMETOOLONG: "a shorter path",
    errno.EACCES: "a place that you may write to",
    errno.EPERM: "a place that you may write to",
    errno.EROFS: "another place: this one can only be read",
}
"""What to do, by the system's number of the error."""


def remedy_of_writing(error: OSError) -> str:
    """What to do where a file could not be written."""
    return WRITING.get(error.errno or 0, NO_ROOM)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error of Python or of torch's allocator, which has no type of its own, says that memory is short."""
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and CPU_ALLOCATOR in _text(error))


def _kind(error: BaseException) -> str:
    """Its type's name, past whatever that type's own type makes of it."""
    name: str = type.__dict__["__name__"].__get__(type(error))
    return name


def _text(error: BaseException) -> str:
    try:
        return str(error).encode(errors="replace").decode()
    except BaseException as odd:  # its author's mistake may hide no failure
        if isinstance(odd, KeyboardInterrupt) and type(odd) is not KeyboardInterrupt:  # ``interrupts.Interrupt``
            raise
        return ""
