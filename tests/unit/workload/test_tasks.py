"""Each task's way from a model's output to what was found, held against ultralytics' own functions."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from hwprof.workload.calibration import calibrate
from hwprof.workload.detector import Detector, build_detector
from hwprof.workload.factory import build
from hwprof.workload.heads import known_tasks
from hwprof.workload.images import Image, read_image
from hwprof.workload.libraries import require_ultralytics
from hwprof.workload.model_registry import find_model
from hwprof.workload.sources.image_paths import find_images
from hwprof.workload.spec import WorkloadSpec
from hwprof.workload.tasks.choice import TASKS, make_task
from hwprof.workload.tasks.classification import Classification
from hwprof.workload.tasks.pose import Posed
from hwprof.workload.tasks.protocol import Task
from hwprof.workload.tasks.segmentation import Masked
from tests.support.recorded_stages import RecordedStages

CONF, IOU, SIZE = 0.25, 0.45, 128
STAGES = {"seg": ["nms", "masks"], "pose": ["nms", "keypoints"], "obb": ["nms"], "cls": ["topk"]}


@cache
def _photograph() -> Image:
    return read_image(find_images(None)[1])


def _image() -> Image:
    """Wider than high, so that it is padded."""
    return _photograph().copy()


@cache
def _calibrated(name: str, *, end_to_end: bool = False) -> tuple[Detector, Task]:
    detector = build_detector(find_model(name), seed=0)
    task = make_task(detector, SIZE, CONF, IOU)
    calibrate(detector, [task.preprocessing([_image()])], CONF)
    if end_to_end:
        detector.module.end2end = True  # type: ignore[assignment]
        detector.end_to_end = True
    return detector, task


def _found(name: str, *, end_to_end: bool = False) -> tuple[Any, Any, tuple[int, int], list[str]]:
    """The model's output, what the task makes of it, the input's shape, and the stages."""
    detector, task = _calibrated(name, end_to_end=end_to_end)
    batch = task.preprocessing([_image()])
    shape = (int(batch.shape[-2]), int(batch.shape[-1]))
    stages = RecordedStages()
    with torch.inference_mode():
        output = detector.module(batch)
        (found,) = task.postprocess(output, shape, [_image()], stages)
    return output, found, shape, stages.begun


def _suppressed(prediction: torch.Tensor, classes: int, **options: Any) -> torch.Tensor:
    nms: Any = require_ultralytics("utils.nms").non_max_suppression
    (rows,) = nms(prediction.clone(), CONF, IOU, nc=classes, **options)
    found: torch.Tensor = rows
    return found


def test_every_task_of_the_table_has_its_code() -> None:
    assert set(TASKS) == {task.name for task in known_tasks()}


@pytest.mark.parametrize("end_to_end", [False, True])
def test_masks_are_those_of_ultralytics(end_to_end: bool) -> None:
    ops: Any = require_ultralytics("utils.ops")
    name = "yolo26n-seg" if end_to_end else "yolov8n-seg"
    output, found, shape, _ = _found(name, end_to_end=end_to_end)
    predictions, prototypes = output[0]
    rows = _suppressed(predictions, 80, end2end=end_to_end)
    masks = ops.process_mask(prototypes[0], rows[:, 6:], rows[:, :4], shape, upsample=True)
    kept = [index for index, mask in enumerate(masks) if mask.any()]
    assert len(kept) >= 5 and tuple(masks.shape[1:]) == shape
    assert torch.equal(found.masks, masks[kept])
    assert torch.equal(found.boxes[:, 4:], rows[kept, 4:6])
    assert torch.equal(found.boxes[:, :4], ops.scale_boxes(shape, rows[kept, :4], _image().shape))


def test_a_box_without_a_mask_is_left_out() -> None:
    detector, task = _calibrated("yolov8n-seg")
    prediction = torch.zeros(1, 4 + 80 + 32, 2)
    prediction[0, :4] = torch.tensor([[32.0, 96.0], [32.0, 32.0], [40.0, 40.0], [40.0, 40.0]])
    prediction[0, 4] = 0.9
    prediction[0, 84] = torch.tensor([1.0, -1.0])
    output: Any = ((prediction, torch.ones(1, 32, 18, 32)), {})
    (found,) = task.postprocess(output, (72, 128), [_image()], RecordedStages())
    assert len(found.boxes) == len(found.masks) == 1 and int(found.masks.sum()) == 40 * 40
    assert len(detector.names) == 80


@pytest.mark.parametrize("end_to_end", [False, True])
def test_keypoints_are_those_of_ultralytics(end_to_end: bool) -> None:
    ops: Any = require_ultralytics("utils.ops")
    name = "yolo26n-pose" if end_to_end else "yolov8n-pose"
    output, found, shape, _ = _found(name, end_to_end=end_to_end)
    rows = _suppressed(output[0], 1, end2end=end_to_end)
    assert len(rows) >= 5
    expected = ops.scale_coords(shape, rows[:, 6:].reshape(-1, 17, 3).clone(), _image().shape)
    assert torch.equal(found.keypoints, expected)
    assert torch.equal(found.boxes[:, :4], ops.scale_boxes(shape, rows[:, :4].clone(), _image().shape))
    assert torch.equal(found.boxes[:, 4:], rows[:, 4:6])


@pytest.mark.parametrize("end_to_end", [False, True])
def test_rotated_boxes_are_those_of_ultralytics(end_to_end: bool) -> None:
    ops: Any = require_ultralytics("utils.ops")
    name = "yolo26n-obb" if end_to_end else "yolov8n-obb"
    output, found, shape, _ = _found(name, end_to_end=end_to_end)
    rows = _suppressed(output[0], 15, rotated=True, end2end=end_to_end)
    assert len(rows) >= 3 and found.shape == (len(rows), 7)
    assert torch.equal(found[:, :4], ops.scale_boxes(shape, rows[:, :4].clone(), _image().shape, xywh=True))
    assert torch.equal(found[:, 4:], rows[:, 4:])
    upright = _suppressed(output[0], 15, end2end=end_to_end)
    assert end_to_end or len(upright) != len(rows), "the angle has a say in what overlaps"


def test_the_most_likely_classes_come_first() -> None:
    output, found, _, _ = _found("yolov8n-cls")
    probabilities = output[0][0]
    order = probabilities.argsort(descending=True)[:5]
    assert found[:, 1].int().tolist() == order.tolist()
    assert torch.equal(found[:, 0], probabilities[order]) and float(probabilities.sum()) == pytest.approx(1)


def test_of_few_classes_all_are_given() -> None:
    task = Classification(build_detector(find_model("yolov8n-cls"), 0, draw=False, classes=2), 64, CONF, IOU)
    (found,) = task.postprocess((torch.tensor([[0.3, 0.7]]), None), (64, 64), [_image()], RecordedStages())
    assert found.round(decimals=2).tolist() == [[pytest.approx(0.7), 1.0], [pytest.approx(0.3), 0.0]]


@pytest.mark.parametrize("ending", STAGES)
def test_what_may_take_long_is_a_stage(ending: str) -> None:
    assert _found(f"yolov8n-{ending}")[3] == STAGES[ending]


@pytest.mark.parametrize("ending", STAGES)
def test_pictures_have_what_was_found_drawn_and_the_original_stays(ending: str) -> None:
    _, task = _calibrated(f"yolov8n-{ending}")
    found, image = _found(f"yolov8n-{ending}")[1], _image()
    drawn = task.draw(image, found)
    assert np.array_equal(image, _image())
    assert drawn.shape == image.shape and (drawn != image).any(axis=2).mean() > 0.01


def _one(task: Task, found: Any) -> np.ndarray[Any, Any]:
    """Which pixels of a black image are drawn on."""
    return np.asarray(task.draw(np.zeros((200, 200, 3), dtype=np.uint8), found).any(axis=2))


def test_masks_fill_their_pixels() -> None:
    masks = torch.zeros(1, 200, 200, dtype=torch.uint8)
    masks[:, 100:180, 20:60] = 1
    marked = _one(_calibrated("yolov8n-seg")[1], Masked(torch.tensor([[20.0, 100, 60, 180, 0.9, 0]]), masks))
    assert marked[105:175, 25:55].all() and not marked[105:175, 65:].any()


def test_a_skeleton_joins_the_points_that_are_seen() -> None:
    keypoints = torch.zeros(1, 17, 3)
    keypoints[0, 5:7] = torch.tensor([[120.0, 150, 0.9], [180, 150, 0.9]])  # the shoulders
    task = _calibrated("yolov8n-pose")[1]
    marked = _one(task, Posed(torch.tensor([[10.0, 60, 190, 190, 0.9, 0]]), keypoints))
    assert marked[150, 120:180].all() and not marked[80:140, 120:180].any()
    keypoints[0, 5, 2] = 0.1
    hidden = _one(task, Posed(torch.tensor([[10.0, 60, 190, 190, 0.9, 0]]), keypoints))
    assert not hidden[150, 130:170].any()


def test_a_rotated_box_has_its_corners_where_the_angle_says() -> None:
    half = 40 / math.sqrt(2)  # of the diagonal
    found = torch.tensor([[100.0, 140, 40, 40, 0.9, 0, math.pi / 4]])
    marked = _one(_calibrated("yolov8n-obb")[1], found)
    for x, y in ((100, 140 + half), (100 - half, 140), (100 + half, 140)):
        assert marked[round(y) - 1 : round(y) + 2, round(x) - 1 : round(x) + 2].any()
    assert not marked[118:123, 78:83].any(), "a corner, were it upright"


def test_upright_boxes_are_around_rotated_ones() -> None:
    half = 40 / math.sqrt(2)
    kept = torch.tensor([[100.0, 140, 40, 40, 0.9, 3, math.pi / 4]])
    boxes = _calibrated("yolov8n-obb")[1].boxes(kept)
    assert boxes is not None
    expected = torch.tensor([[100 - half, 140 - half, 100 + half, 140 + half, 0.9, 3]])
    assert torch.allclose(boxes, expected, atol=1e-3)
    assert _calibrated("yolov8n-cls")[1].boxes(torch.zeros(5, 2)) is None


@pytest.mark.parametrize(
    ("ending", "kept", "told", "named"),
    [
        ("seg", torch.zeros(0, 6), "0 boxes, 0 masks", "0 boxes, 0 masks"),
        ("seg", torch.zeros(1, 6), "1 box, 1 mask", "1 box, 1 mask (1 person)"),
        ("pose", torch.zeros(2, 6), "2 poses", "2 poses (2 person)"),
        ("obb", torch.zeros(2, 7), "2 rotated boxes", "2 rotated boxes (2 plane)"),
        ("cls", torch.tensor([[0.83, 207.0], [0.1, 0]]), "top-1 class 207 (0.83)", "top-1 Golden Retriever (0.83)"),
    ],
)
def test_summaries(ending: str, kept: torch.Tensor, told: str, named: str) -> None:
    task = _calibrated(f"yolov8n-{ending}")[1]
    assert (task.summary(kept, named=False), task.summary(kept, named=True)) == (told, named)


@pytest.mark.parametrize(
    ("model", "shapes", "words"),
    [
        ("yolov8n-seg", ["1x3x96x128", "1x3x128x64"], ("boxes, ", "masks")),
        ("yolov8n-pose", ["1x3x96x128", "1x3x128x64"], ("poses",)),
        ("yolov8n-obb", ["1x3x96x128", "1x3x128x64"], ("rotated box",)),
        ("yolov8n-cls", ["1x3x128x128"], ("top-1 class",)),
    ],
)
def test_a_workload_of_each_task(
    model: str, shapes: list[str], words: tuple[str, ...], pictures: Path, stages: RecordedStages, tmp_path: Path
) -> None:
    workload = build(WorkloadSpec(model=model, source=str(pictures), imgsz=128))
    record = workload.prepare()
    workload.iterate(stages, tmp_path)
    assert record.input_shapes == shapes and ("conf" in record.options) == (model != "yolov8n-cls")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jpg", "b.jpg", "tall.jpg"]
    inner = [f"postprocess/{name}" for name in STAGES[model.rpartition("-")[2]]]
    assert stages.begun == ["load", "preprocess", "inference", "postprocess", *inner, "save"] * 3
    assert all(word in line for line in workload.results() for word in words), workload.results()


def test_classifiers_have_their_own_image_size(pictures: Path) -> None:
    def shape(model: str) -> list[str]:
        return build(WorkloadSpec(model=model, source=str(pictures / "a.png"))).prepare(values=False).input_shapes

    assert (shape("yolov8n-cls"), shape("yolov8n-pose")) == (["1x3x224x224"], ["1x3x480x640"])


def test_the_note_on_random_weights_names_what_means_nothing(pictures: Path) -> None:
    for model, nothing in (("yolov8n-seg", "boxes, masks and classes mean"), ("yolov8n-cls", "input's; classes mean")):
        (note,) = build(WorkloadSpec(model=model, source=str(pictures), imgsz=64)).prepare().notes
        assert nothing in note
