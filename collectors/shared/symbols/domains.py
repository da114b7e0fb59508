"""What code is there for, by the name of its file. Data: ``domains.toml``."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from functools import cache

import msgspec

from hwprof.data_files import read_toml


class Domain(StrEnum):
    """What code is there for."""

    JIT = "jit"  # code made at run time: oneDNN's, fbgemm's
    TORCH = "torch"
    RUNTIME = "runtime"  # what runs a model in torch's place: ONNX Runtime, OpenVINO
    OPENMP = "openmp"  # waiting for other threads, and bringing them to work
    TBB = "tbb"  # the same, of threads that are Intel's library's
    PYTHON = "python"
    SYSTEM = "system"  # libc, libm, libstdc++, the loader, the vdso
    OTHER = "other"
    OWN = "own"  # what counts, which is not counted
    KERNEL = "kernel"  # the operating system's


class _Entry(msgspec.Struct, forbid_unknown_fields=True):
    name: Domain
    begins: tuple[str, ...] = ()
    within: tuple[str, ...] = ()

    def matches(self, name: str, folders: Sequence[str]) -> bool:
        return name.startswith(self.begins) or any(folder.startswith(self.within) for folder in folders)


class _File(msgspec.Struct, forbid_unknown_fields=True):
    domain: tuple[_Entry, ...]


def domain_of(path: str) -> Domain:
    """By the name of the file, and of the folders that it is in."""
    *folders, name = path.split("/")
    return next((entry.name for entry in _entries() if entry.matches(name, folders)), Domain.OTHER)


@cache
def _entries() -> tuple[_Entry, ...]:
    return read_toml(__name__, "domains.toml", _File).domain
