"""Where the images of an iteration come from, and where what is drawn on them goes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from hwprof.run.manifest import VideoRecord
from hwprof.workload.images import Image
from hwprof.workload.preprocessing import Shape
from hwprof.workload.protocol import Stages

ShapeOf = Callable[[Sequence[tuple[int, int]]], Shape]
"""Which shape a batch of images of these heights and widths has."""


class Pictures(Protocol):
    """What becomes of the drawn images of one iteration."""

    def write(self, drawn: Image) -> None:
        """Encodes the next one; kept is it only where a folder was named. Raises ``HwprofError`` where it cannot be."""
        ...

    def close(self) -> None:
        """However the iteration ended. Raises ``HwprofError`` where what was to be kept is not there."""
        ...


class Taken(Protocol):
    """The batches that an iteration takes, the same ones in each."""

    @property
    def names(self) -> Sequence[Sequence[str]]:
        """Of each batch's images, as a result's line calls them."""
        ...

    @property
    def sources(self) -> Sequence[str]:
        """The images as the run's record has them."""
        ...

    @property
    def there(self) -> int | None:
        """How many images there are of which these were taken; None: no more, or nobody knows."""
        ...

    @property
    def more_pixels(self) -> float | None:
        """By which share these have more pixels on average than all there; None: not known."""
        ...

    @property
    def notes(self) -> Sequence[str]:
        """What is to be said of them."""
        ...

    def read(self, stages: Stages) -> Iterator[list[Image]]:
        """Batch by batch, under the stages that reading has. Raises ``UsageError`` and ``HwprofError``."""
        ...

    def pictures(self, folder: Path | None) -> Pictures:
        """For the drawn images of one iteration, in their order, which are kept in the folder."""
        ...


class More(NamedTuple):
    """What there is to choose from."""

    batches: int  # at most
    shapes: int  # of inputs


class Source(Protocol):
    """Something to read images from."""

    @property
    def class_names(self) -> Sequence[str] | None:
        """Those of a dataset."""
        ...

    def few(self, shape_of: ShapeOf) -> Taken:
        """The first look: all where there are few, or all are wanted. Raises ``UsageError`` where there is nothing to
        read, and ``HwprofError``."""
        ...

    def more(self) -> More | None:
        """After ``few``; None: these were all."""
        ...

    def take(self, numbers: range, pixels: Callable[[Shape], int]) -> Taken:
        """So many batches, the fewest of ``numbers`` that are like all by ``pixels``. Raises as ``few``."""
        ...

    def described(self) -> VideoRecord | None:
        """What a video, or camera, says of itself; after ``few``."""
        ...
