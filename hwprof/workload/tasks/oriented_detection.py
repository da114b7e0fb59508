"""Detection of oriented boxes (OBB)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from hwprof.workload import postprocessing
from hwprof.workload.images import Image
from hwprof.workload.libraries import require_ultralytics
from hwprof.workload.protocol import Stages
from hwprof.workload.tasks.detection import Detection


class OrientedDetection(Detection):
    """Finds for each image boxes (n, 7): centre x, y, width, height, confidence, class, angle in radians."""

    def postprocess(
        self, output: Any, input_shape: tuple[int, int], images: Sequence[Image], stages: Stages
    ) -> list[Any]:
        """Suppression of rotated boxes, and the way back to the image's pixels."""
        with stages("nms"):
            boxes = postprocessing.suppress(self._detector, output, self._conf, self._iou, rotated=True)
        postprocessing.to_image_pixels(boxes, input_shape, images, rotated=True)
        return boxes

    def draw(self, image: Image, found: Any) -> Image:
        """With rotated boxes, classes and confidences."""
        annotator = postprocessing.annotator_of(image)
        postprocessing.label(annotator, _corners(found).tolist(), found, self._detector.names)
        drawn: Image = annotator.result()
        return drawn

    def boxes(self, kept: torch.Tensor) -> torch.Tensor | None:
        """The upright ones around them."""
        corners = _corners(kept)
        return torch.cat((corners.amin(dim=1), corners.amax(dim=1), kept[:, 4:6]), dim=1)

    def _counted(self, number: int) -> str:
        return postprocessing.counted(number, "rotated box", "rotated boxes")


def _corners(found: torch.Tensor) -> torch.Tensor:
    """Of each box, (n, 4, 2)."""
    corners_of: Any = require_ultralytics("utils.ops").xywhr2xyxyxyxy
    corners: torch.Tensor = corners_of(torch.cat((found[:, :4], found[:, 6:]), dim=1))
    return corners
