"""Images in files, each read in every iteration: of many, those that stand for all."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path

from hwprof.run.manifest import VideoRecord
from hwprof.workload.images import Image, read_image, size_of
from hwprof.workload.preprocessing import Shape
from hwprof.workload.protocol import Stages
from hwprof.workload.sources.image_sample import FEW, in_proportion, more_pixels
from hwprof.workload.sources.jpeg_files import JpegFiles
from hwprof.workload.sources.protocol import More, ShapeOf


@dataclass(frozen=True)
class TakenImages:
    """A ``protocol.Taken``; ``written``: the names, without a suffix, of the pictures that are drawn."""

    batches: Sequence[Sequence[Path]]
    written: Sequence[str]
    there: int | None
    more_pixels: float | None
    notes: Sequence[str] = ()

    @property
    def names(self) -> list[list[str]]:
        """Without their folders."""
        return [[path.name for path in batch] for batch in self.batches]

    @property
    def sources(self) -> list[str]:
        """Their paths."""
        return [str(path) for batch in self.batches for path in batch]

    def read(self, stages: Stages) -> Iterator[list[Image]]:
        """The files, decoded in ``load``."""
        for batch in self.batches:
            with stages("load"):
                images = [read_image(path) for path in batch]
            yield images

    def pictures(self, folder: Path | None) -> JpegFiles:
        """As JPEG, under the image's own name."""
        return JpegFiles(folder, self.written)


class ImageFiles:
    """A ``protocol.Source``."""

    def __init__(
        self, paths: Sequence[Path], batch: int, *, all_images: bool, class_names: Sequence[str] | None = None
    ) -> None:
        """``all_images``: an iteration takes each, however many there are."""
        self.class_names = class_names
        there, paths = len(paths), [*islice(cycle(paths), max(batch, len(paths)))]
        self._notes = [f"batches of {batch}: the source's {there} images are repeated"] if there < batch else []
        self._paths = paths
        self._batch = batch
        self._all = all_images
        self._batches = [paths[start : start + batch] for start in range(0, len(paths), batch)]
        self._shapes: list[Shape] | None = None
        self._frequency = Counter(path.stem for path in paths)

    def few(self, shape_of: ShapeOf) -> TakenImages:
        """The first look; of a large source the header of each image is read for it."""
        if self._all or len(self._batches) <= FEW:
            return self._taken(range(len(self._batches)))
        self._shapes = [shape_of([size_of(path) for path in batch]) for batch in self._batches]
        return self.take(range(FEW, FEW + 1), math.prod)

    def more(self) -> More | None:
        """How many batches, and of how many shapes."""
        return None if self._shapes is None else More(len(self._shapes), len(set(self._shapes)))

    def take(self, numbers: range, pixels: Callable[[Shape], int]) -> TakenImages:
        """Each shape in its proportion."""
        assert self._shapes is not None
        return self._taken(in_proportion(self._shapes, numbers, pixels))

    def described(self) -> VideoRecord | None:
        """It is no video."""
        return None

    def _taken(self, places: Sequence[int]) -> TakenImages:
        batches = [self._batches[place] for place in places]
        numbers = [place * self._batch + index for place, batch in zip(places, batches, strict=True) for index in
                   range(len(batch))]  # fmt: skip
        fewer = len(numbers) < len(self._paths)
        more = more_pixels(self._shapes, places, math.prod) if fewer and self._shapes is not None else None
        written = [self._written(number) for number in numbers]
        return TakenImages(batches, written, len(self._paths) if fewer else None, more, self._notes)

    def _written(self, number: int) -> str:
        """A name that occurs twice in the source gets its position before it."""
        stem = self._paths[number].stem
        return stem if self._frequency[stem] == 1 else f"{number:04d}-{stem}"
