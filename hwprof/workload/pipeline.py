"""The pipeline behind what is read: preprocess, inference, postprocess (with the task's own stages inside), save.

The stage ``save`` draws what was found and encodes the picture in every iteration, so that iterations are alike; the
file is written only where the caller names a folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from hwprof.workload.detector import Detector
from hwprof.workload.images import Image
from hwprof.workload.protocol import Outputs, Stages
from hwprof.workload.sources.protocol import Pictures
from hwprof.workload.tasks.choice import make_task
from hwprof.workload.tensors import refused


class Pipeline:
    """One model with everything around it, batch by batch."""

    def __init__(self, detector: Detector, imgsz: int, conf: float, iou: float) -> None:
        self._detector = detector
        self._task = make_task(detector, imgsz, conf, iou)
        self.preprocess = self._task.preprocessing.__call__
        self.shape_of = self._task.preprocessing.shape_of
        self.summary = self._task.summary
        self.boxes = self._task.boxes

    def run(
        self, images: Sequence[Image], stages: Stages, pictures: Pictures, outputs: Outputs | None = None
    ) -> list[torch.Tensor]:
        """One batch through all stages: of each image what ``summary`` needs. ``pictures`` gets the drawn ones;
        ``outputs`` is shown what the model gave, and what was found."""
        with stages("preprocess"):
            batch = self.preprocess(images)
        with stages("inference"):
            output = self._infer(batch)
        with stages("postprocess"):
            height, width = batch.shape[-2:]
            found = self._task.postprocess(output, (height, width), images, stages)
        with stages("save"):
            self._save(images, found, pictures)
        if outputs is not None:
            outputs((output, found))
        return [self._task.kept(one) for one in found]

    def _infer(self, batch: torch.Tensor) -> Any:
        try:
            return self._detector.module(batch)
        except RuntimeError as error:  # a shape that the model cannot take, or no memory
            raise refused("the model", batch, error) from error

    def _save(self, images: Sequence[Image], found: Sequence[Any], pictures: Pictures) -> None:
        for image, one in zip(images, found, strict=True):
            pictures.write(self._task.draw(image, one))
