"""What a checkpoint's head says of its model."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from hwprof.errors import UsageError
from hwprof.workload.detector import build_detector
from hwprof.workload.head_tensors import HeadForm, classes_in, form_in, keypoints_in, task_in
from hwprof.workload.model_registry import find_model


def _state(name: str, *, fused: bool = False, end_to_end: bool = False, **size: Any) -> dict[str, torch.Tensor]:
    detector = build_detector(find_model(name), seed=0, draw=False, **size)
    if end_to_end:
        detector.module.end2end = True  # type: ignore[assignment]
    if fused:
        detector.fuse()
    return detector.module.state_dict()


@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("yolov7-tiny", "detect"), ("yolov8n", "detect"), ("yolo26n", "detect"), ("yolov8n-seg", "segment"),
        ("yolo26n-seg", "segment"), ("yolov8n-pose", "pose"), ("yolo26n-pose", "pose"), ("yolov8n-obb", "obb"),
        ("yolo26n-obb", "obb"), ("yolov8n-cls", "classify"), ("yolov8n-cls-resnet50", "classify"),
    ],
)  # fmt: skip
def test_the_task_and_the_classes_are_told_by_the_head(name: str, task: str) -> None:
    entry = find_model(name)
    state = _state(name, classes=3)
    assert task_in(state) == task == entry.task.name
    assert classes_in(state, entry) == 3


@pytest.mark.parametrize("name", ["yolo26n-seg", "yolo26n-pose", "yolo26n-obb", "yolov10n"])
@pytest.mark.parametrize("end_to_end", [False, True])
def test_of_two_branches_the_one_that_fusing_leaves_tells_as_much(name: str, end_to_end: bool) -> None:
    entry = find_model(name)
    state = _state(name, fused=True, end_to_end=end_to_end, classes=3)
    assert (task_in(state), classes_in(state, entry)) == (entry.task.name, 3)
    assert form_in(state, {}, entry).end_to_end == end_to_end


@pytest.mark.parametrize("name", ["yolov8n-pose", "yolo26n-pose"])
def test_keypoints_are_the_checkpoint_s(name: str) -> None:
    state = _state(name, classes=2, keypoints=(8, 3))
    assert form_in(state, {}, find_model(name)) == HeadForm(2, (8, 3))
    assert keypoints_in(state, {"kpt_shape": [12, 2]}) == (12, 2), "24 values may be either"
    assert keypoints_in(state, {"kpt_shape": [7, 3]}) == (8, 3), "what does not fit is not believed"
    assert keypoints_in(state, {"kpt_shape": "17, 3"}) == (8, 3)
    again = build_detector(find_model(name), 0, draw=False, **form_in(state, {}, find_model(name))._asdict())
    again.module.load_state_dict(state)
    assert tuple(again.head.kpt_shape) == (8, 3)


def test_other_heads_have_no_keypoints() -> None:
    assert form_in(_state("yolov8n-seg"), {}, find_model("yolov8n-seg")) == HeadForm(80, None)
    assert keypoints_in({}, {}) is None
    assert keypoints_in({"model.22.cv4.0.2.weight": torch.zeros(5, 8, 1, 1)}, {}) is None, "neither pairs nor triples"


def test_heads_larger_than_any_are_refused() -> None:
    with pytest.raises(UsageError, match="3,001 coordinates of keypoints"):
        keypoints_in({"model.22.cv4.0.2.weight": torch.empty(3001, 8, 1, 1, device="meta")}, {})
    with pytest.raises(UsageError, match="10,001 classes"):
        classes_in({"model.9.linear.weight": torch.empty(10_001, 8, device="meta")}, find_model("yolov8n-cls"))
