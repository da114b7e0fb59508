"""The vision libraries, imported only when a model needs them, and with their side effects switched off."""

from __future__ import annotations

import importlib
import importlib.util
import os
from pathlib import Path
from types import ModuleType
from typing import Final

import msgspec

from hwprof import packages
from hwprof.data_files import read_toml
from hwprof.errors import HwprofError, first_line

_ULTRALYTICS_ENVIRONMENT = {
    "YOLO_OFFLINE": "true",  # no version look-up, no telemetry
    "YOLO_AUTOINSTALL": "false",
    "YOLO_VERBOSE": "false",
}


MOST_PIXELS = 1 << 28
"""That an image may have: 800 MB, from a file of a few kilobytes. ``OPENCV_IO_MAX_IMAGE_PIXELS`` allows more."""


VIDEO_OPTIONS: Final = "OPENCV_FFMPEG_CAPTURE_OPTIONS"
"""A variable of the environment: OpenCV hands what it says to FFmpeg whenever it opens a video."""


class _VideoFormats(msgspec.Struct, forbid_unknown_fields=True):
    demuxers: list[str]
    protocols: list[str]


def require_cv2() -> ModuleType:
    """OpenCV; raises ``HwprofError`` with the way to get it, or the system libraries it needs."""
    os.environ.setdefault("OPENCV_IO_MAX_IMAGE_PIXELS", str(MOST_PIXELS))  # read when it is loaded
    if VIDEO_OPTIONS not in os.environ:
        os.environ[VIDEO_OPTIONS] = _restricted()
    try:
        return importlib.import_module("cv2")
    except ModuleNotFoundError as error:
        raise _missing_yolo_extra(error) from error
    except ImportError as error:  # a shared library of the system is missing: libGL.so.1, libgthread-2.0.so.0
        raise HwprofError(f"OpenCV cannot be loaded: {error}", "sudo apt-get install -y libgl1 libglib2.0-0") from error


def require_ultralytics(submodule: str = "nn.tasks") -> ModuleType:
    """``ultralytics.<submodule>``, imported without network, installation or the user's own settings.

    It writes a settings file when it is imported: into hwprof's cache folder, unless ``YOLO_CONFIG_DIR`` names one.
    Raises ``HwprofError`` where it is not installed or does not load.
    """
    require_cv2()
    for name, value in _ULTRALYTICS_ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    if "YOLO_CONFIG_DIR" not in os.environ:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        os.environ["YOLO_CONFIG_DIR"] = str(cache / "hwprof")
    try:
        return importlib.import_module(f"ultralytics.{submodule}")
    except ModuleNotFoundError as error:
        raise _missing_yolo_extra(error) from error
    except (ImportError, OSError) as error:
        raise HwprofError(f"ultralytics cannot be loaded: {first_line(error)}") from error


def ultralytics_folder() -> Path | None:
    """Where ultralytics is installed, found without importing it; ``None`` where it is not."""
    found = importlib.util.find_spec("ultralytics")
    if found is None or found.origin is None:
        return None
    return Path(found.origin).parent


def _restricted() -> str:
    """FFmpeg opens the files and addresses that a play list names; it may not, unless the user wants other options."""
    formats = read_toml(__name__, "video_formats.toml", _VideoFormats)
    return f"protocol_whitelist;{','.join(formats.protocols)}|format_whitelist;{','.join(formats.demuxers)}"


def _missing_yolo_extra(error: ModuleNotFoundError) -> HwprofError:
    return HwprofError(f"YOLO models need the Python module {error.name}", packages.YOLO)
