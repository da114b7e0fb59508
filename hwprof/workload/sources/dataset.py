"""The YAML of a dataset, as ultralytics, YOLOv5 and YOLOv7 have it: where its images are, and what its classes are.

It is read as text alone: no value in it has a type, no merge is carried out, nothing is fetched or executed.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from hwprof.errors import HwprofError, UsageError, first_line
from hwprof.printable import as_written, is_text, printable
from hwprof.run.regular_files import is_regular, read_regular
from hwprof.workload.checkpoints import LONGEST_NAME
from hwprof.workload.head_tensors import MOST_CLASSES
from hwprof.workload.sources.image_paths import SUFFIXES, is_there, only_images

SPLITS: Final = ("val", "test", "train")
"""In the order in which they are taken."""

NOTHING: Final = ("", "~", "null")
"""What stands for no value."""

LARGEST_YAML: Final = 1 << 20
LARGEST_LIST: Final = 1 << 28
"""In bytes; a list has a path a line."""

MOST_FILES: Final = 5_000_000
"""In all of a split's folders and lists together; somebody who names / waits no longer."""

CORRECT: Final = "correct it, or name images"
GET_IT: Final = "get the dataset, or correct it"
LISTS: Final = ".txt"


class Dataset(NamedTuple):
    """What one split has."""

    images: list[Path]
    class_names: list[str] | None  # by number; None: it names none


def read_dataset(file: Path, split: str | None) -> Dataset:
    """The images of the split; without one, of the first of ``SPLITS`` that the file has. Raises ``UsageError`` where
    it is no dataset or names what is not there, and ``HwprofError`` where it cannot be read."""
    content = _parsed(file)
    there = [name for name in SPLITS if content.get(name) not in NOTHING and name in content]
    if not there:
        raise UsageError(f"{file} is no dataset: it has none of {', '.join(SPLITS)}", CORRECT)
    if split is not None and split not in there:
        raise UsageError(f"{file} has no split {split}", " or ".join(f"{file}:{one}" for one in there))
    chosen = split or there[0]
    entries = _entries(content[chosen])
    if entries is None:
        raise UsageError(f"{file}: {chosen} is no path and no list of paths", CORRECT)
    roots = _roots(file, content.get("path", ""))
    images = _Split(roots, f"{file}: {chosen}").images(entries)
    if not images:
        raise UsageError(f"{file}: {chosen} has no image ({', '.join(sorted(SUFFIXES))})", CORRECT)
    return Dataset(images, _class_names(content.get("names"), file))


def _parsed(file: Path) -> dict[str, Any]:
    """Texts, lists and dictionaries of them."""
    import yaml

    try:
        content = yaml.load(read_regular(file, LARGEST_YAML).decode(), yaml.BaseLoader)
    except OSError as error:
        raise HwprofError(f"cannot read {file}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError, TypeError) as error:
        raise UsageError(f"{file} is no YAML: {first_line(error)}", CORRECT) from None
    return content if isinstance(content, dict) else {}


def _entries(value: Any) -> list[str] | None:
    """One path or several."""
    entries = value if isinstance(value, list) else [value]
    return entries if all(isinstance(entry, str) and entry for entry in entries) else None


def _roots(file: Path, path: Any) -> list[Path]:
    """Where the splits' paths may begin."""
    places = [file.absolute().parent, Path.cwd()]
    if path in NOTHING:
        return places
    if not isinstance(path, str):
        raise UsageError(f"{file}: path is no path", CORRECT)
    roots = [place / path for place in places if is_there(place / path)]
    if not roots:
        raise UsageError(
            f"{file}: there is no folder {path}, neither beside it nor here",
            "get the dataset, or correct path:",
        )
    return roots


class _Split:
    """Its images. What several entries name is looked at once, and its images are taken once: a short file can name a
    folder a hundred thousand times."""

    def __init__(self, roots: Sequence[Path], whose: str) -> None:
        """``whose``: what is to blame where it names what it should not."""
        self._roots = roots
        self._whose = whose
        self._seen = 0

    def images(self, entries: Sequence[str]) -> list[Path]:
        """In the order in which they are named."""
        places: dict[Path, Path] = {}
        for entry in dict.fromkeys(entries):
            place = self._place(entry)
            places.setdefault(place.resolve() if place.is_dir() else place, place)
        return [image for place in places.values() for image in self._images(place)]

    def _place(self, entry: str) -> Path:
        place = next((root / entry for root in self._roots if is_there(root / entry)), None)
        if place is None:
            raise UsageError(f"{self._whose} names {entry}, which is not in {self._roots[0]}", GET_IT)
        return place

    def _images(self, place: Path) -> list[Path]:
        """Those of a folder and all below it, of a list, or the one image."""
        if place.is_dir():
            return only_images(self._below(place))
        self._count(1, place)
        return self._listed(place) if place.suffix.lower() == LISTS else only_images([place])

    def _below(self, folder: Path) -> list[Path]:
        """All files, links to folders not followed."""
        found: list[Path] = []
        for place, _, names in os.walk(folder):
            self._count(1 + len(names), folder)
            found += [Path(place) / name for name in names if Path(name).suffix.lower() in SUFFIXES]
        return found

    def _listed(self, file: Path) -> list[Path]:
        """The images that a list names, a line each, beside itself, in the dataset, or here."""
        try:
            lines = os.fsdecode(read_regular(file, LARGEST_LIST)).splitlines()
        except OSError as error:
            raise HwprofError(f"cannot read {file}: {error.strerror}") from error
        self._count(len(lines), file)
        places = [file.parent, *self._roots, Path.cwd()]
        images = []
        for number, line in enumerate(lines, 1):
            name = line.strip()
            if not name or Path(name).suffix.lower() not in SUFFIXES:
                continue
            image = next((place / name for place in places if is_there(place / name)), None)
            if image is None or not is_regular(image):
                raise UsageError(f"line {number} of {file} names {name}: there is no such image", CORRECT)
            if not is_text(name):
                raise UsageError(f"the name of the image {as_written(name)} is not UTF-8", "rename it")
            images.append(image)
        return images

    def _count(self, files: int, where: Path) -> None:
        """Raises ``UsageError`` where they are more than a dataset has."""
        self._seen += files
        if self._seen > MOST_FILES:
            raise UsageError(f"{self._whose}: more than {MOST_FILES:,} files, counted up to {where}", CORRECT)


def _class_names(names: Any, file: Path) -> list[str] | None:
    """Of a list, or of a dictionary by number: printable, since halves of characters end OpenCV that draws them."""
    if names is None or names in NOTHING:
        return None
    if isinstance(names, dict):
        numbers = [str(number) for number in range(len(names))]
        names = [names[number] for number in numbers] if names.keys() == set(numbers) else None
    if isinstance(names, list) and len(names) <= MOST_CLASSES and all(_is_name(name) for name in names):
        return [printable(name) for name in names]
    raise UsageError(f"{file}: names is no list of classes, nor their names by number from 0", CORRECT)


def _is_name(name: Any) -> bool:
    return isinstance(name, str) and len(name) <= LONGEST_NAME
