from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from hwprof.errors import HwprofError, UsageError
from hwprof.workload import yolo
from hwprof.workload.calibration import CANDIDATES_PER_IMAGE
from hwprof.workload.detector import Detector, build_detector
from hwprof.workload.factory import build
from hwprof.workload.images import read_image
from hwprof.workload.model_registry import find_model
from hwprof.workload.pipeline import Pipeline
from hwprof.workload.protocol import Workload
from hwprof.workload.spec import WorkloadSpec
from tests.support.recorded_stages import RecordedStages


@pytest.fixture(scope="module")
def spec(pictures: Path) -> WorkloadSpec:
    return WorkloadSpec(model="yolov8n", source=str(pictures), imgsz=128)


@pytest.fixture(scope="module")
def workload(spec: WorkloadSpec) -> Workload:
    workload = build(spec)
    workload.prepare()
    return workload


@pytest.fixture(scope="module")
def detector() -> Detector:
    return build_detector(find_model("yolov8n"), seed=0)


def test_the_record_says_what_is_measured(spec: WorkloadSpec, pictures: Path) -> None:
    record = build(spec).prepare()
    assert (record.name, record.kind, record.weights, record.fused) == ("yolov8n", "yolo", "random (seed 0)", True)
    assert (record.parameters, record.parameters_unfused) == (3_151_904, 3_157_200)
    assert record.input_shapes == ["1x3x96x128", "1x3x128x64"]
    assert record.sources == [str(pictures / name) for name in ("a.png", "b.jpg", "tall.png")]
    assert record.threads == torch.get_num_threads()
    assert record.options == {"imgsz": 128, "conf": 0.25, "iou": 0.45, "seed": 0}
    assert "random weights" in record.notes[0]


def test_an_iteration_takes_each_image_through_every_stage(workload: Workload, stages: RecordedStages) -> None:
    workload.iterate(stages, None)
    assert stages.begun == ["load", "preprocess", "inference", "postprocess", "postprocess/nms", "save"] * 3


def test_results_name_image_input_and_boxes(workload: Workload, stages: RecordedStages) -> None:
    workload.iterate(stages, None)
    first = workload.results()
    assert [line.split(": ")[0] for line in first] == ["a.png 96x128", "b.jpg 96x128", "tall.png 128x64"]
    counts = [int(line.split(": ")[1].split(" box")[0]) for line in first]
    assert min(counts) > 0
    workload.iterate(stages, None)
    assert workload.results() == first


def test_forwards_are_the_iterations_calls_with_one_tensor_a_shape(workload: Workload) -> None:
    calls = workload.forwards()
    assert [tuple(arguments[0].shape) for _, arguments, _ in calls] == [(1, 3, 96, 128)] * 2 + [(1, 3, 128, 64)]
    assert calls[0][1][0] is calls[1][1][0]
    assert {id(module) for module, *_ in calls} == {id(workload.modules[""])}


