"""What hwprof's commands need, as ``hwprof doctor`` tells it."""

from __future__ import annotations

import ctypes.util
import importlib.util
import os
import shutil
from importlib.machinery import ModuleSpec
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest

from hwprof import programs
from hwprof.programs import Ended, ProgramError
from hwprof.remedies import catalogue
from hwprof.session import requirements
from hwprof.unavailable import Unavailable

NAME = "torchvision"


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: ModuleSpec(name, None))
    monkeypatch.setattr(requirements, "version", lambda _: "0.1")


def told(monkeypatch: pytest.MonkeyPatch, done: Ended | Exception, name: str = NAME) -> list[Any]:
    """What is said of it where the process that imports it ends so."""

    def run(*_: Any, **__: Any) -> Ended:
        if isinstance(done, Exception):
            raise done
        return done

    monkeypatch.setattr(programs, "run", run)
    return [one for one in requirements.check() if one.name == name]


def test_a_cache_folder_that_cannot_be_written_to(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert requirements._cache_folder().found == str(tmp_path / "hwprof")
    monkeypatch.setattr(os, "access", lambda *_: False)
    unavailable = requirements._cache_folder().unavailable
    assert unavailable is not None and "cannot be written to" in unavailable.reason, "a read-only file system"
    assert "XDG_CACHE_HOME" in (unavailable.remedy or "")
    monkeypatch.setenv("XDG_CACHE_HOME", os.devnull)
    unavailable = requirements._cache_folder().unavailable
    assert unavailable is not None and "no cache folder: Not a directory" in unavailable.reason


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("done", "reason"),
    [
        (Ended(1, b"", b"Traceback:\nRuntimeError: no operator\n"), "RuntimeError: no operator"),
        (Ended(-11, b"", b""), "signal 11"),
        (ProgramError("python did not end within 60 s"), "did not end"),
    ],
)
def test_an_installed_package_that_cannot_be_imported_has_a_remedy(
    done: Ended | Exception, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (found,) = told(monkeypatch, done)
    assert found.found is None and found.unavailable is not None
    assert reason in found.unavailable.reason and found.unavailable.remedy is not None


@pytest.mark.usefixtures("installed")
def test_one_that_can_be_imported_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    (found,) = told(monkeypatch, Ended(0, b"", b""))
    assert (found.found, found.unavailable) == ("0.1", None)


def test_one_that_is_not_installed_is_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert told(monkeypatch, RuntimeError("nobody starts a process")) == []


def test_ultralytics_needs_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """It looks whether it is installed; who takes away one that cannot be imported has no YOLO models any more."""
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: ModuleSpec(name, None) if name == "ultralytics" else None
    )
    monkeypatch.setattr(requirements, "version", lambda _: "0.1")
    (found,) = told(monkeypatch, RuntimeError("nobody starts a process"))
    assert found.found is None and found.unavailable is not None
    assert "YOLO" in found.serves
    assert "uninstall" not in (found.unavailable.remedy or "")


def wheels(name: str) -> str:
    if name != "opencv-python-headless":
        raise PackageNotFoundError(name)
    return "4.10"


def test_an_opencv_without_windows_needs_no_libraries_of_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: ModuleSpec(name, None))
    monkeypatch.setattr(requirements, "version", wheels)
    monkeypatch.setattr(ctypes.util, "find_library", lambda _: None)
    (found,) = told(monkeypatch, Ended(0, b"", b""), "OpenCV")
    assert (found.found, found.unavailable) == ("opencv-python-headless 4.10", None)
    (found,) = told(monkeypatch, Ended(1, b"", b"ImportError: libGL.so.1"), "OpenCV")
    assert found.unavailable.reason == "the system has no libGL and no libglib-2.0"
    assert "apt-get install -y libgl1" in found.unavailable.remedy
    monkeypatch.setattr(ctypes.util, "find_library", lambda name: f"lib{name}.so")
    (found,) = told(monkeypatch, Ended(1, b"", b"ImportError: numpy is too old"), "OpenCV")
    assert found.unavailable.reason == "it cannot be imported: ImportError: numpy is too old"


def test_what_bench_and_variants_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "_why_not_imported", lambda _: None)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setattr(catalogue, "ready", lambda name: Unavailable("it is not installed", f"install {name}"))
    found = {one.name: one for one in requirements.check()}
    assert {"pyperf", "matplotlib", "fsspec", "ray"} <= found.keys()
    for name in ("tcmalloc", "jemalloc", "onnxruntime", "openvino", "C++ compiler"):
        assert found[name].serves.startswith("--variant ") and found[name].found is None, name
    assert "channels_last" not in found, "torch has it"
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setenv("CXX", "clang++")
    assert {one.name: one.found for one in requirements._variants()}["C++ compiler"] == "clang++"
