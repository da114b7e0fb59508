"""Classification: the most likely classes of the whole image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import torch

from hwprof.workload import postprocessing
from hwprof.workload.detector import Detector
from hwprof.workload.images import Image
from hwprof.workload.libraries import require_cv2
from hwprof.workload.preprocessing import CentreCrop, Preprocessing
from hwprof.workload.protocol import Stages

MOST_LIKELY: Final = 5
"""So many classes are kept of an image, where there are as many."""

MARGIN: Final = 0.03
"""Of the image's height, around what is written."""

BACKGROUND: Final = (64, 64, 64)
"""Of what is written: blue, green, red."""


class Classification:
    """Finds for each image (n, 2): probability and class, the most likely first."""

    def __init__(self, detector: Detector, imgsz: int, conf: float, iou: float) -> None:
        """``conf`` and ``iou`` choose between boxes, of which there are none."""
        self.preprocessing: Preprocessing = CentreCrop(imgsz)
        self._names = detector.names

    def postprocess(
        self, output: Any, input_shape: tuple[int, int], images: Sequence[Image], stages: Stages
    ) -> list[Any]:
        """The most likely of probabilities (B, classes)."""
        probabilities: torch.Tensor = output[0]
        with stages("topk"):
            likely, numbers = probabilities.topk(min(MOST_LIKELY, probabilities.shape[1]))
        return list(torch.stack((likely, numbers.to(likely.dtype)), dim=2))

    def draw(self, image: Image, found: Any) -> Image:
        """With the classes' names and probabilities in its corner, a line each."""
        annotator = postprocessing.annotator_of(image)
        margin = max(round(image.shape[0] * MARGIN), 1)
        texts = [f"{self._named(number)} {likely:.2g}" for likely, number in found.tolist()]
        sizes = [require_cv2().getTextSize(text, 0, annotator.sf, annotator.tf) for text in texts]
        line = max(height + 2 * below for (_, height), below in sizes)  # also what hangs below the line before
        for number, text in enumerate(texts, start=1):
            annotator.text((margin, margin + number * line), text, box_color=BACKGROUND)
        drawn: Image = annotator.result()
        return drawn

    def kept(self, found: Any) -> torch.Tensor:
        """All of it."""
        classes: torch.Tensor = found
        return classes

    def summary(self, kept: torch.Tensor, *, named: bool) -> str:
        """``top-1 Golden Retriever (0.83)``."""
        likely, number = kept[0].tolist()
        return f"top-1 {self._named(number) if named else f'class {number:.0f}'} ({likely:.2g})"

    def boxes(self, kept: torch.Tensor) -> torch.Tensor | None:
        """It finds none."""
        return None

    def _named(self, number: float) -> str:
        name = self._names[int(number)]
        return f"class {name}" if name.isdigit() else name
