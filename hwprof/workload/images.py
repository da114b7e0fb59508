"""Images: reading them, and letting out whatever goes wrong in one line."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from hwprof.errors import HwprofError, UsageError
from hwprof.run.regular_files import open_regular, read_regular
from hwprof.silence import silent_libraries
from hwprof.workload.libraries import require_cv2

GIVEN_IMAGE = "take it out, or name JPEG or PNG files with --source"

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
