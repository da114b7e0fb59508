"""Whether compiled modules are kept: what hwprof looks at before anything else."""

from __future__ import annotations

import os
import resource
import sys
from types import SimpleNamespace

import pytest

from hwprof import bytecode


@pytest.mark.parametrize(
    ("limit", "free_mb", "kept"),
    [(resource.RLIM_INFINITY, 1000, True), (4096, 1000, False), (resource.RLIM_INFINITY, 100, False)],
)
def test_where_files_may_not_grow_no_compiled_module_is_kept(
    limit: int, free_mb: int, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda which: (limit, resource.RLIM_INFINITY))
    monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(f_bavail=free_mb << 8, f_frsize=4096))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    bytecode.keep_whole()
    assert sys.dont_write_bytecode is not kept
    assert ("PYTHONDONTWRITEBYTECODE" in os.environ) is not kept
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
