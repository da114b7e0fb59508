from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from hwprof.errors import HwprofError, UsageError
from hwprof.session.last_words import last_words
from hwprof.session.messages import encode
from hwprof.workload.sources import dataset
from hwprof.workload.sources.dataset import read_dataset
from hwprof.workload.sources.finding import find_source
from hwprof.workload.spec import WorkloadSpec
from tests.support.odd_files import device, fifo
from tests.support.recorded_stages import RecordedStages


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A dataset's folder: two images to train with, one of them in a folder below, and one to validate."""
    import cv2

    for name in ("images/train/a.jpg", "images/train/more/b.png", "images/val/c.jpg"):
        (tmp_path / "set" / name).parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(tmp_path / "set" / name), np.zeros((8, 8, 3), np.uint8))
    (tmp_path / "set" / "images" / "train" / "a.txt").write_text("0 0.5 0.5 1 1")
    return tmp_path


def written(root: Path, text: str) -> Path:
    file = root / "data.yaml"
    file.write_text(text)
    return file


def images(file: Path, split: str | None = None) -> list[str]:
    return [path.name for path in read_dataset(file, split).images]


def test_the_split_that_is_taken(root: Path) -> None:
    file = written(root, "path: set\ntrain: images/train\nval: images/val\ntest:  # none\n")
    assert images(file) == ["c.jpg"]
    assert images(file, "train") == ["a.jpg", "b.png"]
    assert images(written(root, "path: set\ntrain: images/train\ntest: images/val\n")) == ["c.jpg"]
    assert images(written(root, "path: set\ntrain: images/train\nval: null\n")) == ["a.jpg", "b.png"]
    assert images(written(root, "path: set\nval: [images/val, images/train]\n")) == ["c.jpg", "a.jpg", "b.png"]


def test_paths_begin_beside_the_file_or_here(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "data").mkdir()
    file = written(root / "data", "path: set\nval: images/val\n")
    with pytest.raises(UsageError, match=r"there is no folder set, neither beside it nor here"):
        images(file)
    monkeypatch.chdir(root)
    assert images(file) == ["c.jpg"]
    assert images(written(root / "data", "val: ../set/images/val\n")) == ["c.jpg"]
    assert images(written(root / "data", f"path: {root}/set\nval: images/val\n")) == ["c.jpg"]


def test_a_list_names_images_beside_itself_or_in_the_dataset(root: Path) -> None:
    (root / "set" / "val.txt").write_text("./images/val/c.jpg\nimages/train/a.jpg\n\nnotes.md\n")
    (root / "lists").mkdir()
    (root / "lists" / "absolute.txt").write_text(f"{root}/set/images/val/c.jpg\nimages/train/a.jpg\n")
    assert images(written(root, "path: set\nval: val.txt\n")) == ["c.jpg", "a.jpg"]
    assert images(written(root, "path: set\nval: ../lists/absolute.txt\n")) == ["c.jpg", "a.jpg"]
    (root / "set" / "val.txt").write_text("./images/val/c.jpg\n./images/val/gone.jpg\n")
    with pytest.raises(UsageError, match=r"line 2 of .*val\.txt names \./images/val/gone\.jpg: there is no such image"):
        images(written(root, "path: set\nval: val.txt\n"))


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        ("names: [cat, no, 3]", ["cat", "no", "3"]),
        ("names: {0: cat, 1: dog}", ["cat", "dog"]),
        ("names:\n  1: dog\n  0: cat", ["cat", "dog"]),
        (r'names: ["\ud800", "a\e[31m"]', ["?", "a?[31m"]),
        ("names:", None),
        ("nc: 2", None),
    ],
)
def test_names_of_classes(names: str, wanted: list[str] | None, root: Path) -> None:
    assert read_dataset(written(root, f"path: set\nval: images/val\n{names}\n"), None).class_names == wanted


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
MERGE_BOMB = "a: &a {x: 1}\n" + "".join(
    f"{name}: &{name}\n  <<: [{', '.join([f'*{before}'] * 9)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("backbone: []\nhead: []\n", r"data\.yaml is no dataset: it has none of val, test, train"),
        ("- 1\n", r"data\.yaml is no dataset"),
        ("", r"data\.yaml is no dataset"),
        ("val: [\n", r"data\.yaml is no YAML: "),
        ("val: " + "[" * 5000, r"data\.yaml is no YAML: "),
        ("val: !!python/object/apply:os.system [true]\n", r"data\.yaml: val names true, which is not in"),
        ("val: {a: b}\n", r"data\.yaml: val is no path and no list of paths"),
        ("val: [[a]]\n", r"data\.yaml: val is no path and no list of paths"),
        ('val: "a\\0b"\n', r"data\.yaml: val names a.b, which is not in"),
        ("val: " + "x" * 5000, r"data\.yaml: val names xx*, which is not in"),
        ("path: [set]\nval: images/val\n", r"data\.yaml: path is no path"),
        ("path: set\nval: images/nosuch\n", r"data\.yaml: val names images/nosuch, which is not in .*set"),
        ("path: set\nval: .\nnames: [[a]]\n", r"data\.yaml: names is no list of classes"),
        ("path: set\nval: .\nnames: {0: a, 2: b}\n", r"data\.yaml: names is no list of classes"),
        ("path: set\nval: .\nnames: [" + "x" * 201 + "]\n", r"data\.yaml: names is no list of classes"),
        ("path: set\nval: images/train/a.txt\n", r"data\.yaml: val has no image"),
        (BOMB + "val: *i\n", r"data\.yaml: val is no path and no list of paths"),
        (BOMB + "path: set\nval: images/val\nnames: *i\n", r"data\.yaml: names is no list of classes"),
        (MERGE_BOMB + "val:\n  <<: *i\n", r"data\.yaml: val is no path and no list of paths"),
        ("val: [" + "/dev/zero, " * 3 + "]\n", r"data\.yaml: val has no image"),
    ],
)
def test_what_is_no_dataset_is_told_in_one_line_and_soon(text: str, message: str, root: Path) -> None:
    began_s = time.monotonic()
    with pytest.raises(UsageError, match=message) as caught:
        read_dataset(written(root, text), None)
    assert "\n" not in str(caught.value)
    assert time.monotonic() - began_s < 20


