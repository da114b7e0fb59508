"""Successive frames, from the first one on: what an iteration takes of a video or a camera."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hwprof.workload.images import Image
from hwprof.workload.protocol import Stages
from hwprof.workload.sources.annotated_video import AnnotatedVideo

BatchSizes = Sequence[int]
"""How many frames each batch has: the last may have fewer."""


@dataclass(frozen=True)
class TakenFrames:
    """A ``protocol.Taken``."""

    place: str  # what was named with --source
    written: str  # the name, without a suffix, of the video of drawn frames
    batches: BatchSizes
    fps: float | None  # of the source, frames a second
    reading: Callable[[Stages, BatchSizes], Iterator[list[Image]]]
    there: int | None = None
    notes: Sequence[str] = ()
    more_pixels: float | None = field(default=None, init=False)  # they are all of one size

    @property
    def names(self) -> list[list[str]]:
        """``clip.mp4#0``, the first frame being number 0."""
        name, numbers = Path(self.place).name, iter(range(sum(self.batches)))
        return [[f"{name}#{next(numbers)}" for _ in range(size)] for size in self.batches]

    @property
    def sources(self) -> list[str]:
        """``videos/clip.mp4#0``."""
        return [f"{self.place}#{number}" for number in range(sum(self.batches))]

    def read(self, stages: Stages) -> Iterator[list[Image]]:
        """The frames from the first one on."""
        return self.reading(stages, self.batches)

    def pictures(self, folder: Path | None) -> AnnotatedVideo:
        """As a video of the same rate."""
        return AnnotatedVideo(folder, self.written, self.fps, sum(self.batches))


def in_batches(frames: int, batch: int) -> BatchSizes:
    """Of ``batch`` frames each; what is left is the last one."""
    whole, rest = divmod(frames, batch)
    return [batch] * whole + [rest] * bool(rest)
