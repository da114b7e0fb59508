"""A camera: its frames are kept in memory before anything is measured.

A live camera gives no frame twice and makes its reader wait for the next one, so reading it has no place among what is
repeated and compared: everything behind it is timed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import numpy as np

from hwprof.errors import HwprofError, UsageError
from hwprof.run.manifest import VideoRecord
from hwprof.silence import silent_libraries
from hwprof.workload.images import Image
from hwprof.workload.libraries import require_cv2
from hwprof.workload.preprocessing import Shape
from hwprof.workload.protocol import Stages
from hwprof.workload.sources.frames import BatchSizes, TakenFrames, in_batches
from hwprof.workload.sources.image_sample import FEW
from hwprof.workload.sources.kept_frames import KeptFrames
from hwprof.workload.sources.protocol import More, ShapeOf

NAMED: Final = re.compile(r"(?:camera:|/dev/video)(\d{1,3})")

NODE: Final = re.compile(r"video(\d{1,3})")

DEVICES: Final = Path("/dev")
"""Where video4linux has them."""

MOST_BYTES: Final = 1 << 31
"""Of frames in memory."""


class Camera:
    """A ``protocol.Source``."""

    class_names: Sequence[str] | None = None

    def __init__(self, number: int, batch: int, *, all_frames: bool, kept: KeptFrames | None = None) -> None:
        """``number``: N of /dev/videoN; ``kept``: where frames are taken from, or left for the next pass. Raises
        ``UsageError`` where all frames are wanted."""
        if all_frames:
            raise UsageError("--all-images: a camera has no last frame", "take it out")
        self._number = number
        self._batch = batch
        self._kept = kept
        self._frames: list[Image] = kept.load() if kept is not None and kept.available else []
        self._capture: Any = None
        self._fps: float | None = None

    def few(self, shape_of: ShapeOf) -> TakenFrames:
        """The first frames."""
        return self._taken(FEW)

    def more(self) -> More:
        """As many as there is room for."""
        return More(MOST_BYTES // (self._batch * self._frames[0].nbytes), 1)

    def take(self, numbers: range, pixels: Callable[[Shape], int]) -> TakenFrames:
        """The fewest, for frames are alike; the camera is let go of."""
        taken = self._taken(numbers.start)
        if self._capture is not None:
            self._capture.release()
            if self._kept is not None:
                self._kept.save(self._frames)
        return taken

    def described(self) -> VideoRecord:
        """The size of its frames; how many there are is nothing that it knows."""
        height, width, _ = self._frames[0].shape
        return VideoRecord(width=width, height=height, fps=self._fps)

    def _taken(self, batches: int) -> TakenFrames:
        frames = batches * self._batch
        while len(self._frames) < frames:
            self._frames.append(self._grab(frames))
        return TakenFrames(
            place=f"camera:{self._number}",
            written=f"camera-{self._number}",
            batches=in_batches(frames, self._batch),
            fps=self._fps,
            reading=self._from_memory,
            notes=[
                f"camera:{self._number}: {frames:,} frames were kept in memory before the iterations, which all take"
                " them; reading the camera is in no figure"
            ],
        )

    def _from_memory(self, stages: Stages, batches: BatchSizes) -> Iterator[list[Image]]:
        frames = iter(self._frames)
        for size in batches:
            yield [next(frames) for _ in range(size)]

    def _grab(self, frames: int) -> Image:
        """The next frame, of ``frames``. Raises ``HwprofError`` where the camera gives none, or another size."""
        cv2 = require_cv2()
        with silent_libraries():
            if self._capture is None:
                self._capture = cv2.VideoCapture(self._number, cv2.CAP_V4L2)
                fps = self._capture.get(cv2.CAP_PROP_FPS)
                self._fps = fps if 0 < fps < float("inf") else None
            there, frame = self._capture.read()
        if not there and not self._frames:
            raise self._none()
        if not there:
            raise HwprofError(f"camera:{self._number} gave {len(self._frames)} frames and no more", "connect it anew")
        if self._frames and frame.shape != self._frames[0].shape:
            raise HwprofError(f"camera:{self._number} gives frames of several sizes", "close what else uses it")
        if frames * frame.nbytes > MOST_BYTES:
            raise UsageError(f"{frames:,} frames of the camera are more than memory is taken for", "a smaller --batch")
        image: Image = np.ascontiguousarray(frame)
        return image

    def _none(self) -> UsageError:
        """Why there is nothing to see."""
        device = DEVICES / f"video{self._number}"
        if device.exists():
            return UsageError(
                f"camera:{self._number} ({device}) gives no frame", "close what else uses it, or name another one"
            )
        there: list[int] = []
        with suppress(OSError):
            there = sorted(int(found[1]) for path in DEVICES.iterdir() if (found := NODE.fullmatch(path.name)))
        others = " or ".join(f"camera:{number}" for number in there)
        return UsageError(f"there is no camera {device}", others or "connect one, or name images or a video")
