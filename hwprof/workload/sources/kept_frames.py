"""A camera's frames, handed from the first pass of a run to the later ones, so that all have the same input.

They are in the file of ``shared_weights``, far behind the weights: a descriptor that the passes inherit, of a file that
has no name. What is there is pixels alone.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import numpy as np

from hwprof.errors import HwprofError
from hwprof.workload.images import Image

BEGIN: Final = 1 << 36
"""Where they are: no weights reach as far, and what is between takes no room."""

_HEADER_BYTES: Final = 64
_VERSION: Final = "hwprof-frames-1"


class KeptFrames:
    """The file as one pass sees it."""

    def __init__(self, descriptor: int) -> None:
        """``descriptor``: of a file that the passes of one run share; it is not closed here."""
        self._descriptor = descriptor
        header = os.pread(descriptor, _HEADER_BYTES, BEGIN).rstrip(b"\0").decode("ascii", "replace").split()
        valid = len(header) == 4 and header[0] == _VERSION
        self._sizes = tuple(int(size) for size in header[1:]) if valid else None

    @property
    def available(self) -> bool:
        """Whether an earlier pass left frames."""
        return self._sizes is not None

    def load(self) -> list[Image]:
        """The frames, (H, W, 3) each. Raises ``HwprofError`` where they are cut short."""
        assert self._sizes is not None
        number, height, width = self._sizes
        frames = [np.empty((height, width, 3), np.uint8) for _ in range(number)]
        position = BEGIN + _HEADER_BYTES
        for frame in frames:
            left = frame.data.cast("B")
            while left:
                count = os.preadv(self._descriptor, [left], position)
                if not count:
                    raise HwprofError("the frames that an earlier pass of this run left are cut short")
                left, position = left[count:], position + count
        return frames

    def save(self, frames: Sequence[Image]) -> None:
        """Keeps frames of one size for later passes; a full disk keeps none."""
        position = BEGIN + _HEADER_BYTES
        height, width, _ = frames[0].shape
        header = f"{_VERSION} {len(frames)} {height} {width}".encode("ascii").ljust(_HEADER_BYTES, b"\0")
        with suppress(OSError):
            for frame in frames:
                left = np.ascontiguousarray(frame).data.cast("B")
                while left:
                    count = os.pwrite(self._descriptor, left, position)
                    left, position = left[count:], position + count
            os.pwrite(self._descriptor, header, BEGIN)
