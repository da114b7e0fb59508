from __future__ import annotations

import os
import tempfile
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from hwprof.errors import HwprofError
from hwprof.workload.sources.annotated_video import USUAL_FPS, AnnotatedVideo
from tests.support.videos import STEP, fps_of, frames_of, level


def written(video: AnnotatedVideo, frames: int, size: tuple[int, int] = (64, 48)) -> None:
    with closing(video):
        for number in range(frames):
            video.write(np.full((size[1], size[0], 3), level(number), np.uint8))


@pytest.mark.parametrize("fps", [5.0, 23.976, 29.97, 60.0, 240.0])
def test_as_many_frames_of_the_same_size_and_rate(fps: float, tmp_path: Path) -> None:
    written(AnnotatedVideo(tmp_path, "clip", fps, 9), 9)
    found = frames_of(tmp_path / "clip.mp4")
    assert [float(frame.mean()) for frame in found] == pytest.approx(
        [level(number) for number in range(9)], abs=STEP / 2 - 1
    )
    assert {frame.shape for frame in found} == {(48, 64, 3)}
    assert fps_of(tmp_path / "clip.mp4") == pytest.approx(fps, rel=1e-3)


def test_sizes_are_even_and_a_rate_is_made_up_where_there_is_none(tmp_path: Path) -> None:
    written(AnnotatedVideo(tmp_path, "clip", None, 3), 3, size=(63, 47))
    assert {frame.shape for frame in frames_of(tmp_path / "clip.mp4")} == {(46, 62, 3)}
    assert fps_of(tmp_path / "clip.mp4") == USUAL_FPS


def test_nothing_is_kept_where_no_folder_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    written(AnnotatedVideo(None, "clip", 25.0, 3), 3)
    assert not list(tmp_path.iterdir())
    assert capfd.readouterr() == ("", "")


def test_a_temporary_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(HwprofError, match=r"cannot encode a video: No such file.*TMPDIR"):
        written(AnnotatedVideo(None, "clip", 25.0, 3), 3)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(HwprofError, match=r"cannot write .*clip\.mp4: its folder is not there"):
        written(AnnotatedVideo(tmp_path / "nowhere", "clip", 25.0, 3), 3)


def test_a_video_that_a_full_disk_has_cut_is_told(tmp_path: Path) -> None:
    video = AnnotatedVideo(tmp_path, "clip", 25.0, 3)
    for number in range(3):
        video.write(np.full((48, 64, 3), level(number), np.uint8))
    os.truncate(tmp_path / "clip.mp4", 100)
    with pytest.raises(HwprofError, match=r"cannot write .*clip\.mp4: 0 of 3 frames are there"):
        video.close()


def test_an_iteration_that_was_broken_off_says_nothing_of_its_video(tmp_path: Path) -> None:
    written(AnnotatedVideo(tmp_path, "clip", 25.0, 30), 3)
    assert len(frames_of(tmp_path / "clip.mp4")) == 3


def test_frames_that_cannot_be_encoded(tmp_path: Path) -> None:
    with pytest.raises(HwprofError, match="cannot encode a video of 1x1 pixels at 25 fps"):
        written(AnnotatedVideo(tmp_path, "clip", 25.0, 1), 1, size=(1, 1))
