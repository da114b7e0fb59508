"""Images: finding them, reading them, and letting out whatever goes wrong in one line."""

from __future__ import annotations

import difflib
import errno
import glob
import os
import warnings
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np

from hwprof.errors import HwprofError, UsageError
from hwprof.printable import as_written, is_text
from hwprof.run.regular_files import is_regular, open_regular, read_regular
from hwprof.silence import silent_libraries
from hwprof.workload.libraries import require_cv2, ultralytics_folder

SUFFIXES = frozenset({".bmp", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp"})


NEAR = 3
"""How many names are told to somebody who misspelt one."""

GIVEN = "a file, a folder of images or a quoted pattern; without --source two photographs are taken"
"""What --source takes."""

GIVEN_IMAGE = "take it out, or name JPEG or PNG files with --source"
NO_IMAGE = "name a folder, a file or a pattern with images: --source 'photos/*.jpg'"

PNG = b"\x89PNG\r\n\x1a\n"
"""How one begins."""

FORMATS = ("BMP", "JPEG", "PNG", "TIFF", "WEBP")
"""Whose headers are read, as PIL names them."""

ORIENTATION = 0x0112
TURNED = range(5, 9)
"""The orientations (EXIF 2.3, 4.6.4) by which OpenCV makes a height of a width."""

LARGEST_FILE = 1 << 30
"""In bytes."""

Image = np.ndarray[Any, np.dtype[np.uint8]]
"""(H, W, 3), blue first, as OpenCV has them."""


def find_images(source: str | None) -> list[Path]:
    """The images that a file, folder or glob names, in the order of their names; without one, ultralytics' photographs.

    Raises ``UsageError`` where there is nothing to read.
    """
    if source is None:
        return _default_images()
    try:
        path = Path(source).expanduser()
    except RuntimeError:  # of a user that there is not
        path = Path(source)
    if path.is_dir():
        images = _only_images(path.iterdir())
        if not images:
            raise UsageError(f"the folder {source} holds no image ({', '.join(sorted(SUFFIXES))})", NO_IMAGE)
        return images
    if path.exists():
        return [path]
    if path.is_symlink():
        raise UsageError(f"{source} is a link {_leads_to(path)}", _instead(path))
    if glob.has_magic(source):
        matches = glob.glob(str(path), recursive=True)  # noqa: PTH207 Path.glob takes no absolute pattern
        images = _only_images(Path(match) for match in matches)
        if not images:
            raise _no_image(source, path, matches)
        return images
    raise UsageError(f"there is no file or folder {source}", _instead(path))


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
            names = [path.name for path in folder.iterdir() if path.is_dir() or _is_image(path)]
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


def read_image(path: Path) -> Image:
    """The decoded image; raises ``UsageError`` where the file is none, and ``HwprofError`` where it cannot be read."""
    cv2 = require_cv2()
    try:
        content = read_regular(path, LARGEST_FILE)
    except OSError as error:
        raise HwprofError(f"cannot read {path}: {error.strerror}") from error
    data = np.frombuffer(content, dtype=np.uint8)
    if _claims_more(content):
        raise UsageError(f"{path} is cut or damaged: a part of it is longer than the file", GIVEN_IMAGE)
    try:
        with silent_libraries():  # libpng, libjpeg
            image = cv2.imdecode(data, cv2.IMREAD_COLOR) if data.size else None
    except cv2.error as error:
        if "CV_IO_MAX_IMAGE_PIXELS" in str(error):
            most = os.environ["OPENCV_IO_MAX_IMAGE_PIXELS"]
            raise UsageError(f"{path} has more than {most} pixels", "OPENCV_IO_MAX_IMAGE_PIXELS allows more") from None
        image = None
    if image is None:
        raise UsageError(f"{path} is not an image that OpenCV can decode", GIVEN_IMAGE)
    decoded: Image = image
    return decoded


def size_of(path: Path) -> tuple[int, int]:
    """Height and width of the image that ``read_image`` gives, of the file's first bytes where they tell; raises as
    that does."""
    from PIL import Image as Headers  # of ultralytics' requirements

    try:
        with (
            warnings.catch_warnings(action="ignore"),  # of a size that OpenCV takes or refuses itself
            open_regular(path) as file,
            Headers.open(file, formats=FORMATS) as header,
        ):
            told = Headers.Exif()
            told.load(header.info.get("exif", b""))
            turned = told.get(ORIENTATION) in TURNED  # of TIFF, PIL has turned the size already
            width, height = header.size
    except Exception:  # whatever a damaged header leads to
        height, width, _ = read_image(path).shape
        return height, width
    return (width, height) if turned else (height, width)


def _claims_more(data: bytes) -> bool:
    """Whether a part of a PNG says that it is longer than what is left of the file: OpenCV gets as much memory as is
    said, gigabytes for a file of some bytes. Each part (W3C, PNG, 5.3): its length, its type, the data, a checksum."""
    at = len(PNG)
    while data.startswith(PNG) and at + 8 <= len(data):
        length, kind = int.from_bytes(data[at : at + 4]), data[at + 4 : at + 8]
        at += 12 + length
        if at > len(data):
            return True
        if kind == b"IEND":
            break
    return False


def _is_image(path: Path) -> bool:
    """By its suffix: a regular file, or a link to one."""
    return path.suffix.lower() in SUFFIXES and is_regular(path)


def _only_images(paths: Any) -> list[Path]:
    images = sorted(path for path in paths if _is_image(path))
    for image in images:
        if not is_text(image.name):  # what came of it could be kept in no file
            raise UsageError(f"the name of the image {as_written(str(image))} is not UTF-8", "rename it")
    return images


def _default_images() -> list[Path]:
    folder = ultralytics_folder()
    images = _only_images((folder / "assets").glob("*")) if folder is not None else []
    if not images:
        raise UsageError("there is no image to work on", "name one with --source")
    return images