def test_pictures_are_written_only_where_asked(workload: Workload, stages: RecordedStages, tmp_path: Path) -> None:
    workload.iterate(stages, None)
    assert not list(tmp_path.iterdir())
    workload.iterate(stages, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jpg", "b.jpg", "tall.jpg"]
    assert read_image(tmp_path / "tall.jpg").shape == (160, 64, 3)


def test_a_folder_that_cannot_be_written(workload: Workload, stages: RecordedStages, tmp_path: Path) -> None:
    with pytest.raises(HwprofError, match=r"cannot write .*a\.jpg: No such file or directory"):
        workload.iterate(stages, tmp_path / "nowhere")


def test_equal_names_do_not_overwrite_each_other(pictures: Path, stages: RecordedStages, tmp_path: Path) -> None:
    source, target = tmp_path / "in", tmp_path / "out"
    for folder in ("one", "two"):
        (source / folder).mkdir(parents=True)
        (source / folder / "a.png").write_bytes((pictures / "a.png").read_bytes())
    target.mkdir()
    workload = build(WorkloadSpec(model="yolov8n", source=f"{source}/*/a.png", imgsz=64))
    workload.prepare()
    workload.iterate(stages, target)
    assert sorted(path.name for path in target.iterdir()) == ["0000-a.jpg", "0001-a.jpg"]


def test_batches_of_equal_shapes_stay_rectangular_and_others_become_square(pictures: Path) -> None:
    record = build(WorkloadSpec(model="yolov8n", source=str(pictures), imgsz=128, batch=2)).prepare()
    assert record.input_shapes == ["2x3x96x128", "1x3x128x64"]
    record = build(WorkloadSpec(model="yolov8n", source=str(pictures), imgsz=128, batch=3)).prepare()
    assert (record.input_shapes, record.batch) == (["3x3x128x128"], 3)


def test_an_image_size_off_the_stride_is_rounded_up_and_said(pictures: Path) -> None:
    record = build(WorkloadSpec(model="yolov8n", source=str(pictures / "a.png"), imgsz=100)).prepare()
    assert (record.input_shapes, record.options["imgsz"]) == (["1x3x96x128"], 128)
    assert "100 is no multiple of the model's stride 32: 128 is used" in record.notes[0]


def test_the_smallest_image_size_works(pictures: Path, stages: RecordedStages) -> None:
    workload = build(WorkloadSpec(model="yolov8n", source=str(pictures), imgsz=32))
    workload.prepare()
    workload.iterate(stages, None)
    assert len(workload.results()) == 3


def test_unfused_keeps_batch_normalisation(pictures: Path) -> None:
    workload = build(WorkloadSpec(model="yolov8n", source=str(pictures), imgsz=64, fuse=False))
    record = workload.prepare()
    assert (record.fused, record.parameters) == (False, record.parameters_unfused)
    assert any(isinstance(module, nn.BatchNorm2d) for module in workload.modules[""].modules())


def test_letterbox_scales_centres_and_pads_with_grey(detector: Detector) -> None:
    pipeline = Pipeline(detector, 128, 0.25, 0.45)
    image = np.zeros((100, 200, 3), dtype=np.uint8)
    image[..., 2] = 255  # red
    batch = pipeline.preprocess([image])
    assert (batch.dtype, tuple(batch.shape), batch.is_contiguous()) == (torch.float32, (1, 3, 64, 128), True)
    assert batch[0, :, 32, 64].tolist() == [1.0, 0.0, 0.0]
    square = pipeline.preprocess([image, image[:50]])
    assert tuple(square.shape) == (2, 3, 128, 128)
    assert square[0, :, 10, 64].tolist() == [pytest.approx(114 / 255)] * 3
    assert square[0, :, 64, 64].tolist() == [1.0, 0.0, 0.0]


def test_weights_replace_the_random_ones(pictures: Path, stages: RecordedStages, tmp_path: Path) -> None:
    source = build_detector(find_model("yolov8n"), seed=9)
    source.head.cv3[0][-1].bias.fill_(3.0)  # finds the first class everywhere
    source.head.cv3[0][-1].bias[1:] = -9.0
    torch.save({"model": source.module.half()}, tmp_path / "trained.pt")
    spec = WorkloadSpec(
        model="yolov8n", source=str(pictures / "a.png"), imgsz=64, weights=str(tmp_path / "trained.pt"), iou=0.0
    )
    workload = build(spec)
    record = workload.prepare()
    assert (record.weights, record.fused) == (str(tmp_path / "trained.pt"), True)
    assert not [note for note in record.notes if "random" in note]
    workload.iterate(stages, None)
    (result,) = workload.results()
    assert result.startswith("a.png 64x64: ") and "person" in result
    assert record.weights_unsound is None


def test_weights_that_are_no_numbers_are_told(pictures: Path, tmp_path: Path) -> None:
    state = build_detector(find_model("yolov8n"), seed=9, draw=False).module.state_dict()
    known = [value for value in state.values() if value.is_floating_point()]
    for value in known:
        value.fill_(math.nan)
    torch.save(state, tmp_path / "nan.pt")
    spec = WorkloadSpec(model="yolov8n", source=str(pictures), imgsz=64, weights=str(tmp_path / "nan.pt"))
    assert f"{len(known)} of {len(known)} tensors" in str(build(spec).prepare().weights_unsound)


def test_a_fused_checkpoint_is_seen_as_such(pictures: Path, tmp_path: Path) -> None:
    source = build_detector(find_model("yolov8n"), seed=9)
    source.fuse()
    torch.save(source.module.state_dict(), tmp_path / "fused.pt")
    spec = WorkloadSpec(model="yolov8n", source=str(pictures), imgsz=64, weights=str(tmp_path / "fused.pt"), fuse=False)
    assert build(spec).prepare().fused


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"batch": 0}, "--batch 0"),
        ({"imgsz": 0}, "--imgsz 0"),
        ({"conf": 1.5}, "--conf 1.5: a threshold lies between 0 and 1"),
        ({"iou": -0.1}, "--iou -0.1"),
        ({"model": "yolov8y"}, "there is no model yolov8y"),
        ({"source": "nowhere.jpg"}, "there is no file or folder nowhere.jpg"),
        ({"weights": "nowhere.pt"}, "there is no weights file nowhere.pt"),
    ],
)
def test_senseless_requests_are_usage_errors(changes: dict[str, object], message: str) -> None:
    spec = WorkloadSpec(**{"model": "yolov8n", "imgsz": 64, **changes})  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=message):
        build(spec).prepare()


def test_a_broken_image_is_known_before_measuring(pictures: Path, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes((pictures / "a.png").read_bytes())
    (tmp_path / "b.jpg").write_bytes(b"not a picture")
    with pytest.raises(HwprofError, match=r"b\.jpg is not an image"):
        build(WorkloadSpec(model="yolov8n", source=str(tmp_path), imgsz=64)).prepare()


def _refuse(*arguments: object) -> None:
    raise RuntimeError("sizes must match\nlong explanation")


def test_an_input_refused_while_preparing_is_told_in_one_line(
    spec: WorkloadSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(yolo, "calibrate", _refuse)
    with pytest.raises(
        HwprofError, match=r"yolov8n refuses the input 1x3x96x128.*: RuntimeError: sizes must match .*\. Try"
    ) as caught:
        build(spec).prepare()
    assert "\n" not in str(caught.value)


def test_an_input_refused_while_measuring_is_told_in_one_line(
    workload: Workload, stages: RecordedStages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workload.modules[""], "forward", _refuse)
    with pytest.raises(
        HwprofError, match=r"refuses the input 1x3x96x128: RuntimeError: sizes must match .*\. Try: "
    ) as caught:
        workload.iterate(stages, None)
    assert "\n" not in str(caught.value)


def test_the_note_on_random_weights_promises_no_number_of_candidates() -> None:
    (note,) = yolo.notes_of(WorkloadSpec(model="yolov8n"), find_model("yolov8n").task, asked=640, stride=32)
    assert f"up to about {CANDIDATES_PER_IMAGE} candidates" in note
