"""Drawn images as JPEG files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hwprof.errors import FullDiskError, HwprofError, is_full_disk
from hwprof.workload.images import Image
from hwprof.workload.libraries import require_cv2


class JpegFiles:
    """A ``protocol.Pictures``: encoded in every iteration, so that iterations are alike."""

    def __init__(self, folder: Path | None, names: Sequence[str]) -> None:
        """``names``: of all images, without a suffix."""
        self._folder = folder
        self._names = iter(names)

    def write(self, drawn: Image) -> None:
        """The next one, (H, W, 3), into a file of its own. Raises ``HwprofError``."""
        name = next(self._names)
        _, encoded = require_cv2().imencode(".jpg", drawn)
        if self._folder is None:
            return
        file = self._folder / f"{name}.jpg"
        try:
            file.write_bytes(encoded.tobytes())
        except OSError as error:
            if is_full_disk(error):
                raise FullDiskError(str(file)) from error
            raise HwprofError(f"cannot write {file}: {error.strerror}") from error

    def close(self) -> None:
        """Each file is closed already."""
