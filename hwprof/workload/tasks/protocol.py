"""What a task is to the pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import torch

from hwprof.workload.images import Image
from hwprof.workload.preprocessing import Preprocessing
from hwprof.workload.protocol import Stages


class Task(Protocol):
    """What a model's images become before it, and its output behind it."""

    preprocessing: Preprocessing

    def postprocess(
        self, output: Any, input_shape: tuple[int, int], images: Sequence[Image], stages: Stages
    ) -> list[Any]:
        """What was found in each image, in its own pixels, with a stage for each part that may take long. ``output``:
        the model's, of an input (B, 3, H, W) whose ``input_shape`` is (H, W)."""
        ...

    def draw(self, image: Image, found: Any) -> Image:
        """A copy of the image with what was found in it."""
        ...

    def kept(self, found: Any) -> torch.Tensor:
        """What ``summary`` needs of it: no memory holds the masks of all images of a large source."""
        ...

    def summary(self, kept: torch.Tensor, *, named: bool) -> str:
        """What was found, in a few words; ``named``: with the classes, where they mean anything."""
        ...

    def boxes(self, kept: torch.Tensor) -> torch.Tensor | None:
        """The boxes around what was found, (n, 6): x1, y1, x2, y2, confidence, class; None of a task without any."""
        ...
