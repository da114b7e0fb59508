"""One video file, decoded frame by frame through OpenCV's FFmpeg, which is told what it may open."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Final

from hwprof.errors import HwprofError, UsageError
from hwprof.printable import printable
from hwprof.run.manifest import VideoRecord
from hwprof.run.regular_files import open_regular
from hwprof.silence import silent_libraries
from hwprof.workload.images import Image
from hwprof.workload.libraries import MOST_PIXELS, require_cv2

ANOTHER: Final = "another video, or repair it: ffmpeg -i IN OUT.mp4"

MOST_FPS: Final = 1_000.0
MOST_FRAMES: Final = (1 << 31) - 1
"""A header that claims more knows nothing."""


class VideoFile:
    """An open video, at its first frame. Frames are decoded when they are asked for, by the calling thread: decoders of
    FFmpeg's own would work ahead during the other stages."""

    def __init__(self, path: Path) -> None:
        """Raises ``UsageError`` where it is no video, and ``HwprofError`` where it cannot be read."""
        self._path = path
        self._size: tuple[int, ...] | None = None
        self._read = 0
        _require_regular(path)
        cv2 = require_cv2()
        with silent_libraries():  # FFmpeg
            self._capture: Any = cv2.VideoCapture(
                str(path.absolute()), cv2.CAP_FFMPEG, [cv2.CAP_PROP_N_THREADS, 1]
            )  # of an absolute path nothing is a protocol
        if not self._capture.isOpened():
            if not cv2.videoio_registry.hasBackend(cv2.CAP_FFMPEG):
                raise HwprofError("this OpenCV has no FFmpeg: it reads no videos", "pip install opencv-python-headless")
            raise UsageError(f"{path} is not a video that OpenCV can decode", ANOTHER)
        width, height = (self._told(name) or 0 for name in (cv2.CAP_PROP_FRAME_WIDTH, cv2.CAP_PROP_FRAME_HEIGHT))
        if width * height > MOST_PIXELS:
            self.close()
            raise UsageError(f"{path} has more than {MOST_PIXELS} pixels a frame", ANOTHER)

    def read(self) -> Image | None:
        """The next frame, (H, W, 3), blue first; None after the last. Raises ``UsageError`` where it has another size
        than the first one."""
        with silent_libraries():
            there, frame = self._capture.read()
        if not there:
            return None
        if self._size is None:
            self._size = frame.shape
        elif frame.shape != self._size:
            sizes = (f"{width}x{height}" for height, width, _ in (frame.shape, self._size))
            raise UsageError(
                f"frame {self._read} of {self._path} has {next(sizes)} pixels, those before it have {next(sizes)}",
                "frames of one size: ffmpeg -i IN -vf scale=640:-2 OUT.mp4",
            )
        self._read += 1
        image: Image = frame
        return image

    def described(self) -> VideoRecord:
        """What its header says, and the size of the frames that were read."""
        cv2 = require_cv2()
        fps, frames = self._told(cv2.CAP_PROP_FPS), self._told(cv2.CAP_PROP_FRAME_COUNT)
        codec = int(self._told(cv2.CAP_PROP_FOURCC) or 0).to_bytes(4, "little", signed=False).rstrip(b"\0")
        height, width = self._size[:2] if self._size is not None else (0, 0)
        return VideoRecord(
            width=width,
            height=height,
            fps=fps if fps is not None and fps <= MOST_FPS else None,
            frames=int(frames) if frames is not None and 1 <= frames <= MOST_FRAMES else None,
            codec=printable(codec.decode("ascii", "replace")) or None,
        )

    def close(self) -> None:
        """Lets go of it."""
        self._capture.release()

    def _told(self, name: int) -> float | None:
        """A property that is a number above 0."""
        value = float(self._capture.get(name))
        return value if math.isfinite(value) and value > 0 else None


def _require_regular(path: Path) -> None:
    try:
        open_regular(path).close()
    except OSError as error:
        raise HwprofError(f"cannot read {path}: {error.strerror}") from error
