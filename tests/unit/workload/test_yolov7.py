from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from hwprof.workload.detector import Detector, build_detector
from hwprof.workload.model_registry import find_model

BUILT_PARAMETERS = 37_620_125
"""What the original counts for its deploy layout."""

FUSED_PARAMETERS = 36_905_341
"""What the original prints once convolutions are folded and RepConv is re-parametrised."""


@pytest.fixture(scope="session")
def yolov7() -> Detector:
    detector = build_detector(find_model("yolov7"), seed=0)
    _disturb_norms(detector.module)
    return detector


@pytest.fixture(scope="session")
def fused(yolov7: Detector) -> Detector:
    detector = copy.deepcopy(yolov7)
    detector.fuse()
    return detector


def _disturb_norms(model: nn.Module) -> None:
    """Statistics that folding gets wrong if it forgets any term."""
    generator = torch.Generator().manual_seed(1)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            assert module.running_mean is not None and module.running_var is not None
            module.running_mean.copy_(torch.randn(module.num_features, generator=generator) * 0.1)
            module.running_var.copy_(torch.rand(module.num_features, generator=generator) * 0.5 + 0.05)
            module.weight.data.copy_(torch.rand(module.num_features, generator=generator) + 0.5)
            module.bias.data.copy_(torch.randn(module.num_features, generator=generator) * 0.1)


def _parameters(detector: Detector) -> int:
    return sum(parameter.numel() for parameter in detector.module.parameters())


def test_has_the_originals_parameter_counts(yolov7: Detector, fused: Detector) -> None:
    assert _parameters(yolov7) == BUILT_PARAMETERS
    assert _parameters(fused) == FUSED_PARAMETERS


def test_has_the_originals_modules_in_the_originals_places(yolov7: Detector) -> None:
    model: Any = yolov7.module
    assert len(model.model) == 106
    kinds = {index: type(model.model[index]).__name__ for index in (0, 10, 12, 51, 53, 102, 103, 104, 105)}
    assert kinds == {
        0: "Conv",
        10: "Concat",
        12: "MP",
        51: "SPPCSPC",
        53: "Upsample",
        102: "RepConv",
        103: "RepConv",
        104: "RepConv",
        105: "Detect",
    }


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("model.0.conv.weight", (32, 3, 3, 3)),
        ("model.0.bn.running_var", (32,)),
        ("model.51.cv1.conv.weight", (512, 1024, 1, 1)),
        ("model.51.cv5.conv.weight", (512, 2048, 1, 1)),
        ("model.51.cv7.conv.weight", (512, 1024, 1, 1)),
        ("model.102.rbr_dense.0.weight", (256, 128, 3, 3)),
        ("model.102.rbr_dense.1.running_mean", (256,)),
        ("model.104.rbr_1x1.0.weight", (1024, 512, 1, 1)),
        ("model.105.m.0.weight", (255, 256, 1, 1)),
        ("model.105.m.2.bias", (255,)),
        ("model.105.anchors", (3, 3, 2)),
        ("model.105.anchor_grid", (3, 1, 3, 1, 1, 2)),
    ],
)
def test_names_its_state_as_the_original(yolov7: Detector, name: str, shape: tuple[int, ...]) -> None:
    assert tuple(yolov7.module.state_dict()[name].shape) == shape


def test_fused_names(fused: Detector) -> None:
    names = set(fused.module.state_dict())
    assert {"model.0.conv.bias", "model.102.rbr_reparam.weight", "model.102.rbr_reparam.bias"} <= names
    assert not [name for name in names if ".bn." in name or "rbr_dense" in name or "rbr_1x1" in name]


def test_keeps_anchors_in_cells_and_anchor_grid_in_pixels(yolov7: Detector) -> None:
    assert yolov7.head.anchor_grid[2].flatten().tolist() == [142, 110, 192, 243, 459, 401]
    assert yolov7.head.anchors[0].flatten().tolist() == [12 / 8, 16 / 8, 19 / 8, 36 / 8, 40 / 8, 28 / 8]


