from __future__ import annotations

import pytest
import torch
from torch import nn

from hwprof import packages
from hwprof.errors import UsageError
from hwprof.workload import model_registry
from hwprof.workload.detector import build_detector, class_names, separate_activations
from hwprof.workload.model_registry import DETECTION_HEADS, find_model, known_models


def test_knows_ours_first_and_every_size_of_ultralytics() -> None:
    names = known_models()
    assert names[0] == "yolov7"
    assert {"yolov3-tiny", "yolov5n", "yolov8n", "yolov8x-p6", "yolov9c", "yolov10b", "yolo11s", "yolo12n"} <= set(
        names
    )
    assert len(names) == len(set(names))


def test_lists_only_what_the_pipeline_can_run() -> None:
    assert not [name for name in known_models() if name.endswith(("-seg", "-cls", "-pose", "-obb"))]


def test_without_ultralytics_what_is_to_be_installed_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    known_models()  # kept: other tests need those of ultralytics
    monkeypatch.setattr(model_registry, "ultralytics_folder", lambda: None)
    with pytest.raises(UsageError, match="there is no model nosuch") as caught:
        find_model("nosuch")
    assert (caught.value.remedy or "").startswith(packages.YOLO)


def test_an_unknown_model_gets_near_matches_and_where_to_look() -> None:
    with pytest.raises(UsageError, match=r"yolov8nn.*yolov8n.*hwprof models"):
        find_model("yolov8nn")


def test_a_segmentation_model_is_refused_with_the_way_round() -> None:
    with pytest.raises(UsageError, match=r"yolov8n-seg ends in Segment.*--input-shape"):
        find_model("yolov8n-seg")


@pytest.mark.parametrize("name", ["rtdetr-l", "yolov8s-world"])
def test_a_detector_with_another_head_is_not_said_to_be_none(name: str) -> None:
    """The reason is that the pipeline does not decode what comes out; that it detects is true of it."""
    with pytest.raises(UsageError) as caught:
        find_model(name)
    assert "detection" not in caught.value.message
    assert all(head in caught.value.message for head in DETECTION_HEADS)


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
    assert (class_names(80)[0], class_names(80)[5]) == ("person", "bus")
    assert class_names(2) == {0: "0", 1: "1"}
