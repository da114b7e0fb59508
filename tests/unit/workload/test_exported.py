"""Why a model cannot be exported, or what is exported not be loaded."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from hwprof.errors import FullDiskError, HwprofError
from hwprof.workload.runtimes import exported
from hwprof.workload.runtimes.flat_call import flatten
from hwprof.workload.runtimes.runtime import loading

CALL = flatten((torch.zeros(1, 3),), {})


class Nodes(list[Any]):
    inputs = ()


class Program:
    """What the exporter gives; ``fails``: where it is to be written."""

    def __init__(self, fails: Exception | None = None) -> None:
        self.model = SimpleNamespace(graph=Nodes())
        self._fails = fails

    def optimize(self) -> None:
        pass

    def save(self, file: str, *, external_data: bool) -> None:
        if self._fails is not None:
            raise self._fails
        Path(file).touch()


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Program:
    found = Program()

    def export(flat: nn.Module, tensors: Sequence[torch.Tensor]) -> Program:
        flat(*tensors)
        return found

    monkeypatch.setattr(exported, "_program", export)
    return found


def test_a_model_whose_call_the_exporter_has_not_followed_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exported, "_program", lambda flat, tensors: Program())
    with (
        pytest.raises(HwprofError, match=r"cannot be exported to ONNX: its code decides by values .* Try: torch\.cond"),
        exported.exported(nn.Linear(3, 3), CALL),
    ):
        pass


def test_a_full_disk_is_told_and_not_the_model_blamed(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    program._fails = RuntimeError("cannot write")
    program._fails.__cause__ = OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(FullDiskError, match="no space left"), exported.exported(nn.Linear(3, 3), CALL):
        pass
    program._fails = None

    def load() -> None:
        with exported.exported(nn.Linear(3, 3), CALL), loading("ONNX Runtime"):
            raise ValueError("Protobuf serialization failed.")

    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=100_000))
    with pytest.raises(HwprofError, match=r"serialization failed\.; 0\.1 MB are free in.*weights.* Try: free some"):
        load()
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1 << 30))
    with pytest.raises(HwprofError, match=r"serialization failed\.$"):
        load()