def test_uses_yolos_batch_norm_and_silu_throughout(yolov7: Detector) -> None:
    norms = [module for module in yolov7.module.modules() if isinstance(module, nn.BatchNorm2d)]
    assert {(norm.eps, norm.momentum) for norm in norms} == {(1e-3, 0.03)}
    convs = [module for module in yolov7.module.modules() if type(module).__name__ in ("Conv", "RepConv")]
    assert {type(module.act) for module in convs} == {nn.SiLU}
    assert len(norms) == len(convs) + 3  # RepConv has two


def test_every_activation_is_its_own_module(yolov7: Detector) -> None:
    activations = [name for name, module in yolov7.module.named_modules() if isinstance(module, nn.SiLU)]
    convs = [name for name, module in yolov7.module.named_modules() if hasattr(module, "act")]
    assert activations == [f"{name}.act" for name in convs]


def test_fusing_leaves_the_output_alone(yolov7: Detector, fused: Detector) -> None:
    image = torch.rand(2, 3, 96, 64, generator=torch.Generator().manual_seed(2))
    with torch.inference_mode():
        expected, expected_raw = yolov7.module(image)
        actual, actual_raw = fused.module(image)
    assert expected_raw[0].std() > 1e-3
    torch.testing.assert_close(actual, expected, rtol=1e-3, atol=1e-2)
    for one, other in zip(actual_raw, expected_raw, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("inputs", "outputs", "stride"), [(8, 8, 1), (8, 16, 1), (8, 8, 2)])
def test_repconv_is_one_convolution_after_fusing(inputs: int, outputs: int, stride: int) -> None:
    from hwprof.workload.yolov7_blocks import RepConv

    block = RepConv(inputs, outputs, 3, stride).eval()
    assert (block.rbr_identity is not None) == (inputs == outputs and stride == 1)
    _disturb_norms(block)
    x = torch.randn(2, inputs, 10, 14, generator=torch.Generator().manual_seed(3))
    with torch.inference_mode():
        expected = block(x)
        block.fuse()
        torch.testing.assert_close(block(x), expected, rtol=1e-4, atol=1e-5)
    assert [type(module) for module in block.children()] == [nn.SiLU, nn.Conv2d]


def test_decodes_as_the_paper_has_it() -> None:
    from hwprof.workload.anchor_head import Detect

    anchors, stride = [[10, 20, 30, 40]], 16
    head = Detect(2, anchors, [stride], [4])
    features = torch.randn(1, 4, 3, 5, generator=torch.Generator().manual_seed(4))
    with torch.inference_mode():
        decoded, (raw,) = head([features])
    assert decoded.shape == (1, 2 * 3 * 5, 7)
    anchor, row, column = 1, 2, 3
    logits = raw[0, anchor, row, column].sigmoid()
    box = decoded[0, (anchor * 3 + row) * 5 + column]
    x = (logits[0] * 2 - 0.5 + column) * stride
    y = (logits[1] * 2 - 0.5 + row) * stride
    width, height = (2 * logits[2]) ** 2 * 30, (2 * logits[3]) ** 2 * 40
    torch.testing.assert_close(box[:4], torch.stack((x, y, width, height)))
    torch.testing.assert_close(box[4:], logits[4:])
    direct = head.m[0](features)[0].view(2, 7, 3, 5)
    torch.testing.assert_close(raw[0, anchor, row, column], direct[anchor, :, row, column])


def test_makes_a_grid_once_a_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    from hwprof.workload import anchor_head

    made: list[tuple[int, ...]] = []
    original: Callable[..., Any] = torch.meshgrid

    def counting(*tensors: torch.Tensor, **options: Any) -> Any:
        made.append(tuple(len(tensor) for tensor in tensors))
        return original(*tensors, **options)

    monkeypatch.setattr(torch, "meshgrid", counting)
    head = anchor_head.Detect(2, [[10, 20]], [8], [4])
    for height, width in ((3, 5), (5, 3), (3, 5), (3, 5)):
        head([torch.zeros(1, 4, height, width)])
    assert made == [(3, 5), (5, 3)]
