"""A video: each iteration opens it and decodes the same frames, from the first one on.

There no seeking is needed, which is not exact in every container.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import msgspec

from hwprof.errors import HwprofError, UsageError
from hwprof.printable import as_written, is_text
from hwprof.run.manifest import VideoRecord
from hwprof.workload.images import Image
from hwprof.workload.preprocessing import Shape
from hwprof.workload.protocol import Stages
from hwprof.workload.sources.frames import BatchSizes, TakenFrames, in_batches
from hwprof.workload.sources.image_sample import FEW
from hwprof.workload.sources.protocol import More, ShapeOf
from hwprof.workload.sources.video_file import ANOTHER, VideoFile


class Video:
    """A ``protocol.Source``."""

    class_names: Sequence[str] | None = None

    def __init__(self, path: Path, batch: int, *, all_frames: bool) -> None:
        """``all_frames``: an iteration takes each, however long that is. Raises ``UsageError`` for a name that is not
        UTF-8."""
        if not is_text(str(path)):
            raise UsageError(f"the name of the video {as_written(str(path))} is not UTF-8", "rename it")
        self._path = path
        self._batch = batch
        self._all = all_frames
        self._ended = False
        self._record: VideoRecord | None = None

    def few(self, shape_of: ShapeOf) -> TakenFrames:
        """The first frames."""
        return self._taken(None if self._all else FEW)

    def more(self) -> More | None:
        """How many there are only the last one tells: headers may be wrong."""
        return None if self._ended else More(sys.maxsize, 1)

    def take(self, numbers: range, pixels: Callable[[Shape], int]) -> TakenFrames:
        """The fewest, for frames are alike; fewer where the video ends."""
        return self._taken(numbers.start)

    def described(self) -> VideoRecord | None:
        """With the number of its frames as its header has it, or as it was found out."""
        return self._record

    def _taken(self, batches: int | None) -> TakenFrames:
        frames, claimed = self._count(None if batches is None else batches * self._batch)
        notes = []
        if self._ended and claimed is not None and frames < claimed:
            notes = [f"{self._path.name} ends after {frames:,} frames and claims {claimed:,}: it may be cut or damaged"]
        assert self._record is not None
        return TakenFrames(
            place=str(self._path),
            written=self._path.stem,
            batches=in_batches(frames, self._batch),
            fps=self._record.fps,
            reading=self._read,
            there=None if self._ended or claimed is None or claimed <= frames else claimed,
            notes=notes,
        )

    def _count(self, most: int | None) -> tuple[int, int | None]:
        """How many of its first frames can be decoded, so that broken ones are known now; and how many it claims."""
        found = 0
        with closing(VideoFile(self._path)) as video:
            while most is None or found < most:
                if video.read() is None:
                    break
                found += 1
            self._ended = (most is None or found < most) or video.read() is None
            told = video.described()
        if not found:
            raise UsageError(f"no frame of {self._path} can be decoded", ANOTHER)
        self._record = msgspec.structs.replace(told, frames=found) if self._ended else told
        return found, told.frames

    def _read(self, stages: Stages, batches: BatchSizes) -> Iterator[list[Image]]:
        with stages("open"):
            video = VideoFile(self._path)
        with closing(video):
            for size in batches:
                with stages("read"):
                    images = [self._next(video) for _ in range(size)]
                yield images

    def _next(self, video: VideoFile) -> Image:
        image = video.read()
        if image is None:
            raise HwprofError(f"{self._path} is shorter than it was", "leave it as it is until the end")
        return image
