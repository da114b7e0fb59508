"""What a test needs from the machine: in CI a missing tool fails, on a user's machine the test skips and says why."""

from __future__ import annotations

import importlib
import os
import shutil
from types import ModuleType
from typing import NoReturn

import pytest

MUST_HAVE = bool(os.environ.get("HWPROF_REQUIRE_TOOLS"))


def missing(what: str) -> NoReturn:
    """Fails where tools are required (``HWPROF_REQUIRE_TOOLS=1``), skips elsewhere."""
    if MUST_HAVE:
        pytest.fail(f"needs {what}, which HWPROF_REQUIRE_TOOLS does not forgive", pytrace=False)
    pytest.skip(f"needs {what}")


def require_tool(name: str) -> str:
    """The path of an executable."""
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if path is None:
        missing(f"the program {name}")
    return path


def require_sampler() -> None:
    """Processor time can be sampled here."""
    from collectors.sampler.collector import SamplerCollector

    available = SamplerCollector().availability()
    if not available.ok:
        missing(f"perf events ({available.reason})")


def require_module(name: str) -> ModuleType:
    """An importable module."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        missing(f"the Python module {name} ({error})")
