"""What is said where standard output takes nothing."""

from __future__ import annotations

import errno
import os

import pytest

from hwprof.cli.streams import _Output
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
