from __future__ import annotations

import pytest
import torch
from torch import nn

from hwprof import packages
from hwprof.errors import UsageError
from hwprof.workload import model_registry
from hwprof.workload.detector import build_detector, class_names, separate_activations
from hwprof.workload.heads import task_of, why_refused
from hwprof.workload.model_registry import find_model, known_entries, known_models


def test_knows_ours_first_and_every_size_of_ultralytics() -> None:
    names = known_models()
    assert names[0] == "yolov7"
    assert {"yolov3-tiny", "yolov5n", "yolov8n", "yolov8x-p6", "yolov9c", "yolov10b", "yolo11s", "yolo12n"} <= set(
        names
    )
    assert len(names) == len(set(names))


def test_lists_every_task_whose_output_is_decoded_and_no_other() -> None:
    tasks = {entry.name: entry.task.name for entry in known_entries()}
    for name, task in {
        "yolov7": "detect", "yolov8n": "detect", "yolov10n": "detect", "yolov8x-seg": "segment",
        "yolo26s-seg": "segment", "yolov9c-seg": "segment", "yolo11m-pose": "pose", "yolov8x-pose-p6": "pose",
        "yolo26n-obb": "obb", "yolo12n-obb": "obb", "yolov8n-cls": "classify", "yolov8n-cls-resnet50": "classify",
    }.items():  # fmt: skip
        assert tasks[name] == task
    assert not [name for name in tasks if name.startswith(("rtdetr", "yoloe")) or "world" in name]


def test_without_ultralytics_what_is_to_be_installed_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    known_models()  # kept: other tests need those of ultralytics
    monkeypatch.setattr(model_registry, "ultralytics_folder", lambda: None)
    with pytest.raises(UsageError, match="there is no model nosuch") as caught:
        find_model("nosuch")
    assert (caught.value.remedy or "").startswith(packages.YOLO)


def test_an_unknown_model_gets_near_matches_and_where_to_look() -> None:
    with pytest.raises(UsageError, match=r"yolov8nn.*yolov8n.*hwprof models"):
        find_model("yolov8nn")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("rtdetr-l", "RTDETRDecoder, .* a transformer's queries"),
        ("yolov8s-world", "WorldDetect, .* classes are texts"),
        ("yoloe-26n-seg", "YOLOESegment26, .* classes are texts"),
        ("yolo26n-sem", "SemanticSegment, .* a class for each pixel"),
        ("yolo26n-depth", "Depth, .* a distance for each pixel"),
        ("yolo11-cls-resnet18", "TorchVision, .* layers are torchvision's"),
    ],
)
def test_what_is_not_run_is_refused_with_the_reason_and_the_way_round(name: str, why: str) -> None:
    with pytest.raises(UsageError, match=rf"{name} has the module {why}.*--input-shape"):
        find_model(name)


def test_every_layout_of_ultralytics_has_a_task_or_is_refused_with_a_reason() -> None:
    for head in {entry.head for entry in model_registry._entries().values()}:
        assert (task_of(head) is None) == (why_refused(head) != why_refused("unheard of"))


@pytest.mark.parametrize(
    ("name", "parameters", "stride"),
    [("yolov8n", 3_157_200, 32), ("yolo11n", 2_624_080, 32), ("yolov5n-p6", 4_334_896, 64)],
)
def test_builds_ultralytics_layouts_in_their_size(name: str, parameters: int, stride: int) -> None:
    detector = build_detector(find_model(name), seed=0)
    assert sum(parameter.numel() for parameter in detector.module.parameters()) == parameters
    assert (detector.stride, detector.objectness) == (stride, False)
    assert not detector.module.training


def test_ultralytics_activations_stand_alone_too() -> None:
    detector = build_detector(find_model("yolov8n"), seed=0)
    once = [name for name, module in detector.module.named_modules() if isinstance(module, nn.SiLU)]
    every = [
        name for name, module in detector.module.named_modules(remove_duplicate=False) if isinstance(module, nn.SiLU)
    ]
    assert once == every
    assert len(once) > 50


def test_the_seed_decides_the_weights() -> None:
    first, again, other = (build_detector(find_model("yolov8n"), seed).module.state_dict() for seed in (0, 0, 1))
    assert all(torch.equal(value, again[key]) for key, value in first.items())
    assert not torch.equal(first["model.0.conv.weight"], other["model.0.conv.weight"])


def test_separates_only_what_has_no_state() -> None:
    shared_relu, shared_prelu, shared_linear = nn.ReLU(), nn.PReLU(), nn.Linear(2, 2)
    model = nn.Sequential(
        nn.Sequential(shared_linear, shared_relu, shared_prelu), nn.Sequential(shared_linear, shared_relu, shared_prelu)
    )
    x = torch.randn(3, 2)
    expected = model(x)
    separate_activations(model)
    first, second = model[0], model[1]
    assert isinstance(first, nn.Sequential) and isinstance(second, nn.Sequential)
    assert [one is other for one, other in zip(first, second, strict=True)] == [True, False, True]
    torch.testing.assert_close(model(x), expected)


def test_class_names_are_cocos_only_for_eighty() -> None:
    assert (class_names(80, "coco.yaml")[0], class_names(80, "coco.yaml")[5]) == ("person", "bus")
    assert class_names(2, "coco.yaml") == {0: "0", 1: "1"}
    assert class_names(1, "no-such.yaml") == {0: "0"}
