from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from hwprof.workload import postprocessing
from hwprof.workload.detector import Detector, build_detector
from hwprof.workload.model_registry import find_model

NAMES = {0: "cat", 1: "dog"}


def _detector(*, objectness: bool, end_to_end: bool = False) -> Detector:
    return Detector(nn.Identity(), 32, NAMES, objectness, end_to_end)


# x, y, w, h, objectness, cat, dog: two on one cat, a dog in the same place, a likely nothing, an unlikely something
ROWS = [
    [50, 50, 20, 20, 0.9, 0.9, 0.1],
    [52, 50, 20, 20, 0.8, 0.9, 0.1],
    [50, 50, 20, 20, 0.7, 0.2, 0.9],
    [10, 10, 10, 10, 0.9, 0.1, 0.1],
    [80, 80, 10, 10, 0.2, 0.9, 0.9],
]


def test_objectness_times_class_decides() -> None:
    output: Any = (torch.tensor([ROWS, [[0.0] * 7] * 5]), [])
    first, second = postprocessing.suppress(_detector(objectness=True), output, 0.25, 0.45)
    assert second.shape == (0, 6)
    torch.testing.assert_close(
        first, torch.tensor([[40, 40, 60, 60, 0.81, 0], [40, 40, 60, 60, 0.63, 1]]), rtol=1e-5, atol=1e-5
    )


def test_agrees_with_multiplying_everything() -> None:
    generator = torch.Generator().manual_seed(0)
    rows = torch.rand(1, 400, 7, generator=generator)
    rows[..., :4] *= 200
    (found,) = postprocessing.suppress(_detector(objectness=True), (rows, []), 0.3, 0.5)
    scored = torch.cat((rows[..., :4], rows[..., 5:] * rows[..., 4:5]), dim=2).transpose(1, 2)
    (expected,) = postprocessing.suppress(_detector(objectness=False), scored, 0.3, 0.5)
    assert len(expected) > 10
    torch.testing.assert_close(found, expected)


def test_class_scores_alone_in_ultralytics_layout() -> None:
    rows = torch.tensor([[*row[:4], row[4] * row[5], row[4] * row[6]] for row in ROWS])
    (found,) = postprocessing.suppress(_detector(objectness=False), (rows.T.unsqueeze(0), {}), 0.25, 0.45)
    assert found[:, 4:].round(decimals=2).tolist() == [
        [pytest.approx(0.81), 0.0],
        [pytest.approx(0.63), 1.0],
    ]


def test_an_end_to_end_head_is_only_thresholded() -> None:
    rows = torch.tensor([[[0, 0, 9, 9, 0.9, 1], [0, 0, 9, 9, 0.8, 1], [0, 0, 9, 9, 0.1, 0]]])
    (found,) = postprocessing.suppress(_detector(objectness=False, end_to_end=True), rows, 0.25, 0.45)
    assert found[:, 4].tolist() == [pytest.approx(0.9), pytest.approx(0.8)]


def test_a_real_end_to_end_head_puts_out_that_form() -> None:
    detector = build_detector(find_model("yolov10n"), seed=0)
    detector.module.end2end = True  # type: ignore[assignment]
    detector.end_to_end = True
    detector.fuse()
    with torch.inference_mode():
        found = postprocessing.suppress(detector, detector.module(torch.rand(2, 3, 96, 96)), 0.0, 0.45)
    assert [tuple(boxes.shape) for boxes in found] == [(189, 6), (189, 6)]


def test_the_clock_has_no_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """ultralytics gives up after a while; then a slow machine would find fewer boxes."""
    ticks = iter(range(0, 10**9, 10**6))
    monkeypatch.setattr(time, "time", lambda: next(ticks))
    rows = torch.tensor([[*row[:4], row[4] * row[5], row[4] * row[6]] for row in ROWS]).T
    found = postprocessing.suppress(_detector(objectness=False), torch.stack([rows, rows, rows]), 0.25, 0.45)
    assert [len(boxes) for boxes in found] == [2, 2, 2]


def test_boxes_go_back_to_the_images_own_pixels() -> None:
    image = np.zeros((200, 400, 3), dtype=np.uint8)  # letterboxed to 320x320: half size, 80 rows of grey above
    boxes = torch.tensor([[0.0, 80.0, 160.0, 160.0, 0.9, 1.0], [100.0, 100.0, 500.0, 400.0, 0.8, 0.0]])
    postprocessing.to_image_pixels([boxes], (320, 320), [image])
    torch.testing.assert_close(boxes[0, :4], torch.tensor([0.0, 0.0, 200.0, 100.0]))
    assert boxes[1, 2:4].tolist() == [400.0, 200.0]  # cut to the image


def test_drawing_leaves_the_image_alone_and_marks_the_box() -> None:
    image = np.full((100, 100, 3), 255, dtype=np.uint8)
    rows = torch.tensor([[20.0, 30.0, 80.0, 90.0, 0.5, 1.0]])
    annotator = postprocessing.annotator_of(image)
    postprocessing.label(annotator, rows[:, :4].tolist(), rows, NAMES)
    drawn = annotator.result()
    assert image.min() == 255
    assert drawn[90, 50].tolist() != [255, 255, 255] and drawn[60, 50].tolist() == [255, 255, 255]


def test_tally_has_the_frequent_first() -> None:
    boxes = torch.tensor([[0, 0, 1, 1, 0.9, 1], [0, 0, 1, 1, 0.9, 0], [0, 0, 1, 1, 0.9, 1]])
    assert postprocessing.tally(boxes, NAMES) == "2 dog, 1 cat"
