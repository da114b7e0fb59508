"""Instance segmentation: boxes, each with a mask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from hwprof.workload import postprocessing
from hwprof.workload.images import Image
from hwprof.workload.libraries import require_ultralytics
from hwprof.workload.protocol import Stages
from hwprof.workload.tasks.detection import Detection


class Masked(NamedTuple):
    """Of one image."""

    boxes: torch.Tensor  # (n, 6), as detection has them
    masks: torch.Tensor  # (n, H, W) of the model's input: uint8, 0 or 1


class Segmentation(Detection):
    """Finds for each image boxes and masks. A box whose mask is empty is left out, as ultralytics' predictor does."""

    def postprocess(
        self, output: Any, input_shape: tuple[int, int], images: Sequence[Image], stages: Stages
    ) -> list[Any]:
        """Suppression, masks of prototypes (B, 32, H/4, W/4) and each box's coefficients, the way back."""
        (predictions, prototypes), *_ = output
        with stages("nms"):
            rows = postprocessing.suppress(self._detector, predictions, self._conf, self._iou)
        with stages("masks"):
            found = [_masked(one, of, input_shape) for one, of in zip(rows, prototypes, strict=True)]
        postprocessing.to_image_pixels([one.boxes for one in found], input_shape, images)
        return found

    def draw(self, image: Image, found: Any) -> Image:
        """With masks in the colours of their classes below the boxes."""
        annotator = postprocessing.annotator_of(image)
        annotator.masks(found.masks, [postprocessing.colour(number) for number in found.boxes[:, 5].tolist()])
        postprocessing.label(annotator, found.boxes[:, :4].tolist(), found.boxes, self._detector.names)
        drawn: Image = annotator.result()
        return drawn

    def kept(self, found: Any) -> torch.Tensor:
        """The boxes: there are as many masks."""
        boxes: torch.Tensor = found.boxes
        return boxes

    def _counted(self, number: int) -> str:
        return f"{super()._counted(number)}, {postprocessing.counted(number, 'mask', 'masks')}"


def _masked(rows: torch.Tensor, prototypes: torch.Tensor, input_shape: tuple[int, int]) -> Masked:
    """Of rows (n, 6 + 32) with the coefficients behind the class, and one image's prototypes (32, H/4, W/4)."""
    process_mask: Any = require_ultralytics("utils.ops").process_mask
    masks = process_mask(prototypes, rows[:, 6:], rows[:, :4], input_shape, upsample=True)
    there = masks.amax((-2, -1)) > 0
    return Masked(rows[there, :6], masks if there.all() else masks[there])
