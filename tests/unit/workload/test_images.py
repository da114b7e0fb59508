from __future__ import annotations

import importlib
import re
import struct
import sys
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hwprof import packages
from hwprof.errors import HwprofError, UsageError
from hwprof.workload import libraries
from hwprof.workload.images import read_image, size_of
from tests.support.odd_files import device, fifo


def test_reads_blue_first(tmp_path: Path) -> None:
    import cv2

    picture = np.zeros((4, 6, 3), dtype=np.uint8)
    picture[..., 0] = 200
    cv2.imwrite(str(tmp_path / "blue.png"), picture)
    image = read_image(tmp_path / "blue.png")
    assert image.shape == (4, 6, 3) and image[..., 0].min() == 200 and image[..., 1:].max() == 0


@pytest.mark.parametrize("content", [b"", b"\xff\xd8\xff\xe0 cut short", b"plain text"])
def test_a_broken_image_is_told_in_one_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "broken.jpg").write_bytes(content)
    with pytest.raises(UsageError, match=r"broken.jpg is not an image") as caught:
        read_image(tmp_path / "broken.jpg")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("length", [0x7FFF_FFF0, 100])
def test_a_png_of_which_a_part_is_longer_than_the_file_is_not_decoded(
    length: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenCV would get 4 GB for these 80 bytes."""
    whole = _png(4, 4, bytes(100))
    begin = whole.index(b"IDAT") - 4
    read_image_of = tmp_path / "claims.png"
    read_image_of.write_bytes(whole[:begin] + length.to_bytes(4) + whole[begin + 4 :])
    monkeypatch.setattr(libraries.require_cv2(), "imdecode", None)
    with pytest.raises(UsageError, match=r"claims.png is cut or damaged: a part of it is longer than the file"):
        read_image(read_image_of)


def test_an_image_that_went_away(tmp_path: Path) -> None:
    with pytest.raises(HwprofError, match=r"cannot read .*No such file"):
        read_image(tmp_path / "gone.jpg")


@pytest.mark.parametrize("stand_in", [fifo, device])
def test_what_is_no_file_is_refused_and_not_waited_for(tmp_path: Path, stand_in: Callable[[Path], None]) -> None:
    file = tmp_path / "camera.jpg"
    file.touch()
    stand_in(file)
    with pytest.raises(HwprofError, match=r"cannot read .*camera\.jpg: it is no regular file"):
        read_image(file)


def test_missing_system_libraries_have_their_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> None:
        raise ImportError("libGL.so.1: cannot open shared object file: No such file or directory")

    monkeypatch.setattr(importlib, "import_module", fail)
    with pytest.raises(HwprofError, match=r"libGL.so.1.*apt-get install -y libgl1 libglib2.0-0"):
        libraries.require_cv2()


def test_a_missing_package_has_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ultralytics.nn.tasks", None)
    with pytest.raises(HwprofError, match=re.escape(packages.YOLO)):
        libraries.require_ultralytics()


def _png(width: int, height: int, rows: bytes) -> bytes:
    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def test_what_a_decoder_thinks_of_a_broken_picture_is_not_shown(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken.png"
    broken.write_bytes(_png(64, 64, bytes(100)))
    with pytest.raises(UsageError, match=r"broken.png is not an image"):
        read_image(broken)
    assert capfd.readouterr() == ("", "")


def written(path: Path, height: int, width: int, **options: Any) -> Path:
    """An image as PIL writes it."""
    from PIL import Image

    Image.fromarray(np.zeros((height, width, 3), np.uint8)).save(path, **options)
    return path


@pytest.mark.parametrize("suffix", [".png", ".jpg", ".bmp", ".tiff", ".webp"])
def test_the_size_is_that_of_the_decoded_image(tmp_path: Path, suffix: str) -> None:
    path = written(tmp_path / f"a{suffix}", 30, 50)
    assert size_of(path) == read_image(path).shape[:2] == (30, 50)


@pytest.mark.parametrize("suffix", [".png", ".jpg", ".bmp", ".tiff", ".webp"])
@pytest.mark.parametrize("orientation", range(10))
def test_a_turned_photograph_has_the_size_that_it_is_decoded_to(tmp_path: Path, suffix: str, orientation: int) -> None:
    path = written(tmp_path / f"a{suffix}", 30, 50, exif=_turned(orientation))
    assert size_of(path) == read_image(path).shape[:2]


def _turned(orientation: int) -> object:
    from PIL import Image

    found = Image.Exif()
    found[0x0112] = orientation
    return found


def test_a_size_is_read_of_the_header_alone(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jpg", 300, 500)
    path.write_bytes(path.read_bytes()[:700])
    assert size_of(path) == (300, 500)


def test_an_odd_file_has_no_size_as_it_has_no_pixels(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(b"not a picture")
    with pytest.raises(UsageError, match=r"a\.jpg is not an image"):
        size_of(tmp_path / "a.jpg")
    fifo(tmp_path / "a.jpg")
    with pytest.raises(HwprofError, match="no regular file"):
        size_of(tmp_path / "a.jpg")


def test_a_header_of_a_very_large_image_is_read_without_a_warning(tmp_path: Path) -> None:
    """PIL warns of it when it opens the file, as of a bomb."""
    large = tmp_path / "large.png"
    large.write_bytes(_png(12_000, 10_000, b""))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert size_of(large) == (10_000, 12_000)
    assert said == []
