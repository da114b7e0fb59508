"""From a model's output to boxes in the image's own pixels, and onto the image: what all tasks with boxes share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from hwprof.workload.detector import Detector
from hwprof.workload.images import Image
from hwprof.workload.libraries import require_ultralytics


def suppress(detector: Detector, output: Any, conf: float, iou: float, *, rotated: bool = False) -> list[torch.Tensor]:
    """Non-maximum suppression: for each image (n, 6 + further) with x1, y1, x2, y2 in input pixels, confidence, class,
    and what the head gives besides. ``rotated``: the boxes are centre, width and height, the last value is the angle.

    Without a time limit: what comes out must not depend on how fast the machine is.
    """
    nms: Any = require_ultralytics("utils.nms").non_max_suppression
    prediction: torch.Tensor = output[0] if isinstance(output, (tuple, list)) else output
    options = {"max_time_img": float("inf"), "rotated": rotated}
    if detector.objectness:
        return [nms(_scored(image, conf), conf, iou, **options)[0] for image in prediction]
    boxes: list[torch.Tensor] = nms(
        prediction, conf, iou, nc=len(detector.names), end2end=detector.end_to_end, **options
    )
    return boxes


def _scored(prediction: torch.Tensor, conf: float) -> torch.Tensor:
    """One image's (N, 5 + classes) as (1, 4 + classes, n): class scores are objectness times class probability.

    Only rows whose objectness passes are multiplied; no other could.
    """
    likely = prediction[prediction[:, 4] > conf]
    return torch.cat((likely[:, :4], likely[:, 5:] * likely[:, 4:5]), dim=1).T.unsqueeze(0)


def to_image_pixels(
    boxes: Sequence[torch.Tensor], input_shape: tuple[int, int], images: Sequence[Image], *, rotated: bool = False
) -> None:
    """Moves the boxes from the letterboxed input (H, W) back onto their images, in place; ``rotated``: of centre,
    width and height, which are not cut to the image."""
    scale_boxes: Any = require_ultralytics("utils.ops").scale_boxes
    for found, image in zip(boxes, images, strict=True):
        found[:, :4] = scale_boxes(input_shape, found[:, :4], image.shape[:2], xywh=rotated)


def annotator_of(image: Image) -> Any:
    """What draws on a copy of the image, which its ``result()`` is."""
    return require_ultralytics("utils.plotting").Annotator(image.copy())


def label(annotator: Any, corners: Sequence[Any], rows: torch.Tensor, names: Mapping[int, str]) -> None:
    """Draws boxes, each with class and confidence: two corners, or all four; ``rows`` has these in columns 5 and 4."""
    for box, (confidence, number) in zip(corners, rows[:, 4:6].tolist(), strict=True):
        annotator.box_label(box, f"{names[int(number)]} {confidence:.2f}", color=colour(number))


def colour(number: float) -> tuple[int, int, int]:
    """Of a class: blue, green, red."""
    chosen: tuple[int, int, int] = require_ultralytics("utils.plotting").colors(int(number), True)
    return chosen


def counted(number: int, one: str, several: str) -> str:
    """``1 box``, ``2 boxes``."""
    return f"{number} {one if number == 1 else several}"


def tally(boxes: torch.Tensor, names: Mapping[int, str]) -> str:
    """``4 person, 1 bus``: the classes, most frequent first."""
    counts = Counter(names[int(number)] for number in boxes[:, 5].tolist())
    return ", ".join(f"{count} {name}" for name, count in counts.most_common())