def test_a_split_that_it_has_not(root: Path) -> None:
    file = written(root, "path: set\ntrain: images/train\nval: images/val\n")
    with pytest.raises(UsageError, match=r"data\.yaml has no split test\. Try: .*data\.yaml:val or .*data\.yaml:train"):
        read_dataset(file, "test")


@pytest.mark.parametrize("stand_in", [fifo, device])
def test_neither_file_nor_list_is_waited_for(stand_in: Callable[[Path], None], root: Path) -> None:
    file = written(root, "path: set\nval: val.txt\n")
    (root / "set" / "val.txt").touch()
    stand_in(root / "set" / "val.txt")
    with pytest.raises(HwprofError, match=r"cannot read .*val\.txt: it is no regular file"):
        read_dataset(file, None)
    stand_in(file)
    with pytest.raises(HwprofError, match=r"cannot read .*data\.yaml: it is no regular file"):
        read_dataset(file, None)


def test_files_and_folders_that_are_too_large(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(root, "path: set\nval: images\n")
    monkeypatch.setattr(dataset, "MOST_FILES", 4)
    with pytest.raises(UsageError, match=r"val: more than 4 files, counted up to .*images"):
        read_dataset(file, None)
    with pytest.raises(UsageError, match=r"val: more than 4 files, counted up to .*train"):  # of all entries together
        images(written(root, "path: set\nval: [images/val, images/train]\n"))
    (root / "set" / "val.txt").write_text("images/val/c.jpg\n" * 5)
    with pytest.raises(UsageError, match=r"val: more than 4 files, counted up to .*val\.txt"):
        images(written(root, "path: set\nval: val.txt\n"))
    file = written(root, "path: set\nval: images\n")
    monkeypatch.setattr(dataset, "LARGEST_YAML", 10)
    with pytest.raises(HwprofError, match=r"cannot read .*data\.yaml: it has 22 bytes"):
        read_dataset(file, None)


def test_what_is_named_again_is_looked_at_once(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset, "MOST_FILES", 7)
    entries = ["images/val", "images/train", "images/val/", "./images/val", str(root / "set" / "images" / "train")]
    assert images(written(root, f"path: set\nval: [{', '.join(entries * 1000)}]\n")) == ["c.jpg", "a.jpg", "b.png"]


@pytest.mark.parametrize("text", [r'val: "\ud800"', r'path: "\ud800"', r'val: [images, "\ud800"]', r'val: "a\udcff"'])
def test_half_a_character_is_no_such_path(text: str, root: Path) -> None:
    with pytest.raises(UsageError, match=r"which is not in|there is no folder") as caught:
        read_dataset(written(root, f"{text}\nval: set\n" if text.startswith("path") else f"{text}\npath: set\n"), None)
    said = last_words(caught.value, str(root))
    assert said.exit_code == 2
    assert b"\\\\" in encode(said)  # as it is written, in JSON


def test_an_image_whose_name_is_not_utf8(root: Path) -> None:
    (root / "set" / "val.txt").write_bytes(b"images/val/\xff.jpg\n")
    try:
        (root / "set" / "images" / "val" / "\udcff.jpg").touch()
    except OSError:
        pytest.skip("this file system has UTF-8 names only")
    for val in ("val.txt", "images/val"):
        with pytest.raises(UsageError, match=r"\\xff\.jpg is not UTF-8"):
            read_dataset(written(root, f"path: set\nval: {val}\n"), None)


def test_source_names_a_dataset_and_its_split(root: Path) -> None:
    file = written(root, "path: set\ntrain: images/train\nval: images/val\nnames: [cat]\n")
    found = {}
    for given in (str(file), f"{file}:train"):
        source = find_source(WorkloadSpec(model="yolov8n", source=given))
        assert source.class_names == ["cat"]
        found[given] = source.few(lambda sizes: (len(sizes), 3, 8, 8)).names
    assert list(found.values()) == [[["c.jpg"]], [["a.jpg"], ["b.png"]]]
    file.rename(root / "data.yaml:train")
    with pytest.raises(UsageError, match=r"data\.yaml:train is not an image"):
        list(
            find_source(WorkloadSpec(model="yolov8n", source=f"{file}:train"))
            .few(lambda sizes: (1, 3, 8, 8))
            .read(RecordedStages())
        )
    with pytest.raises(UsageError, match=r"there is no file or folder .*nosuch\.yaml:val"):
        find_source(WorkloadSpec(model="yolov8n", source=str(root / "nosuch.yaml:val")))
