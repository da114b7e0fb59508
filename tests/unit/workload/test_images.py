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
from hwprof.workload.images import find_images, read_image, size_of
from tests.support.odd_files import device, fifo


def test_a_folder_gives_its_images_by_name(pictures: Path) -> None:
    assert [path.name for path in find_images(str(pictures))] == ["a.png", "b.jpg", "tall.png"]


def test_a_glob_gives_what_it_matches(pictures: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [path.name for path in find_images(f"{pictures}/*.png")] == ["a.png", "tall.png"]
    monkeypatch.chdir(pictures.parent)
    assert [path.name for path in find_images(f"{pictures.name}/*")] == ["a.png", "b.jpg", "tall.png"]


def test_a_file_is_itself(pictures: Path) -> None:
    assert find_images(str(pictures / "a.png")) == [pictures / "a.png"]


def test_a_name_with_brackets_is_a_file_first(tmp_path: Path) -> None:
    odd = tmp_path / "shot [1].png"
    odd.write_bytes(b"")
    assert find_images(str(odd)) == [odd]


def test_without_a_source_there_are_ultralytics_photographs() -> None:
    assert [path.name for path in find_images(None)] == ["bus.jpg", "zidane.jpg"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("nowhere.jpg", "there is no file or folder"),
        ("*.jpg", "no image matches"),
        ("*.txt", "no image matches"),
        ("", "holds no image"),
    ],
)
def test_nothing_to_read_is_a_usage_error(tmp_path: Path, source: str, message: str) -> None:
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(UsageError, match=message):
        find_images(str(tmp_path / source))


def test_the_home_of_nobody_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="there is no file or folder"):
        find_images("~nobody-of-that-name/x.jpg")


def test_a_pattern_that_finds_nothing_is_told_what_there_is(tmp_path: Path) -> None:
    """The images of the folder by their suffixes; else that the folder has none, or is not there."""
    for name in ("a.jpg", "b.jpg", "c.webp", "notes.txt"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "words").mkdir()
    (tmp_path / "words" / "notes.txt").write_text("x")
    remedies = {}
    for given in ("*.png", "**/*.png", "words/*.txt", "words/*.png", "nosuch/*.jpg"):
        with pytest.raises(UsageError, match="no image matches") as failure:
            find_images(str(tmp_path / given))
        remedies[given] = failure.value.remedy or ""
        assert ("there is no folder" in failure.value.message) == given.startswith("nosuch")
        assert ("suffix" in failure.value.message) == (given == "words/*.txt")
    assert remedies["*.png"] == f"'{tmp_path}/*.jpg' or '{tmp_path}/*.webp'" == remedies["**/*.png"]
    assert find_images(remedies["*.png"].split("'")[1]) == [tmp_path / "a.jpg", tmp_path / "b.jpg"]
    assert not any("suffix" in remedy for remedy in remedies.values())


def test_a_misspelt_source_is_told_the_nearest_one(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "bus.jpg").write_bytes(b"")
    (tmp_path / "notes.txt").write_text("x")
    for given, meant in (("fotos", "photos"), ("buss.jpg", "bus.jpg")):
        with pytest.raises(UsageError) as failure:
            find_images(str(tmp_path / given))
        assert failure.value.remedy == f"did you mean {tmp_path / meant}?"
    for given in ("notes.tx", "nosuch/", "no/such/place.jpg"):
        with pytest.raises(UsageError) as failure:
            find_images(str(tmp_path / given))
        assert failure.value.remedy is not None and "--source" in failure.value.remedy


@pytest.mark.parametrize(
    ("to", "says"),
    [
        ("nosuch.png", "link to nowhere"),
        ("link.png", "link to itself"),
        ("notes.txt/x.png", "link that cannot be followed: Not a"),
    ],
)
def test_a_link_that_leads_to_no_image_is_told_as_that(to: str, says: str, tmp_path: Path) -> None:
    """And only files that can be read, and folders, are named in its place."""
    (tmp_path / "notes.txt").touch()
    link = tmp_path / "link.png"
    link.symlink_to(to)
    (tmp_path / "lin.png").symlink_to("lin.png")
    (tmp_path / "lik.png").touch()
    fifo(tmp_path / "lik.png")
    for given in (link, tmp_path / "linkk.png"):
        with pytest.raises(UsageError) as failure:
            find_images(str(given))
        assert (f"{link} is a {says}" in failure.value.message) == (given == link)
        assert "did you mean" not in (failure.value.remedy or "")
    with pytest.raises(UsageError, match="no image matches") as failure:
        find_images(f"{tmp_path}/*.jpg")
    assert ".png" not in (failure.value.remedy or "")
    (tmp_path / "photo.jpeg").touch()
    (tmp_path / "ink.png").symlink_to("photo.jpeg")
    with pytest.raises(UsageError) as failure:
        find_images(str(link))
    assert failure.value.remedy == f"did you mean {tmp_path / 'ink.png'}?"


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


def test_an_image_whose_name_is_not_utf8_is_named_in_the_refusal(tmp_path: Path) -> None:
    try:
        (tmp_path / "\udcff.jpg").touch()
    except OSError:
        pytest.skip("this file system has UTF-8 names only")
    for source in (str(tmp_path), f"{tmp_path}/*.jpg"):
        with pytest.raises(UsageError, match=r"\\xff\.jpg is not UTF-8"):
            find_images(source)


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
