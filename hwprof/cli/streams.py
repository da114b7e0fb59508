"""The process's standard streams, whatever its starter left of them: closed, full, or with a reader who has gone."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TextIO

import click

from hwprof.errors import HwprofError, remedy_of_writing
from hwprof.printable import escaped_json, printable

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_CLOSED: Final = ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY))
"""What stands in for a closed stream: nobody reads complaints, but an output that goes nowhere is a failure."""


class ReaderGoneError(Exception):
    """Nobody reads standard output any more, as after ``| head``. No ``BrokenPipeError``: click and rich would end the
    process with their own exit code."""


class _Output(io.FileIO):
    """Standard output: what cannot be written ends the command, and says so."""

    given_up = False

    def write(self, data: ReadableBuffer) -> int:
        """As a file does it; raises ``HwprofError`` or ``ReaderGoneError``."""
        if self.given_up:
            return memoryview(data).nbytes
        try:
            return super().write(data)
        except BrokenPipeError:
            raise ReaderGoneError from None
        except OSError as error:
            raise HwprofError(f"cannot write to standard output: {error.strerror}", _remedy(error)) from error


class _Complaints(io.FileIO):
    """Standard error: what cannot be said there can be said nowhere, and changes no exit code."""

    def write(self, data: ReadableBuffer) -> int:
        """As a file does it, or not at all."""
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


def _remedy(error: OSError) -> str:
    """What to do where standard output takes nothing."""
    return "do not close it (>&-)" if error.errno == errno.EBADF else remedy_of_writing(error)


def prepare() -> None:
    """Gives the process all three streams: a file that it opens must not become one of them."""
    for descriptor, flags in _CLOSED:
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, flags), True)  # the lowest free number: this one
    sys.stdout = _text(sys.stdout, _Output, 1, "strict")
    sys.stderr = _text(sys.stderr, _Complaints, 2, "backslashreplace")


def _text(given: TextIO | None, kind: Callable[..., io.FileIO], descriptor: int, errors: str) -> io.TextIOWrapper:
    """The stream as Python made it, over a file of ours."""
    return io.TextIOWrapper(
        io.BufferedWriter(kind(descriptor, "wb", closefd=False)),
        encoding=(given.encoding if given is not None else None) or "utf-8",
        errors=(given.errors if given is not None else None) or errors,
        newline="\n",
        line_buffering=descriptor == 2 or os.isatty(descriptor),
    )


def settle() -> None:
    """Writes what is still to be written to standard output; where that is not possible, it is given up."""
    try:
        sys.stdout.flush()
    except (OSError, HwprofError, ReaderGoneError):
        give_up_output()


def give_up_output() -> None:
    """Nothing goes to standard output any more, nor is tried again when the process ends; no descriptor is needed."""
    output = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    if isinstance(output, _Output):
        output.given_up = True


def print_csv(text: str) -> None:
    """Prints CSV, in which names from outside may stand: as it is into files and pipes, made harmless on a terminal."""
    sys.stdout.write(printable(text, kept="\n") if sys.stdout.isatty() else text)


def print_json(text: str) -> None:
    """Prints JSON, in which names from outside may stand."""
    click.echo(escaped_json(text))
