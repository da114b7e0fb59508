"""Detection: boxes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from hwprof.workload import postprocessing
from hwprof.workload.detector import Detector
from hwprof.workload.images import Image
from hwprof.workload.preprocessing import LetterBox, Preprocessing
from hwprof.workload.protocol import Stages


class Detection:
    """Finds for each image boxes (n, 6): x1, y1, x2, y2, confidence, class."""

    def __init__(self, detector: Detector, imgsz: int, conf: float, iou: float) -> None:
        self.preprocessing: Preprocessing = LetterBox(imgsz, detector.stride)
        self._detector = detector
        self._conf = conf
        self._iou = iou

    def postprocess(
        self, output: Any, input_shape: tuple[int, int], images: Sequence[Image], stages: Stages
    ) -> list[Any]:
        """Suppression, and the way back to the image's pixels."""
        with stages("nms"):
            boxes = postprocessing.suppress(self._detector, output, self._conf, self._iou)
        postprocessing.to_image_pixels(boxes, input_shape, images)
        return boxes

    def draw(self, image: Image, found: Any) -> Image:
        """With boxes, classes and confidences."""
        annotator = postprocessing.annotator_of(image)
        postprocessing.label(annotator, found[:, :4].tolist(), found, self._detector.names)
        drawn: Image = annotator.result()
        return drawn

    def kept(self, found: Any) -> torch.Tensor:
        """The boxes."""
        boxes: torch.Tensor = found
        return boxes

    def summary(self, kept: torch.Tensor, *, named: bool) -> str:
        """``5 boxes (4 person, 1 bus)``."""
        count = self._counted(len(kept))
        return f"{count} ({postprocessing.tally(kept, self._detector.names)})" if named and len(kept) else count

    def boxes(self, kept: torch.Tensor) -> torch.Tensor | None:
        """As they are."""
        return kept[:, :6]

    def _counted(self, number: int) -> str:
        return postprocessing.counted(number, "box", "boxes")
