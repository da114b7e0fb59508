"""Videos of known frames, made with OpenCV's own encoders: frame N is grey all over, of a level of its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hwprof.workload.images import Image

CODECS = {
    "a.mp4": "mp4v", "a.mov": "mp4v", "a.m4v": "mp4v", "a.avi": "MJPG", "b.avi": "XVID", "a.mkv": "FFV1",
    "a.webm": "VP80", "a.mpg": "MPG1",
}  # fmt: skip
"""By the names of files that are made with them."""

STEP = 20
"""Between the levels of two frames: twice what any of these codecs loses."""


def write_video(path: Path, frames: int = 10, size: tuple[int, int] = (64, 48), fps: float = 25.0) -> Path:
    """``size``: width and height; the codec is that of ``CODECS``, or of the file of that suffix there."""
    import cv2

    codec = CODECS.get(path.name) or CODECS[f"a{path.suffix}"]
    writer = cv2.VideoWriter(str(path), cv2.CAP_FFMPEG, cv2.VideoWriter.fourcc(*codec), fps, size)
    assert writer.isOpened()
    for number in range(frames):
        writer.write(np.full((size[1], size[0], 3), level(number), np.uint8))
    writer.release()
    return path


def level(number: int) -> int:
    """Of a frame's pixels."""
    return 16 + STEP * (number % 11)


def frames_of(path: Path) -> list[Image]:
    """All that OpenCV decodes."""
    import cv2

    video = cv2.VideoCapture(str(path), cv2.CAP_FFMPEG)
    found: list[Image] = []
    while (read := video.read())[0]:
        found.append(read[1].astype(np.uint8, copy=False))
    return found


def fps_of(path: Path) -> float:
    """Frames a second, by its header."""
    import cv2

    return float(cv2.VideoCapture(str(path), cv2.CAP_FFMPEG).get(cv2.CAP_PROP_FPS))
