"""The versions of what a pass was measured with."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version


def versions() -> dict[str, str]:
    """Of Python, and of those libraries that this process has loaded: what is merely installed measured nothing."""
    found = {"python": platform.python_version()}
    for package in ("torch", "ultralytics", "numpy", "onnxruntime", "openvino"):
        if package not in sys.modules:
            continue
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
