"""Which software a run names."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from hwprof.session import versions


def test_a_run_names_the_libraries_that_its_process_has_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model of torch's alone was not measured with ultralytics, wherever that is installed."""
    monkeypatch.setattr(versions, "version", lambda package: f"{package} 1")
    monkeypatch.setitem(sys.modules, "torch", ModuleType("torch"))
    monkeypatch.setitem(sys.modules, "ultralytics", ModuleType("ultralytics"))
    assert versions.versions()["ultralytics"] == "ultralytics 1"
    monkeypatch.delitem(sys.modules, "ultralytics")
    found = versions.versions()
    assert "ultralytics" not in found and found["torch"] == "torch 1"
