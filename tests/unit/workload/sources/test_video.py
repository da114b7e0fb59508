from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from hwprof.errors import HwprofError, UsageError
from hwprof.workload.images import Image
from hwprof.workload.preprocessing import Shape
from hwprof.workload.sources import video_file
from hwprof.workload.sources.frames import TakenFrames
from hwprof.workload.sources.image_sample import FEW
from hwprof.workload.sources.video import Video
from tests.support.odd_files import device, fifo
from tests.support.recorded_stages import RecordedStages
from tests.support.videos import CODECS, STEP, level, write_video


def shape_of(sizes: Sequence[tuple[int, int]]) -> Shape:
    raise AssertionError("frames are of one size")


def pixels(shape: Shape) -> int:
    raise AssertionError("frames are alike")


def taken(path: Path, batch: int = 1, *, all_frames: bool = True) -> TakenFrames:
    return Video(path, batch, all_frames=all_frames).few(shape_of)


def levels(batches: Sequence[Sequence[Image]]) -> list[float]:
    return [float(image.mean()) for images in batches for image in images]


@pytest.mark.parametrize("name", CODECS)
def test_every_frame_comes_once_and_in_order_each_time(name: str, tmp_path: Path, stages: RecordedStages) -> None:
    found = taken(write_video(tmp_path / name))
    wanted = [level(number) for number in range(10)]
    assert levels(list(found.read(stages))) == pytest.approx(wanted, abs=STEP / 2 - 1)
    assert stages.begun == ["open"] + ["read"] * 10
    assert levels(list(found.read(stages))) == pytest.approx(wanted, abs=STEP / 2 - 1)
    assert found.names == [[f"{name}#{number}"] for number in range(10)]
    assert found.sources[9] == f"{tmp_path / name}#9"


def test_a_gif_is_a_video(tmp_path: Path, stages: RecordedStages) -> None:
    from PIL import Image as Pictures

    pictures = [Pictures.new("L", (30, 20), level(number)) for number in range(6)]
    pictures[0].save(tmp_path / "a.gif", save_all=True, append_images=pictures[1:], duration=100)
    assert levels(list(taken(tmp_path / "a.gif").read(stages))) == pytest.approx([level(n) for n in range(6)], abs=1)


def test_an_iteration_takes_the_first_frames_in_batches(tmp_path: Path, stages: RecordedStages) -> None:
    video = Video(write_video(tmp_path / "a.mp4", frames=23), 2, all_frames=False)
    assert (video.few(shape_of).batches, video.few(shape_of).there) == ([2] * FEW, 23)
    more = video.more()
    assert more is not None and more.shapes == 1
    found = video.take(range(6, 13), pixels)
    assert (found.batches, found.there, found.notes) == ([2] * 6, 23, [])
    batches = list(found.read(stages))
    assert [len(images) for images in batches] == [2] * 6
    assert levels(batches) == pytest.approx([level(number) for number in range(12)], abs=STEP / 2 - 1)
    assert stages.begun == ["open"] + ["read"] * 6


