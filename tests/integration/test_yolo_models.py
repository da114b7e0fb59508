"""YOLOv7 and a few of ultralytics' models on real photographs: published figures, healthy activations, pictures."""

from __future__ import annotations

import contextlib
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from torch import nn

from hwprof.workload.factory import build
from hwprof.workload.images import read_image
from hwprof.workload.layer_tables import layer_tables
from hwprof.workload.protocol import Workload
from hwprof.workload.sources.image_paths import find_images
from hwprof.workload.spec import WorkloadSpec
from tests.support.requirements import require_module

SMALLEST_NORMAL = torch.finfo(torch.float32).tiny


@pytest.fixture(scope="module", autouse=True)
def _libraries() -> None:
    require_module("ultralytics")


@pytest.fixture(scope="module")
def square(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The photograph of the bus, cut to a square: 640x640 after letterboxing."""
    import cv2

    path = tmp_path_factory.mktemp("square") / "square.png"
    image = read_image(find_images(None)[0])
    side = min(image.shape[:2])
    cv2.imwrite(str(path), image[:side, :side])
    return path


@pytest.mark.parametrize(
    ("model", "gflops", "modules"),
    [
        ("yolov7", 104.7, 106),  # what the original prints for its fused model at 640x640
        ("yolov8n", 8.7, 23),  # ultralytics' documentation
        ("yolo11n", 6.5, 24),
        ("yolov9c", 102.1, 23),
    ],
)
def test_arithmetic_is_the_published_one(model: str, gflops: float, modules: int, square: Path) -> None:
    workload = build(WorkloadSpec(model=model, source=str(square)))
    assert workload.prepare().input_shapes == ["1x3x640x640"]
    table = layer_tables(workload)[0]
    top = table.filter(pl.col("path").str.contains(r"^model\.\d+$"))
    assert top["index"].sort().to_list() == list(range(modules))
    total = int(top["macs"].sum())
    assert 2 * total / 1e9 == pytest.approx(gflops, rel=0.01)
    leaves = table.filter(pl.col("leaf"))
    outside_leaves = total - int(leaves["macs"].sum())  # attention multiplies matrices itself
    assert outside_leaves == 0 if model != "yolo11n" else outside_leaves > 0
    assert leaves.filter((pl.col("calls") > 0) & (pl.col("bytes") <= 0)).is_empty()


@cache
def _prepared(model: str, imgsz: int) -> Workload:
    workload = build(WorkloadSpec(model=model, imgsz=imgsz))
    workload.prepare()
    return workload


@pytest.mark.parametrize(
    ("model", "imgsz"),
    [("yolov7", 320), ("yolov8n", 320), ("yolo12n", 320), ("yolo26n-seg", 320), ("yolov8n-cls", 224)],
)
def test_random_weights_keep_activations_normal(model: str, imgsz: int) -> None:
    """Denormal numbers cost a processor a hundred times a normal one's time: not one may occur."""
    workload = _prepared(model, imgsz)
    denormal: dict[str, int] = {}
    spread: dict[str, float] = {}

    def watch(name: str, watched: nn.Module) -> torch.utils.hooks.RemovableHandle:
        def hook(module: nn.Module, arguments: object, output: object) -> None:
            if not isinstance(output, torch.Tensor):
                return
            magnitude = output.abs()
            denormal[name] = denormal.get(name, 0) + int(((magnitude > 0) & (magnitude < SMALLEST_NORMAL)).sum())
            if isinstance(module, nn.Conv2d):
                spread[name] = float(output.std())

        return watched.register_forward_hook(hook)

    handles = [watch(name, module) for name, module in workload.modules[""].named_modules()]
    with torch.inference_mode():
        for call in workload.forwards():
            call.run()
    for handle in handles:
        handle.remove()
    assert len(spread) > 25
    assert {name: count for name, count in denormal.items() if count} == {}
    outside = {name: value for name, value in spread.items() if not 0.02 < value < 20}
    assert not outside, f"of {len(spread)} convolutions"


@pytest.mark.parametrize("model", ["yolov7", "yolov8n"])
def test_both_photographs_give_boxes_that_are_drawn(model: str, tmp_path: Path) -> None:
    workload = _prepared(model, 320)
    workload.iterate(lambda name: contextlib.nullcontext(), tmp_path)
    counts = [int(line.split(": ")[1].split()[0]) for line in workload.results()]
    assert all(5 <= count <= 300 for count in counts), counts
    assert [line.split(":")[0] for line in workload.results()] == ["bus.jpg 320x256", "zidane.jpg 192x320"]
    for drawn, source in zip(sorted(tmp_path.iterdir()), find_images(None), strict=True):
        original, picture = read_image(source), read_image(drawn)
        assert picture.shape == original.shape
        changed = (np.abs(picture.astype(int) - original.astype(int)).max(axis=2) > 60).mean()
        assert 0.002 < changed < 0.9, "boxes are drawn, and the photograph is still there"


def test_the_original_state_dict_fits_strictly(tmp_path: Path) -> None:
    """Through a file, as a user gives it: another seed's weights in the original's names, unfused, then fused."""
    from hwprof.workload.detector import build_detector
    from hwprof.workload.model_registry import find_model

    source = build_detector(find_model("yolov7"), seed=3)
    torch.save({"model": source.module.half().state_dict()}, tmp_path / "yolov7.pt")
    spec = WorkloadSpec(model="yolov7", weights=str(tmp_path / "yolov7.pt"), imgsz=64)
    workload = build(spec)
    assert workload.prepare().parameters == 36_905_341
    source.module.float()
    ((module, arguments, _), *_) = workload.forwards()
    with torch.inference_mode():
        expected, _ = source.module(*arguments)
        actual, _ = module(*arguments)
    torch.testing.assert_close(actual, expected, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("name", ["yolov5n", "yolov7-tiny", "yolov8n"])
def test_a_checkpoint_of_other_classes_is_loaded_with_its_own(name: str, tmp_path: Path) -> None:
    """As somebody trained it for three classes: names and number are the file's."""
    from hwprof.workload.detector import build_detector
    from hwprof.workload.model_registry import find_model
    from hwprof.workload.yolo import YoloWorkload

    source = build_detector(find_model(name), seed=3, classes=3)
    names = ["cat", "dog", "emu"]
    torch.save({"model": source.module.half().state_dict(), "names": names}, tmp_path / "best.pt")
    workload = build(WorkloadSpec(model=name, weights=str(tmp_path / "best.pt"), imgsz=64))
    assert workload.prepare().fused
    assert isinstance(workload, YoloWorkload) and workload._detector.names == dict(enumerate(names))
    source.module.float()
    ((module, arguments, _), *_) = workload.forwards()
    with torch.inference_mode():
        expected, actual = source.module(*arguments)[0], module(*arguments)[0]
    assert float((actual - expected).abs().max() / expected.abs().max()) < 1e-3
