"""What is said where standard output takes nothing."""

from __future__ import annotations

import errno
import io
import os
import resource
import sys

import pytest

from hwprof.cli.streams import _Output, settle
from hwprof.errors import HwprofError


@pytest.mark.parametrize(("device", "number"), [("/dev/full", errno.ENOSPC), ("/dev/null", errno.EBADF)])
def test_an_output_that_takes_nothing_is_told_with_a_remedy(device: str, number: int) -> None:
    descriptor = os.open(device, os.O_RDWR if number == errno.ENOSPC else os.O_RDONLY)
    try:
        with pytest.raises(HwprofError) as failure:
            _Output(descriptor, "wb", closefd=False).write(b"x")
    finally:
        os.close(descriptor)
    assert os.strerror(number) in failure.value.message
    assert failure.value.remedy and ("space" in failure.value.remedy) == (number == errno.ENOSPC)


def test_an_output_is_given_up_without_another_descriptor(monkeypatch: pytest.MonkeyPatch) -> None:
    descriptor = os.open("/dev/full", os.O_WRONLY)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    output = io.TextIOWrapper(io.BufferedWriter(_Output(descriptor, "wb", closefd=False)))
    monkeypatch.setattr(sys, "stdout", output)
    output.write("x")
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        settle()
        output.close()  # as at the process's end: what is left goes nowhere
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        os.close(descriptor)
