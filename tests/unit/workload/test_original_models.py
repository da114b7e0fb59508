"""The originals' models from our layout files: as many modules, parameters and multiplications as theirs have."""

from __future__ import annotations

from typing import Any, Final

import pytest
import torch
from torch import nn

from hwprof.errors import UsageError
from hwprof.workload.detector import Detector, build_detector
from hwprof.workload.head_tensors import classes_in
from hwprof.workload.model_registry import find_model, known_models

# Name: modules; millions of parameters (fused) and GFLOPs at the size, as the originals' papers and tables have them.
ORIGINALS: Final = {
    "yolov7-tiny": (78, 6.2, 13.8, 640),
    "yolov7": (106, 36.9, 104.7, 640),
    "yolov7x": (122, 71.3, 189.9, 640),
    "yolov7-w6": (119, 70.4, 360.0, 1280),
    "yolov7-e6": (141, 97.2, 515.2, 1280),
    "yolov7-d6": (163, 133.8, 701.7, 1280),  # as the original's layout has it; the paper says 154.7 and 806.8
    "yolov7-e6e": (262, 151.7, 843.2, 1280),
    "yolov5n": (25, 1.87, 4.5, 640),
    "yolov5s": (25, 7.23, 16.5, 640),
    "yolov5m": (25, 21.17, 49.0, 640),
    "yolov5l": (25, 46.53, 109.1, 640),
    "yolov5x": (25, 86.71, 205.7, 640),
    "yolov5n6": (34, 3.24, 4.6, 640),
    "yolov5s6": (34, 12.61, 16.8, 640),
    "yolov5m6": (34, 35.70, 50.0, 640),
    "yolov5l6": (34, 76.73, 111.4, 640),
    "yolov5x6": (34, 140.73, 209.8, 640),
}


def _parameters(detector: Detector) -> int:
    return sum(parameter.numel() for parameter in detector.module.parameters())


def _gflops(detector: Detector, size: int) -> float:
    """Two for each multiplication of convolutions, without doing any."""
    macs: list[int] = []

    def count(module: nn.Module, _: Any, output: torch.Tensor) -> None:
        assert isinstance(module, nn.Conv2d)
        macs.append(output.numel() * module.weight[0].numel())

    model = detector.module.to("meta")
    hooks = [one.register_forward_hook(count) for one in model.modules() if isinstance(one, nn.Conv2d)]
    kept = {-1: torch.zeros(1, 3, size, size, device="meta")}
    for index, (module, source) in enumerate(zip(model.model, model.sources, strict=True)):  # type: ignore[arg-type]
        inputs = [kept[place] for place in source] if isinstance(source, tuple) else kept[source]
        if module is detector.head:
            for convolution, features in zip(module.m, inputs, strict=True):
                convolution(features)  # boxes are made of what they give on the processor
        else:
            kept[index] = module(inputs)
    for hook in hooks:
        hook.remove()
    return 2 * sum(macs) / 1e9


@pytest.mark.parametrize("name", ORIGINALS)
def test_modules_parameters_and_multiplications_are_the_originals(name: str) -> None:
    modules, parameters, gflops, size = ORIGINALS[name]
    detector = build_detector(find_model(name), seed=0, draw=False)
    assert len(detector.module.model) == modules  # type: ignore[arg-type]
    detector.fuse()
    assert _parameters(detector) / 1e6 == pytest.approx(parameters, rel=1e-2 if parameters < 10 else 1e-3)
    assert _gflops(detector, size) == pytest.approx(gflops, rel=1e-2)
    assert (detector.stride, detector.objectness) == (64 if name[-1] == "6" or "6e" in name else 32, True)


@pytest.mark.parametrize("name", ["yolov7-tiny", "yolov7-w6", "yolov5n", "yolov5n6"])
def test_a_fused_model_gives_what_the_unfused_one_gives(name: str) -> None:
    detector = build_detector(find_model(name), seed=0)
    torch.manual_seed(1)
    for module in detector.module.modules():
        if isinstance(module, nn.BatchNorm2d):  # statistics that folding gets wrong if it forgets any term
            assert module.running_mean is not None and module.running_var is not None
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
    image = torch.rand(1, 3, 128, 128)
    with torch.inference_mode():
        expected, _ = detector.module(image)
        detector.fuse()
        found, _ = detector.module(image)
    assert not any(isinstance(module, nn.BatchNorm2d) for module in detector.module.modules())
    assert float((found - expected).abs().max() / expected.abs().max()) < 1e-3


def test_states_are_named_as_the_originals() -> None:
    """Which keys the originals' checkpoints have, and which not."""
    small, tiny, wide = (
        build_detector(find_model(name), seed=0, draw=False).module.state_dict()
        for name in ("yolov5s", "yolov7-tiny", "yolov7-e6")
    )
    assert tuple(small["model.2.m.0.cv1.conv.weight"].shape) == (32, 32, 1, 1)
    assert tuple(small["model.9.cv2.conv.weight"].shape) == (512, 1024, 1, 1)
    assert tuple(small["model.24.m.2.weight"].shape) == (255, 512, 1, 1)
    assert "model.24.anchors" in small and "model.24.anchor_grid" not in small
    assert "model.77.anchor_grid" in tiny
    assert tuple(wide["model.2.cv2.conv.weight"].shape) == (80, 80, 3, 3)
    assert tuple(wide["model.140.m.3.bias"].shape) == (255,)


@pytest.mark.parametrize("name", ["yolov5n", "yolov7-tiny", "yolov8n", "yolov10n", "yolo11n"])
@pytest.mark.parametrize("classes", [1, 7])
def test_classes_are_those_of_the_checkpoint(name: str, classes: int) -> None:
    entry = find_model(name)
    state = build_detector(entry, seed=0, draw=False, classes=classes).module.state_dict()
    assert classes_in(state, entry) == classes
    again = build_detector(entry, seed=0, draw=False, classes=classes_in(state, entry))
    assert list(again.names) == list(range(classes))
    again.module.load_state_dict(state)


def test_a_head_of_more_classes_than_any_has_is_refused() -> None:
    entry = find_model("yolov5n")
    for outputs, says in ((3 * 5, "0 classes"), (3 * 10_006, "10,001 classes")):
        with pytest.raises(UsageError, match=says):
            classes_in({"model.24.m.0.weight": torch.empty(outputs, 64, 1, 1, device="meta")}, entry)
    assert classes_in({"model.24.m.0.weight": torch.zeros(3)}, entry) is None
    assert classes_in({}, entry) is None


def test_activations_are_the_originals() -> None:
    kinds = {
        name: {
            type(module.act).__name__
            for module in build_detector(find_model(name), seed=0, draw=False).module.modules()
            if hasattr(module, "act")
        }
        for name in ("yolov7-tiny", "yolov5n", "yolov7-w6")
    }
    assert kinds == {"yolov7-tiny": {"LeakyReLU"}, "yolov5n": {"SiLU"}, "yolov7-w6": {"SiLU"}}


def test_ultralytics_own_form_of_an_original_has_a_name_beside_it() -> None:
    names = known_models()
    assert {"yolov5s", "yolov5su", "yolov5s6", "yolov8n"} <= set(names) and "yolov8nu" not in names
    assert find_model("yolov5s").origin == "hwprof" and find_model("yolov5su").origin == "ultralytics"
    assert build_detector(find_model("yolov5nu"), seed=0, draw=False).objectness is False
