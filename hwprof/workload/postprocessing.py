"""From a model's output to boxes in the image's own pixels, and onto the image."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch

from hwprof.workload.detector import Detector
from hwprof.workload.images import Image
from hwprof.workload.libraries import require_ultralytics


def suppress(detector: Detector, output: Any, conf: float, iou: float) -> list[torch.Tensor]:
    """Non-maximum suppression: for each image (n, 6) with x1, y1, x2, y2 in input pixels, confidence, class.

    Without a time limit: what comes out must not depend on how fast the machine is.
    """
    nms: Any = require_ultralytics("utils.nms").non_max_suppression
    prediction: torch.Tensor = output[0] if isinstance(output, (tuple, list)) else output
    unlimited = float("inf")
    if detector.objectness:
        return [nms(_scored(image, conf), conf, iou, max_time_img=unlimited)[0] for image in prediction]
    boxes: list[torch.Tensor] = nms(
        prediction, conf, iou, nc=len(detector.names), end2end=detector.end_to_end, max_time_img=unlimited
    )
    return boxes


def _scored(prediction: torch.Tensor, conf: float) -> torch.Tensor:
    """One image's (N, 5 + classes) as (1, 4 + classes, n): class scores are objectness times class probability.

    Only rows whose objectness passes are multiplied; no other could.
    """
    likely = prediction[prediction[:, 4] > conf]
    return torch.cat((likely[:, :4], likely[:, 5:] * likely[:, 4:5]), dim=1).T.unsqueeze(0)


def to_image_pixels(boxes: Sequence[torch.Tensor], input_shape: tuple[int, int], images: Sequence[Image]) -> None:
    """Moves the boxes from the letterboxed input (H, W) back onto their images, in place."""
    scale_boxes: Any = require_ultralytics("utils.ops").scale_boxes
    for found, image in zip(boxes, images, strict=True):
        found[:, :4] = scale_boxes(input_shape, found[:, :4], image.shape[:2])


def draw(image: Image, boxes: torch.Tensor, names: dict[int, str]) -> Image:
    """A copy of the image with its boxes, each with class and confidence."""
    plotting = require_ultralytics("utils.plotting")
    annotator = plotting.Annotator(image.copy())
    for x1, y1, x2, y2, confidence, number in boxes.tolist():
        label = f"{names[int(number)]} {confidence:.2f}"
        annotator.box_label((x1, y1, x2, y2), label, color=plotting.colors(int(number), True))
    drawn: Image = annotator.result()
    return drawn


def tally(boxes: torch.Tensor, names: dict[int, str]) -> str:
    """``4 person, 1 bus``: the classes, most frequent first."""
    counts = Counter(names[int(number)] for number in boxes[:, 5].tolist())
    return ", ".join(f"{count} {name}" for name, count in counts.most_common())
