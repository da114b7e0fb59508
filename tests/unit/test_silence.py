"""What a library writes to standard error of a stranger's file, and that ours is heard again after it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hwprof.silence import STANDARD_ERROR, silent_libraries


def write(text: str) -> None:
    os.write(STANDARD_ERROR, f"{text}\n".encode())


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_nothing_is_heard_within_and_all_after(capfd: pytest.CaptureFixture[str]) -> None:
    write("before")
    with silent_libraries():
        write("a thread panicked")
    write("after")
    assert capfd.readouterr().err == "before\nafter\n"


def test_an_exception_passes_and_ours_is_heard_again(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt), silent_libraries():
        write("half a warning")
        raise KeyboardInterrupt
    write("interrupted")
    assert capfd.readouterr().err == "interrupted\n"


def test_no_descriptor_is_left(capfd: pytest.CaptureFixture[str]) -> None:
    before = descriptors()
    for _ in range(3):
        with silent_libraries():
            pass
    assert descriptors() == before


def test_a_closed_standard_error_stays_closed(capfd: pytest.CaptureFixture[str]) -> None:
    kept = os.dup(STANDARD_ERROR)
    os.close(STANDARD_ERROR)
    try:
        with silent_libraries():
            pass
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(STANDARD_ERROR)
    finally:
        os.dup2(kept, STANDARD_ERROR)
        os.close(kept)
