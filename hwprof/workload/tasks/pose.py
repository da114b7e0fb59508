"""Pose estimation: boxes, each with the keypoints of a body."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from hwprof.workload import postprocessing
from hwprof.workload.images import Image
from hwprof.workload.libraries import require_ultralytics
from hwprof.workload.protocol import Stages
from hwprof.workload.tasks.detection import Detection


class Posed(NamedTuple):
    """Of one image."""

    boxes: torch.Tensor  # (n, 6), as detection has them
    keypoints: torch.Tensor  # (n, K, 2 or 3): x, y, and how likely it is seen


class Pose(Detection):
    """Finds for each image boxes and keypoints."""

    def postprocess(
        self, output: Any, input_shape: tuple[int, int], images: Sequence[Image], stages: Stages
    ) -> list[Any]:
        """Suppression, and the way of keypoints and boxes back to the image's pixels."""
        scale_coords: Any = require_ultralytics("utils.ops").scale_coords
        shape = tuple(self._detector.head.kpt_shape)
        with stages("nms"):
            rows = postprocessing.suppress(self._detector, output, self._conf, self._iou)
        with stages("keypoints"):
            keypoints = [
                scale_coords(input_shape, one[:, 6:].reshape(len(one), *shape), image.shape[:2])
                for one, image in zip(rows, images, strict=True)
            ]
        boxes = [one[:, :6] for one in rows]
        postprocessing.to_image_pixels(boxes, input_shape, images)
        return [Posed(*one) for one in zip(boxes, keypoints, strict=True)]

    def draw(self, image: Image, found: Any) -> Image:
        """With boxes, and the skeletons of bodies of 17 keypoints; of others the points."""
        annotator = postprocessing.annotator_of(image)
        postprocessing.label(annotator, found.boxes[:, :4].tolist(), found.boxes, self._detector.names)
        for keypoints in found.keypoints.numpy():
            annotator.kpts(keypoints)
        drawn: Image = annotator.result()
        return drawn

    def kept(self, found: Any) -> torch.Tensor:
        """The boxes: there are as many poses."""
        boxes: torch.Tensor = found.boxes
        return boxes

    def _counted(self, number: int) -> str:
        return postprocessing.counted(number, "pose", "poses")
