"""Models for masks, poses, rotated boxes and classes: published figures, fusing, checkpoints, and whole runs."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
import torch

from hwprof.run.directory import RunDirectory
from hwprof.workload.detector import Detector, build_detector
from hwprof.workload.factory import build
from hwprof.workload.libraries import require_ultralytics
from hwprof.workload.model_registry import find_model
from hwprof.workload.recognition import recognise
from hwprof.workload.spec import WorkloadSpec
from hwprof.workload.tensors import tensors_in
from tests.support.command import hwprof
from tests.support.requirements import require_module


@pytest.fixture(scope="module", autouse=True)
def _libraries() -> None:
    require_module("ultralytics")


@pytest.mark.parametrize(
    ("model", "millions"),  # of parameters, as ultralytics' documentation has them for the models it publishes
    [
        ("yolov8n-seg", 3.4), ("yolov8n-pose", 3.3), ("yolov8n-obb", 3.1), ("yolov8n-cls", 2.7), ("yolov8s-seg", 11.8),
        ("yolo11n-seg", 2.9), ("yolo11n-pose", 2.9), ("yolo11n-obb", 2.7), ("yolo26n-seg", 2.7), ("yolo26n-pose", 2.9),
        ("yolo26n-obb", 2.5), ("yolo26n-cls", 2.8),
    ],
)  # fmt: skip
def test_parameters_are_the_published_ones_and_those_that_ultralytics_counts(model: str, millions: float) -> None:
    detector = build_detector(find_model(model), seed=0, draw=False)
    detector.fuse()
    number = sum(parameter.numel() for parameter in detector.module.parameters())
    count: Any = require_ultralytics("utils.torch_utils").get_num_params
    assert number == count(detector.module)
    assert number / 1e6 == pytest.approx(millions, abs=0.051)


@pytest.mark.parametrize(
    "model",
    ["yolov8n-seg", "yolov8n-pose", "yolov8n-obb", "yolov8n-cls", "yolo26n-seg", "yolo26n-pose", "yolo26n-obb"],
)
def test_a_fused_model_gives_what_the_unfused_one_gives(model: str) -> None:
    def first(fuse: bool) -> list[torch.Tensor]:
        workload = build(WorkloadSpec(model=model, imgsz=128, fuse=fuse))
        workload.prepare()
        with torch.inference_mode():
            return list(tensors_in(workload.forwards()[0].run()[0]))

    for fused, unfused in zip(first(True), first(False), strict=True):
        assert float((fused - unfused).abs().max() / unfused.abs().max()) < 1e-3


def _trained(name: str, names: dict[int, str], **size: Any) -> Detector:
    """As a training script leaves it: classes of its own, in half precision, with the layout that it was made of."""
    detector = build_detector(find_model(name), seed=3, classes=len(names), **size)
    detector.module.names = names  # type: ignore[assignment]
    detector.module.half()
    return detector


@pytest.mark.parametrize(
    ("name", "size", "told"),
    [
        ("yolov8n-seg", {}, "mask"),
        ("yolo11n-pose", {"keypoints": (5, 2)}, "pose"),
        ("yolov8n-obb", {}, "rotated box"),
        ("yolo26n-seg", {}, "mask"),
        ("yolov8n-cls", {}, "top-1 "),
    ],
)
def test_a_whole_checkpoint_tells_its_model_its_classes_and_its_keypoints(
    name: str, size: dict[str, Any], told: str, tmp_path: Path
) -> None:
    names = {0: "cat", 1: "dog", 2: "emu"}
    source = _trained(name, names, **size)
    file = tmp_path / "best.pt"
    torch.save({"model": source.module, "ema": None, "train_args": {"task": "any"}}, file)
    assert recognise(file) == name
    workload: Any = build(WorkloadSpec(model=name, weights=str(file), imgsz=64, conf=0.0))
    workload.prepare()
    workload.iterate(lambda stage: contextlib.nullcontext(), None)
    assert all(told in line and any(one in line for one in names.values()) for line in workload.results())
    source.module.float()
    with torch.inference_mode():
        call = workload.forwards()[0]
        expected, actual = (list(tensors_in(module(*call.arguments)[0])) for module in (source.module, call.module))
    for one, other in zip(expected, actual, strict=True):
        assert float((one - other).abs().max() / one.abs().max()) < 1e-3
    if size:
        assert tuple(workload._detector.head.kpt_shape) == size["keypoints"]


def test_weights_of_another_task_do_not_fit(tmp_path: Path) -> None:
    file = tmp_path / "best.pt"
    torch.save(build_detector(find_model("yolov8n-pose"), 0, draw=False).module.state_dict(), file)
    done = hwprof("layers", "--model", "yolov8n-seg", "--weights", str(file), "--imgsz", "64")
    assert done.returncode == 2 and "do not fit the model" in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("model", "stage", "told"),
    [
        ("yolov8n-seg", "masks", " masks"),
        ("yolov8n-pose", "keypoints", " pose"),
        ("yolov8n-obb", "nms", " rotated box"),
        ("yolov8n-cls", "topk", " top-1 class "),
    ],
)
def test_a_whole_run(model: str, stage: str, told: str, tmp_path: Path) -> None:
    done = hwprof(
        *("collect", "--model", model, "--imgsz", "64", "--iterations", "2", "--warmup", "1"),
        *("--passes", "measure", "--no-peaks", "--threads", "1"),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    run = RunDirectory.latest(tmp_path / "results")
    workload = run.manifest.workload
    assert workload is not None and all(told in line for line in workload.results), workload
    assert len(list((run.path / "images").glob("*.jpg"))) == 2
    report = hwprof("report", "--all", cwd=tmp_path).stdout
    assert f"  {stage} " in report and workload.results[0].split(": ")[0] in report
