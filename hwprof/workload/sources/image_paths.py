"""Which files --source names: images, by a file, a folder or a pattern."""

from __future__ import annotations

import difflib
import errno
import glob
from collections.abc import Iterable
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import Final

from hwprof.errors import UsageError
from hwprof.printable import as_written, is_text
from hwprof.run.regular_files import is_regular
from hwprof.workload.libraries import ultralytics_folder

SUFFIXES: Final = frozenset({".bmp", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp"})

VIDEOS: Final = frozenset({".avi", ".gif", ".m4v", ".mkv", ".mov", ".mp4", ".mpeg", ".mpg", ".webm"})

DATASETS: Final = frozenset({".yaml", ".yml"})

NEAR: Final = 3
"""How many names are told to somebody who misspelt one."""

GIVEN: Final = (
    "an image, a folder of images, a quoted pattern, a video, a dataset's YAML or camera:0; without --source two"
    " photographs are taken"
)
"""What --source takes."""

NO_IMAGE: Final = "name a folder, a file or a pattern with images: --source 'photos/*.jpg'"


def find_images(source: str | None) -> list[Path]:
    """The images that a file, folder or glob names, in the order of their names; without one, ultralytics' photographs.

    Raises ``UsageError`` where there is nothing to read.
    """
    if source is None:
        return _default_images()
    path = home_of(source)
    if path.is_dir():
        images = only_images(path.iterdir())
        if not images:
            raise UsageError(f"the folder {source} holds no image ({', '.join(sorted(SUFFIXES))})", NO_IMAGE)
        return images
    if path.exists():
        return [path]
    if path.is_symlink():
        raise UsageError(f"{source} is a link {_leads_to(path)}", _instead(path))
    if glob.has_magic(source):
        matches = glob.glob(str(path), recursive=True)  # noqa: PTH207 Path.glob takes no absolute pattern
        images = only_images(Path(match) for match in matches)
        if not images:
            raise _no_image(source, path, matches)
        return images
    raise UsageError(f"there is no file or folder {source}", _instead(path))


def home_of(source: str) -> Path:
    """The path, with the home folder in the place of ``~``."""
    try:
        return Path(source).expanduser()
    except RuntimeError:  # of a user that there is not
        return Path(source)


def is_there(path: Path) -> bool:
    """Also of names that no file can have."""
    try:
        path.stat()
    except (OSError, ValueError):
        return False
    return True


def _leads_to(link: Path) -> str:
    """Of a link that leads to no file and no folder."""
    try:
        link.stat()
    except OSError as error:
        if error.errno == errno.ELOOP:
            return "to itself"
        if error.errno != errno.ENOENT:
            return f"that cannot be followed: {error.strerror}"
    return "to nowhere"


def _instead(missing: Path) -> str:
    """What is there that is spelt much like it; else what one can give."""
    folder = next((parent for parent in missing.parents if parent.is_dir()), None)
    names: list[str] = []
    if folder == missing.parent:
        with suppress(OSError):
            names = [path.name for path in folder.iterdir() if path.is_dir() or _is_source(path)]
    near = difflib.get_close_matches(missing.name, sorted(names), n=NEAR)
    if near:
        return f"did you mean {' or '.join(str(missing.with_name(name)) for name in near)}?"
    return GIVEN


def _no_image(source: str, pattern: Path, matches: list[str]) -> UsageError:
    """Why a pattern gives none, and what there is instead where it looks."""
    message = f"no image matches {source}"
    folder = Path(*takewhile(lambda part: not glob.has_magic(part), pattern.parts))
    if not folder.is_dir():
        return UsageError(f"{message}: there is no folder {folder}", GIVEN)
    with suppress(OSError):
        suffixes = sorted({path.suffix for path in folder.iterdir() if _is_image(path)})
        if suffixes:
            return UsageError(message, " or ".join(f"'{folder / '*'}{suffix}'" for suffix in suffixes[:NEAR]))
    what = f"what it matches has no image's suffix ({', '.join(sorted(SUFFIXES))})" if matches else "nothing does"
    return UsageError(f"{message}: {what}", GIVEN)


def _is_source(path: Path) -> bool:
    return path.suffix.lower() in SUFFIXES | VIDEOS | DATASETS and is_regular(path)


def _is_image(path: Path) -> bool:
    """By its suffix: a regular file, or a link to one."""
    return path.suffix.lower() in SUFFIXES and is_regular(path)


def only_images(paths: Iterable[Path]) -> list[Path]:
    """The images among them, in the order of their names. Raises ``UsageError`` for a name that is not UTF-8."""
    images = sorted(path for path in paths if _is_image(path))
    for image in images:
        if not is_text(image.name):  # what came of it could be kept in no file
            raise UsageError(f"the name of the image {as_written(str(image))} is not UTF-8", "rename it")
    return images


def _default_images() -> list[Path]:
    folder = ultralytics_folder()
    images = only_images((folder / "assets").glob("*")) if folder is not None else []
    if not images:
        raise UsageError("there is no image to work on", "name one with --source")
    return images
