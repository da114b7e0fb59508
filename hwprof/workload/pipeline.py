"""The detection pipeline behind what is read: preprocess, inference, postprocess (with nms inside), save.

The stage ``save`` draws the boxes and encodes the picture in every iteration, so that iterations are alike; the file is
written only where the caller names a folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from hwprof.workload import postprocessing
from hwprof.workload.detector import Detector
from hwprof.workload.images import Image
from hwprof.workload.libraries import require_ultralytics
from hwprof.workload.protocol import Outputs, Stages
from hwprof.workload.sources.protocol import Pictures, Shape
from hwprof.workload.tensors import refused


class Pipeline:
    """One model with everything around it, batch by batch."""

    def __init__(self, detector: Detector, imgsz: int, conf: float, iou: float) -> None:
        self._detector = detector
        self._imgsz = imgsz
        self._conf = conf
        self._iou = iou
        self._letterbox_class: Any = require_ultralytics("data.augment").LetterBox

    def run(
        self, images: Sequence[Image], stages: Stages, pictures: Pictures, outputs: Outputs | None = None
    ) -> list[torch.Tensor]:
        """One batch through all stages: each image's boxes, (n, 6), in its own pixels. ``pictures`` gets the drawn
        ones; ``outputs`` is shown what the model gave, and the boxes."""
        with stages("preprocess"):
            batch = self.preprocess(images)
        with stages("inference"):
            output = self._infer(batch)
        with stages("postprocess"):
            with stages("nms"):
                boxes = postprocessing.suppress(self._detector, output, self._conf, self._iou)
            height, width = batch.shape[-2:]
            postprocessing.to_image_pixels(boxes, (height, width), images)
        with stages("save"):
            self._save(images, boxes, pictures)
        if outputs is not None:
            outputs((output, boxes))
        return boxes

    def preprocess(self, images: Sequence[Image]) -> torch.Tensor:
        """Images as the model's input (B, 3, H, W), red first, 0..1.

        The longer side becomes the image size and the shorter is padded with grey up to the model's stride; where the
        images of a batch differ in shape, to the full square.
        """
        alike = len({image.shape for image in images}) == 1
        letterbox = self._letterbox_class((self._imgsz, self._imgsz), auto=alike, stride=self._detector.stride)
        stacked = np.stack([letterbox(image=image) for image in images])
        planes = np.ascontiguousarray(stacked[..., ::-1].transpose(0, 3, 1, 2))
        return torch.from_numpy(planes).float().div_(255.0)

    def shape_of(self, sizes: Sequence[tuple[int, int]]) -> Shape:
        """The shape that ``preprocess`` gives images of these heights and widths."""
        height = width = self._imgsz
        if len(set(sizes)) == 1:
            height, width = (self._padded(side, max(sizes[0])) for side in sizes[0])
        return len(sizes), 3, height, width

    def _padded(self, side: int, longer: int) -> int:
        """As LetterBox does it: scaled, then padded by what is left of the square beyond whole strides."""
        scaled = max(round(side * (self._imgsz / longer)), 1)
        return scaled + (self._imgsz - scaled) % self._detector.stride

    def _infer(self, batch: torch.Tensor) -> Any:
        try:
            return self._detector.module(batch)
        except RuntimeError as error:  # a shape that the model cannot take, or no memory
            raise refused("the model", batch, error) from error

    def _save(self, images: Sequence[Image], boxes: Sequence[torch.Tensor], pictures: Pictures) -> None:
        for image, found in zip(images, boxes, strict=True):
            pictures.write(postprocessing.draw(image, found, self._detector.names))
