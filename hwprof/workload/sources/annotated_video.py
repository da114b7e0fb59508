"""Drawn frames as a video: MPEG-4 Part 2 in MP4, which every build of OpenCV's FFmpeg encodes.

It is encoded in every iteration, so that iterations are alike: where none is to be kept, into the null device.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any, Final

from hwprof.errors import HwprofError, of_system
from hwprof.silence import silent_libraries
from hwprof.workload.images import Image
from hwprof.workload.libraries import require_cv2

SCALED: Final = "other frames: ffmpeg -i IN -vf scale=640:-2 -r 25 OUT.mp4"

SUFFIX: Final = ".mp4"
CODEC: Final = "mp4v"

USUAL_FPS: Final = 25.0
"""Of what is drawn on frames of an unknown rate."""


class AnnotatedVideo:
    """A ``protocol.Pictures``: the file is complete when the last frame is written, within the stage that writes it."""

    def __init__(self, folder: Path | None, name: str, fps: float | None, frames: int) -> None:
        """``name``: without a suffix; ``fps``: frames a second; ``frames``: how many will be written."""
        self._file = folder / f"{name}{SUFFIX}" if folder is not None else None
        self._fps = fps or USUAL_FPS
        self._frames = frames
        self._written = 0
        self._writer: Any = None

    def write(self, drawn: Image) -> None:
        """The next frame, (H, W, 3), all of one size; without the last row and column where their number is odd: the
        codec has colours for every other one. Raises ``HwprofError``."""
        with silent_libraries():
            if self._writer is None:
                height, width = drawn.shape[:2]
                self._writer = self._opened((width, height))
            self._writer.write(drawn)
            self._written += 1
            if self._written == self._frames:
                self._writer.release()

    def close(self) -> None:
        """Raises ``HwprofError`` where a video was to be kept, and has not all that was written: FFmpeg does not say
        so when a disk is full."""
        if self._writer is None:
            return
        with silent_libraries():
            self._writer.release()
            if self._file is None or self._written < self._frames:
                return
            cv2 = require_cv2()
            kept = cv2.VideoCapture(str(self._file.absolute()), cv2.CAP_FFMPEG)
            frames = int(kept.get(cv2.CAP_PROP_FRAME_COUNT)) if kept.isOpened() else 0
            kept.release()
        if frames != self._written:
            raise HwprofError(
                f"cannot write {self._file}: {frames} of {self._written} frames are there",
                "free some space, or choose another place with --output",
            )

    def _opened(self, size: tuple[int, int]) -> Any:
        if self._file is not None:
            return self._opened_at(self._file.absolute(), size)
        try:
            with tempfile.TemporaryDirectory() as folder:  # FFmpeg knows the format by the suffix
                link = Path(folder) / f"frames{SUFFIX}"
                link.symlink_to(os.devnull)
                return self._opened_at(link, size)
        except OSError as error:
            raise HwprofError(f"cannot encode a video: {of_system(error)}", "a TMPDIR to write in") from error

    def _opened_at(self, file: Path, size: tuple[int, int]) -> Any:
        cv2 = require_cv2()
        writer = cv2.VideoWriter(str(file), cv2.CAP_FFMPEG, cv2.VideoWriter.fourcc(*CODEC), self._fps, size)
        if writer.isOpened():
            return writer
        if not os.access(file.parent, os.W_OK):
            raise HwprofError(f"cannot write {file}: its folder is not there, or not to be written in")
        width, height = size
        raise HwprofError(
            f"OpenCV's FFmpeg cannot encode a video of {width}x{height} pixels at {self._fps:g} fps", SCALED
        )
