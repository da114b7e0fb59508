"""Cameras: there is none here, so OpenCV's capture is one that a test makes up."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hwprof.errors import HwprofError, UsageError
from hwprof.workload.libraries import require_cv2
from hwprof.workload.preprocessing import Shape
from hwprof.workload.sources import camera, finding
from hwprof.workload.sources.camera import Camera
from hwprof.workload.sources.image_sample import FEW
from hwprof.workload.sources.kept_frames import KeptFrames
from hwprof.workload.spec import WorkloadSpec
from tests.support.recorded_stages import RecordedStages


def shape_of(sizes: Sequence[tuple[int, int]]) -> Shape:
    raise AssertionError("frames are of one size")


def pixels(shape: Shape) -> int:
    raise AssertionError("frames are alike")


class FakeCapture:
    """Gives frames of a level each, the next one whoever asks."""

    opened: list[tuple[int, ...]] = []  # noqa: RUF012 one list for all
    sizes: dict[int, tuple[int, int]] = {}  # noqa: RUF012 of frames by number, where they are others
    frames = 1000
    given = 0

    def __init__(self, *arguments: int) -> None:
        self.opened.append(arguments)
        self.released = False

    def read(self) -> tuple[bool, Any]:
        number = type(self).given
        if number >= self.frames:
            return False, None
        type(self).given += 1
        return True, np.full((*self.sizes.get(number, (20, 30)), 3), number, np.uint8)

    def get(self, _: int) -> float:
        return 30.0

    def release(self) -> None:
        self.released = True


@pytest.fixture
def capture(monkeypatch: pytest.MonkeyPatch) -> type[FakeCapture]:
    class Capture(FakeCapture):
        opened: list[tuple[int, ...]] = []  # noqa: RUF012
        sizes: dict[int, tuple[int, int]] = {}  # noqa: RUF012

    monkeypatch.setattr(require_cv2(), "VideoCapture", Capture)
    return Capture


@pytest.fixture
def kept() -> Iterator[int]:
    with tempfile.TemporaryFile() as file:
        yield file.fileno()


def levels(batches: Sequence[Sequence[Any]]) -> list[int]:
    return [int(image[0, 0, 0]) for images in batches for image in images]


def test_frames_are_kept_in_memory_and_the_same_each_time(capture: type[FakeCapture], stages: RecordedStages) -> None:
    source = Camera(2, 3, all_frames=False)
    assert source.few(shape_of).batches == [3] * FEW
    found = source.take(range(5, 11), pixels)
    assert levels(list(found.read(stages))) == levels(list(found.read(stages))) == list(range(15))
    assert stages.begun == [], "reading is in no figure"
    assert capture.opened == [(2, require_cv2().CAP_V4L2)]
    assert found.names[0] == ["camera:2#0", "camera:2#1", "camera:2#2"] and len(found.sources) == 15
    assert "15 frames were kept in memory" in found.notes[0] and "in no figure" in found.notes[0]
    told = source.described()
    assert (told.width, told.height, told.fps, told.frames) == (30, 20, 30.0, None)


def test_the_next_pass_has_the_frames_of_the_first(
    capture: type[FakeCapture], stages: RecordedStages, kept: int
) -> None:
    first = Camera(0, 1, all_frames=False, kept=KeptFrames(kept))
    first.few(shape_of)
    whole = list(first.take(range(6, 7), pixels).read(stages))
    second = Camera(0, 1, all_frames=False, kept=KeptFrames(kept))
    second.few(shape_of)
    assert levels(list(second.take(range(6, 7), pixels).read(stages))) == levels(whole) == list(range(6))
    assert len(capture.opened) == 1


def test_frames_that_are_cut_short(kept: int) -> None:
    import os

    KeptFrames(kept).save([np.zeros((20, 30, 3), np.uint8)] * 2)
    assert KeptFrames(kept).available
    os.truncate(kept, os.fstat(kept).st_size - 1)
    with pytest.raises(HwprofError, match="are cut short"):
        KeptFrames(kept).load()


def test_weights_and_frames_share_a_file(kept: int) -> None:
    from torch import nn

    from hwprof.workload.shared_weights import SharedWeights

    frames, model, other = [np.full((4, 5, 3), 7, np.uint8)], nn.Linear(3, 2), nn.Linear(3, 2)
    shared = SharedWeights(kept)
    shared.frames.save(frames)
    shared.save(model)
    shared.confirm("checked", fused=True)
    SharedWeights(kept).load(other)
    assert other.weight.equal(model.weight)
    assert (SharedWeights(kept).frames.load()[0] == 7).all()


def test_there_is_no_such_camera(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    """With OpenCV's own capture, which says a lot about it."""
    monkeypatch.setattr(camera, "DEVICES", tmp_path)
    with pytest.raises(UsageError, match=r"there is no camera .*video999\. Try: connect one") as caught:
        Camera(999, 1, all_frames=False).few(shape_of)
    assert "\n" not in str(caught.value)
    assert capfd.readouterr() == ("", "")
    for name in ("video10", "video2", "video2b"):
        (tmp_path / name).touch()
    with pytest.raises(UsageError, match=r"Try: camera:2 or camera:10$"):
        Camera(999, 1, all_frames=False).few(shape_of)
    (tmp_path / "video999").touch()
    with pytest.raises(UsageError, match=r"camera:999 .*gives no frame"):
        Camera(999, 1, all_frames=False).few(shape_of)


def test_a_camera_that_stops(capture: type[FakeCapture]) -> None:
    capture.frames = 2
    with pytest.raises(HwprofError, match="camera:0 gave 2 frames and no more"):
        Camera(0, 1, all_frames=False).few(shape_of)


def test_a_camera_that_changes_its_size(capture: type[FakeCapture]) -> None:
    capture.sizes[2] = (40, 30)
    with pytest.raises(HwprofError, match="camera:0 gives frames of several sizes"):
        Camera(0, 1, all_frames=False).few(shape_of)


def test_more_frames_than_memory_is_taken_for(capture: type[FakeCapture], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(camera, "MOST_BYTES", 100 * 20 * 30 * 3)
    source = Camera(0, 10, all_frames=False)
    source.few(shape_of)
    assert source.more().batches == 10
    with pytest.raises(UsageError, match="a smaller --batch"):
        Camera(0, 100, all_frames=False).few(shape_of)


def test_a_camera_has_no_last_frame() -> None:
    with pytest.raises(UsageError, match="--all-images: a camera has no last frame"):
        finding.find_source(WorkloadSpec(model="yolov8n", source="camera:0", all_images=True))


@pytest.mark.parametrize("named", ["camera:3", "/dev/video3"])
def test_how_a_camera_is_named(named: str, capture: type[FakeCapture]) -> None:
    source = finding.find_source(WorkloadSpec(model="yolov8n", source=named))
    source.few(shape_of)
    assert capture.opened[0][0] == 3