def test_all_frames_where_they_are_wanted_or_there_are_no_more(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mp4", frames=9)
    every = Video(path, 2, all_frames=True)
    assert (every.few(shape_of).batches, every.more()) == ([2, 2, 2, 2, 1], None)
    some = Video(path, 2, all_frames=False)
    assert (some.few(shape_of).batches, some.more() is not None) == ([2] * 4, True)
    assert (some.take(range(64, 65), pixels).batches, some.more()) == ([2, 2, 2, 2, 1], None)
    few = Video(path, 3, all_frames=False)
    assert (few.few(shape_of).batches, few.more()) == ([3] * 3, None)


def test_what_its_header_says(tmp_path: Path) -> None:
    video = Video(write_video(tmp_path / "a.mp4", frames=23, size=(70, 50), fps=29.97), 1, all_frames=False)
    video.few(shape_of)
    told = video.described()
    assert told is not None
    assert (told.width, told.height, told.frames, told.codec) == (70, 50, 23, "FMP4")
    assert told.fps == pytest.approx(29.97, abs=0.01)


def test_frames_are_counted_where_the_header_is_wrong(tmp_path: Path) -> None:
    """MPEG-1's streams have no number of frames: 9 are said to be there."""
    video = Video(write_video(tmp_path / "a.mpg", frames=12), 1, all_frames=True)
    assert sum(video.few(shape_of).batches) == 12
    told = video.described()
    assert told is not None and told.frames == 12


@pytest.mark.parametrize("name", ["a.avi", "a.mkv"])
def test_a_video_that_is_shorter_than_it_claims_is_taken_as_far_as_it_goes(name: str, tmp_path: Path) -> None:
    path = write_video(tmp_path / name, frames=28)
    os.truncate(path, path.stat().st_size // 2)
    found = taken(path)
    frames = sum(found.batches)
    assert 0 < frames < 28
    assert found.notes == [f"{name} ends after {frames} frames and claims 28: it may be cut or damaged"]
    assert found.there is None


def _text(path: Path) -> None:
    path.write_text("no video\n" * 100)


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _play_list(path: Path) -> None:
    """FFmpeg would open what it names."""
    path.rename(path.with_name("other.mp4"))
    path.write_text("ffconcat version 1.0\nfile other.mp4\n")


def _no_frames(path: Path) -> None:
    write_video(path.with_suffix(".avi"), frames=0).rename(path)


@pytest.mark.parametrize("broken", [_text, _empty, _cut, _play_list, _no_frames])
def test_what_is_no_video_is_told_in_one_line(
    broken: Callable[[Path], None], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = write_video(tmp_path / "a.mp4")
    broken(path)
    with pytest.raises(UsageError, match=r"a\.mp4 (is not a video|can be decoded)") as caught:
        taken(path)
    assert "\n" not in str(caught.value)
    assert capfd.readouterr() == ("", ""), "FFmpeg tells what it thinks"


@pytest.mark.parametrize("stand_in", [fifo, device])
def test_what_is_no_file_is_not_waited_for(stand_in: Callable[[Path], None], tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mp4")
    stand_in(path)
    with pytest.raises(HwprofError, match=r"cannot read .*a\.mp4: it is no regular file"):
        taken(path)


def test_a_stream_whose_second_half_has_another_size_gives_frames_of_one(
    tmp_path: Path, stages: RecordedStages
) -> None:
    """OpenCV 5 scales them."""
    one, other = write_video(tmp_path / "a.webm"), write_video(tmp_path / "b.webm", size=(32, 32))
    one.write_bytes(one.read_bytes() + other.read_bytes())
    assert {image.shape for images in taken(one).read(stages) for image in images} == {(48, 64, 3)}


def test_frames_of_several_sizes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As other versions of OpenCV give them."""
    video = video_file.VideoFile(write_video(tmp_path / "a.mp4"))
    assert video.read() is not None
    monkeypatch.setattr(video, "_capture", SimpleNamespace(read=lambda: (True, np.zeros((32, 40, 3), np.uint8))))
    with pytest.raises(UsageError, match=r"frame 1 of .*a\.mp4 has 40x32 pixels, those before it have 64x48"):
        video.read()


def test_frames_larger_than_any_are_not_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(video_file, "MOST_PIXELS", 64 * 48 - 1)
    with pytest.raises(UsageError, match=r"has more than 3071 pixels a frame"):
        taken(write_video(tmp_path / "a.mp4"))


def test_a_video_that_changes_under_the_measurement(tmp_path: Path, stages: RecordedStages) -> None:
    path = write_video(tmp_path / "a.mp4")
    found = taken(path)
    write_video(path, frames=4)
    with pytest.raises(HwprofError, match=r"a\.mp4 is shorter than it was"):
        list(found.read(stages))


def test_a_name_that_is_not_utf8(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"the name of the video .*\\xff\.mp4 is not UTF-8"):
        taken(tmp_path / "\udcff.mp4")


def test_a_name_that_looks_like_a_pattern_or_an_address_is_a_file(
    tmp_path: Path, stages: RecordedStages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("shot-%02d.mp4", "concat:a|b.mp4"):
        write_video(tmp_path / "a.mp4", frames=3).rename(name)
        assert len(list(taken(Path(name)).read(stages))) == 3


def test_the_calling_thread_decodes(tmp_path: Path, stages: RecordedStages) -> None:
    """FFmpeg would begin as many threads as there are processors, which go on in the other stages."""
    found = taken(write_video(tmp_path / "a.mkv", size=(640, 480)))
    before = len(list(Path("/proc/self/task").iterdir()))
    frames = found.read(stages)
    next(frames)
    assert len(list(Path("/proc/self/task").iterdir())) == before
