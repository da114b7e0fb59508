from __future__ import annotations

import pytest
import torch
from torch import nn

from hwprof.workload import calibration, postprocessing
from hwprof.workload.detector import Detector, build_detector
from hwprof.workload.model_registry import find_model


def test_batch_norm_gets_the_inputs_own_statistics() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 1, bias=False), nn.BatchNorm2d(4, momentum=0.03)).eval()
    inputs = [torch.randn(1, 3, 8, 8) * 5 + 2, torch.randn(1, 3, 4, 4) * 5 + 2]
    with torch.inference_mode():
        calibration.calibrate_batch_norm(model, inputs)
        convolved = [model[0](x) for x in inputs]
    norm = model[1]
    assert isinstance(norm, nn.BatchNorm2d)
    assert norm.running_mean is not None and norm.running_var is not None
    expected_mean = torch.stack([y.mean(dim=(0, 2, 3)) for y in convolved]).mean(dim=0)
    expected_var = torch.stack([y.var(dim=(0, 2, 3)) for y in convolved]).mean(dim=0)
    torch.testing.assert_close(norm.running_mean, expected_mean)
    torch.testing.assert_close(norm.running_var, expected_var)
    assert norm.bias.tolist() == [calibration.NORM_SHIFT] * 4
    assert (norm.momentum, norm.training) == (0.03, False)


def _pictures(count: int) -> list[torch.Tensor]:
    """Soft noise of different contrast, as photographs differ."""
    generator = torch.Generator().manual_seed(3)
    coarse = torch.rand(count, 3, 10, 8, generator=generator)
    smooth = nn.functional.interpolate(coarse, scale_factor=32, mode="bicubic").clamp(0, 1)
    return [(smooth[index] * (1.0 - 0.15 * index)).unsqueeze(0) for index in range(count)]


@pytest.fixture(scope="module", params=["yolov8n", "yolov10n", "yolov8n-seg", "yolo26n-pose", "yolov8n-obb"])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def _candidates(detector: Detector, batch: torch.Tensor, conf: float) -> int:
    """How many boxes pass the threshold: suppression that never suppresses."""
    with torch.inference_mode():
        output = detector.module(batch)
        boxes = output[0] if detector.task == "segment" else output
        return len(postprocessing.suppress(detector, boxes, conf, 1.0)[0])


@pytest.mark.parametrize("conf", [0.05, 0.25, 0.9])
def test_every_image_has_a_realistic_number_of_candidates(name: str, conf: float) -> None:
    detector, batches = build_detector(find_model(name), seed=0), _pictures(3)
    calibration.calibrate(detector, batches, conf)
    detector.fuse()
    counts = [_candidates(detector, batch, conf) for batch in batches]
    assert min(counts) >= 10
    assert 0.5 * calibration.CANDIDATES_PER_IMAGE <= sum(counts) / 3 <= 1.5 * calibration.CANDIDATES_PER_IMAGE


def test_both_branches_of_a_dual_head_are_set() -> None:
    detector, batches = build_detector(find_model("yolov10n"), seed=0), _pictures(2)
    calibration.calibrate(detector, batches, 0.25)
    detector.module.end2end = True  # type: ignore[assignment]
    detector.end_to_end = True
    counts = [_candidates(detector, batch, 0.25) for batch in batches]
    assert min(counts) >= 10 and sum(counts) <= 3 * calibration.CANDIDATES_PER_IMAGE


@pytest.mark.parametrize(
    ("model", "end_to_end"), [("yolov8n-seg", False), ("yolo26n-seg", False), ("yolo26n-seg", True)]
)
def test_masks_are_about_half_of_their_boxes(model: str, end_to_end: bool) -> None:
    detector, batches = build_detector(find_model(model), seed=0), _pictures(2)
    calibration.calibrate(detector, batches, 0.25)
    detector.module.end2end = end_to_end  # type: ignore[assignment]
    detector.end_to_end = end_to_end
    with torch.inference_mode():
        for batch in batches:
            (predictions, prototypes), _ = detector.module(batch)
            (rows,) = postprocessing.suppress(detector, predictions, 0.25, 0.45)
            logits = rows[:, 6:] @ prototypes[0].flatten(1)
            assert len(rows) >= 5 and 0.25 < float((logits > 0).float().mean()) < 0.75


def test_a_classifier_gets_its_statistics_alone() -> None:
    detector = build_detector(find_model("yolov8n-cls"), seed=0)
    before = {name: value.clone() for name, value in detector.module.named_parameters()}
    calibration.calibrate(detector, _pictures(2), 0.25)
    changed = {name for name, value in detector.module.named_parameters() if not torch.equal(value, before[name])}
    assert changed and all(name.endswith("bn.bias") for name in changed)


def test_objectness_and_class_share_the_work() -> None:
    from hwprof.workload.anchor_head import Detect

    torch.manual_seed(0)
    head = Detect(80, [[10, 13, 16, 30, 33, 23]], [8], [16])

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = nn.Sequential(nn.Conv2d(3, 16, 3, stride=8, padding=1), nn.BatchNorm2d(16), head)

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, list[torch.Tensor]]:
            y: tuple[torch.Tensor, list[torch.Tensor]] = head([self.model[1](self.model[0](x))])
            return y

    detector = Detector(Model().eval().requires_grad_(False), 8, {}, objectness=True, end_to_end=False)
    batches = [torch.rand(1, 3, 128, 128)]
    calibration.calibrate(detector, batches, 0.25)
    with torch.inference_mode():
        decoded, _ = detector.module(batches[0])
    best = decoded[0, :, 5:].amax(dim=1)
    score = decoded[0, :, 4] * best
    assert float(best.median()) == pytest.approx(calibration.LIKELY_CLASS, abs=0.02)
    assert int((score > 0.25).sum()) == pytest.approx(76, abs=1)  # a tenth of the 3·16·16 anchors


def test_calibrates_on_a_bounded_number_of_images(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    monkeypatch.setattr(calibration, "calibrate_batch_norm", lambda model, inputs: seen.append(len(inputs)))
    detector = build_detector(find_model("yolov8n"), seed=0)
    calibration.calibrate(detector, [torch.rand(5, 3, 64, 64)] * 3, 0.25)
    assert seen == [calibration.MOST_IMAGES]
