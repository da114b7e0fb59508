"""What hwprof's own commands need beside the collectors: found without importing any of it."""

from __future__ import annotations

import ctypes.util
import importlib.util
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from hwprof.unavailable import Unavailable


@dataclass(frozen=True)
class Requirement:
    """Something that a command needs, whether it is there, and what would bring it."""

    name: str
    serves: str
    found: str | None  # its version
    unavailable: Unavailable | None = None


def check() -> list[Requirement]:
    """Everything, in the order that a user meets it."""
    return [
        _package("torch", "hwprof collect, hwprof layers", 'pip install -c constraints.txt ".[all]"'),
        _package("ultralytics", "YOLO models", 'pip install -c constraints.txt ".[all]"'),
        _image_libraries(),
        _package("viztracer", "hwprof open --offline", 'pip install ".[ui]"'),
    ]


def _package(name: str, serves: str, remedy: str) -> Requirement:
    if importlib.util.find_spec(name) is None:
        return Requirement(name, serves, None, Unavailable("it is not installed", remedy))
    try:
        return Requirement(name, serves, version(name))
    except PackageNotFoundError:
        return Requirement(name, serves, "unknown version")


def _image_libraries() -> Requirement:
    """OpenCV's wheel links against two system libraries that a small Debian does not have."""
    name, serves = "OpenCV", "reading and drawing images"
    package = _package("cv2", serves, 'pip install -c constraints.txt ".[all]"')
    if package.found is None:
        return Requirement(name, serves, None, package.unavailable)
    lacking = [library for library in ("GL", "glib-2.0") if ctypes.util.find_library(library) is None]
    if lacking:
        return Requirement(
            name,
            serves,
            None,
            Unavailable(
                f"the system has no lib{' and no lib'.join(lacking)}", "sudo apt-get install -y libgl1 libglib2.0-0"
            ),
        )
    return Requirement(name, serves, version("opencv-python"))
