"""Other people's exceptions in one line."""

from __future__ import annotations

import errno
import os

import pytest

from hwprof.errors import (
    LONGEST,
    described,
    first_line,
    is_full_disk,
    is_out_of_memory,
    remedy_of_writing,
    with_cause,
)
from hwprof.interrupts import Interrupt


class WithoutTextError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("never")


class InterruptingError(Exception):
    def __str__(self) -> str:
        raise KeyboardInterrupt


class WithoutName(type):
    def __getattribute__(cls, name: str) -> object:
        if name in ("__name__", "__qualname__", "__module__"):
            raise RuntimeError("never")
        return super().__getattribute__(name)


class NamelessError(Exception, metaclass=WithoutName):
    pass


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("bad\nsecond"), "ValueError: bad"),
        (
            RuntimeError("Errors in loading:\n\n\tone of:\n * (a)\nmore"),
            "RuntimeError: Errors in loading: one of: * (a)",
        ),
        (ValueError("ends so:\n"), "ValueError: ends so:"),
        (ValueError(" \n"), "ValueError"),
        (WithoutTextError("x"), "WithoutTextError"),
        (InterruptingError("x"), "InterruptingError"),
        (NamelessError("x"), "NamelessError: x"),
        (ValueError("a \udc80 b"), "ValueError: a ? b"),
        (SystemExit(3), "SystemExit: 3"),
        (OSError(28, "No space left on device"), "OSError: [Errno 28] No space left on device"),
    ],
)
def test_one_line(error: BaseException, line: str) -> None:
    assert described(error) == line


def test_the_users_own_interruption_is_nobodys_mistake() -> None:
    class SlowError(Exception):
        def __str__(self) -> str:
            raise Interrupt

    with pytest.raises(Interrupt):
        described(SlowError())


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.ENOSPC, "space"),
        (errno.EFBIG, "ulimit -f"),
        (errno.ENOENT, "leave the run's folder where it is until hwprof has ended, or choose another place"),
        (errno.EMFILE, "ulimit -n"),
        (errno.ENOTDIR, "a part of this path is a file"),
        (errno.EEXIST, "take away what has this name"),
        (errno.EISDIR, "take away the folder"),
        (errno.ELOOP, "leads to itself"),
        (errno.ENAMETOOLONG, "a shorter path"),
        (errno.EROFS, "another place"),
        (errno.EIO, "another place"),
    ],
)
def test_what_to_do_where_a_file_cannot_be_written(number: int, remedy: str) -> None:
    assert remedy in remedy_of_writing(OSError(number, os.strerror(number)))


def chained(error: BaseException, cause: BaseException | None) -> BaseException:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("cause", "expected"),
    [
        (None, "no model"),
        (chained(ImportError("no part"), RuntimeError("no operator")), "no model: caused by RuntimeError: no operator"),
        (ValueError("no model"), "no model"),
    ],
)
def test_what_began_it_is_told_where_it_says_more(cause: BaseException | None, expected: str) -> None:
    assert with_cause("no model", chained(ImportError("no model"), cause)) == expected


def test_causes_in_a_circle_come_to_an_end() -> None:
    first, second = ValueError("one"), ValueError("two")
    assert "two" in with_cause("one", chained(first, chained(second, first)))


def test_it_is_short() -> None:
    assert len(first_line(ValueError("x" * 1000))) == LONGEST
    assert first_line(ValueError("x" * LONGEST)) == "x" * LONGEST


def test_a_full_disk_is_seen_through_any_text() -> None:
    assert is_full_disk(ValueError("first\n... No space left on device (os error 28)"))
    assert not is_full_disk(WithoutTextError())


def test_torch_has_no_type_for_memory_that_is_short() -> None:
    torch = "[enforce fail at alloc_cpu.cpp:124] data. DefaultCPUAllocator: can't allocate memory: you tried to"
    assert is_out_of_memory(RuntimeError(torch)) and is_out_of_memory(MemoryError())
    assert not is_out_of_memory(RuntimeError("size mismatch"))
