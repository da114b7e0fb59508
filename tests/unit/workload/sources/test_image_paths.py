from __future__ import annotations

from pathlib import Path

import pytest

from hwprof.errors import UsageError
from hwprof.workload.sources.image_paths import find_images
from tests.support.odd_files import fifo


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


def test_an_image_whose_name_is_not_utf8_is_named_in_the_refusal(tmp_path: Path) -> None:
    try:
        (tmp_path / "\udcff.jpg").touch()
    except OSError:
        pytest.skip("this file system has UTF-8 names only")
    for source in (str(tmp_path), f"{tmp_path}/*.jpg"):
        with pytest.raises(UsageError, match=r"\\xff\.jpg is not UTF-8"):
            find_images(source)
