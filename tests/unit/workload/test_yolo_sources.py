"""The pipeline over videos, cameras and datasets."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest

from hwprof.errors import UsageError
from hwprof.run.manifest import WorkloadRecord
from hwprof.workload import yolo
from hwprof.workload.detector import build_detector
from hwprof.workload.factory import build
from hwprof.workload.fingerprint import fingerprint
from hwprof.workload.libraries import require_cv2
from hwprof.workload.model_registry import find_model
from hwprof.workload.shared_weights import SharedWeights
from hwprof.workload.spec import WorkloadSpec
from tests.support.recorded_stages import RecordedStages
from tests.support.videos import fps_of, frames_of, write_video


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_video(tmp_path_factory.mktemp("videos") / "clip.mp4", frames=11, size=(96, 64), fps=12.5)


def prepared(source: Path | str, **options: object) -> tuple[yolo.YoloWorkload, WorkloadRecord]:
    workload = build(WorkloadSpec(model="yolov8n", source=str(source), imgsz=64, **options))  # type: ignore[arg-type]
    assert isinstance(workload, yolo.YoloWorkload)
    return workload, workload.prepare()


def test_each_frame_goes_through_every_stage_into_a_video(clip: Path, stages: RecordedStages, tmp_path: Path) -> None:
    workload, record = prepared(clip, all_images=True)
    workload.iterate(stages, None)
    one_frame = ["read", "preprocess", "inference", "postprocess", "postprocess/nms", "save"]
    assert stages.begun == ["open"] + one_frame * 11
    assert (record.forwards, record.images_there, len(record.sources)) == (11, None, 11)
    assert record.input_shapes == ["1x3x64x64"]
    assert record.video is not None
    assert (record.video.width, record.video.height, record.video.frames, record.video.fps) == (96, 64, 11, 12.5)
    before = workload.results()
    assert [line.split()[0] for line in before] == [f"clip.mp4#{number}" for number in range(11)]
    workload.iterate(stages, tmp_path)
    assert workload.results() == before
    assert [path.name for path in tmp_path.iterdir()] == ["clip.mp4"]
    drawn = frames_of(tmp_path / "clip.mp4")
    assert ({frame.shape for frame in drawn}, len(drawn)) == ({(64, 96, 3)}, 11)
    assert fps_of(tmp_path / "clip.mp4") == 12.5


def test_a_batch_has_successive_frames(clip: Path, stages: RecordedStages, tmp_path: Path) -> None:
    workload, record = prepared(clip, batch=4, all_images=True)
    workload.iterate(stages, tmp_path)
    assert (record.forwards, len(record.sources)) == (3, 11)
    assert record.input_shapes == ["4x3x64x64", "3x3x64x64"]
    assert [stages.begun.count(name) for name in ("open", "read", "inference", "save")] == [1, 3, 3, 3]
    assert len(frames_of(tmp_path / "clip.mp4")) == 11


def test_as_many_frames_as_another_pass_took(clip: Path) -> None:
    workload, record = prepared(clip, forwards=6)
    assert (record.forwards, record.images_there, record.sources[-1]) == (6, 11, f"{clip}#5")
    assert len(workload.forwards()) == 6
    assert prepared(clip, forwards=6)[1] == record


def test_as_many_frames_as_take_a_second(clip: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yolo, "enough", lambda batches, shapes, once_s, calls: 8 if shapes == 1 else 0)
    assert prepared(clip)[1].forwards == 8


def test_the_layer_table_needs_one_frame(clip: Path) -> None:
    workload = build(WorkloadSpec(model="yolov8n", source=str(clip), imgsz=64))
    assert workload.prepare(values=False).forwards == 1


def test_a_broken_video_is_known_before_measuring(tmp_path: Path) -> None:
    (tmp_path / "clip.mp4").write_text("no video")
    with pytest.raises(UsageError, match=r"clip\.mp4 is not a video"):
        prepared(tmp_path / "clip.mp4")


def test_images_are_no_video(pictures: Path) -> None:
    assert prepared(pictures)[1].video is None


class _Camera:
    """Gives noise, another one each time."""

    random = np.random.default_rng(0)

    def __init__(self, *_: int) -> None:
        pass

    def read(self) -> tuple[bool, object]:
        return True, self.random.integers(0, 255, (48, 64, 3), dtype=np.uint8)

    def get(self, _: int) -> float:
        return 0.0

    def release(self) -> None:
        pass


def test_everything_behind_a_camera_is_timed(monkeypatch: pytest.MonkeyPatch, stages: RecordedStages) -> None:
    monkeypatch.setattr(require_cv2(), "VideoCapture", _Camera)
    workload, record = prepared("camera:0", forwards=5)
    workload.iterate(stages, None)
    assert stages.begun == ["preprocess", "inference", "postprocess", "postprocess/nms", "save"] * 5
    assert record.sources == [f"camera:0#{number}" for number in range(5)]
    assert any("reading the camera is in no figure" in note for note in record.notes)
    assert record.video is not None and record.video.fps is None
    before = workload.results()
    workload.iterate(stages, None)
    assert workload.results() == before


def test_passes_have_the_same_frames_of_a_camera(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(require_cv2(), "VideoCapture", _Camera)
    spec = WorkloadSpec(model="yolov8n", source="camera:0", imgsz=64, forwards=5)
    found = []
    with tempfile.TemporaryFile() as file:
        for _ in range(2):
            shared = SharedWeights(file.fileno())
            workload = build(spec, shared)
            workload.prepare()
            found.append(fingerprint(workload))
            shared.confirm(found[-1]["weights"], fused=True)
    assert found[0] == found[1]
    alone = build(spec)
    alone.prepare()
    assert fingerprint(alone)["inputs"] != found[0]["inputs"]


def _dataset(pictures: Path, tmp_path: Path, classes: int) -> Path:
    file = tmp_path / "data.yaml"
    names = "\n".join(f"  {number}: thing-{number}" for number in range(classes))
    file.write_text(f"path: {pictures}\nval: .\nnames:\n{names}\n")
    return file


def test_a_dataset_names_classes_where_the_model_has_as_many(pictures: Path, tmp_path: Path) -> None:
    workload, record = prepared(_dataset(pictures, tmp_path, 80))
    assert workload._detector.names[79] == "thing-79"
    assert [Path(source).name for source in record.sources] == ["a.png", "b.jpg", "tall.png"]
    workload, _ = prepared(_dataset(pictures, tmp_path, 79))
    assert workload._detector.names[0] == "person"


def test_a_checkpoints_own_names_win(pictures: Path, tmp_path: Path) -> None:
    import torch

    detector = build_detector(find_model("yolov8n"), seed=9)
    setattr(detector.module, "names", {number: f"own-{number}" for number in range(80)})  # noqa: B010 torch's types
    torch.save({"model": detector.module.half()}, tmp_path / "trained.pt")
    workload, _ = prepared(_dataset(pictures, tmp_path, 80), weights=str(tmp_path / "trained.pt"))
    assert workload._detector.names[3] == "own-3"
