from __future__ import annotations

import subprocess
import sys
from contextlib import AbstractContextManager

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from hwprof.workload import layer_tables
from hwprof.workload.factory import build
from hwprof.workload.shape_flops import ShapeFlops
from hwprof.workload.spec import WorkloadSpec

CASES = {
    "stride and padding": (nn.Conv2d(3, 8, 3, stride=2, padding=1), (2, 3, 17, 12)),
    "dilation and groups": (nn.Conv2d(4, 8, 3, dilation=2, groups=2), (1, 4, 20, 16)),
    "uneven kernel": (nn.Conv2d(3, 5, (1, 7), stride=(1, 3), padding=(0, 2)), (1, 3, 9, 31)),
    "one dimension": (nn.Conv1d(3, 5, 4, stride=3), (2, 3, 31)),
    "transposed": (nn.ConvTranspose2d(3, 5, 3, stride=2), (1, 3, 9, 8)),
    "activation": (nn.Sequential(nn.Conv2d(3, 4, 1), nn.SiLU(), nn.MaxPool2d(2)), (1, 3, 8, 8)),
    "linear": (nn.Linear(6, 4), (5, 6)),
}


@pytest.mark.parametrize("case", CASES)
def test_shapes_and_flops_are_those_of_the_real_forward(case: str) -> None:
    module, shape = CASES[case]
    x = torch.rand(shape)
    with torch.no_grad():
        with FlopCounterMode(display=False) as expected:
            real = module(x)
        with ShapeFlops() as counted:
            found = module(x)
    assert (found.shape, found.dtype) == (real.shape, real.dtype)
    assert counted.by_type.total() == expected.get_total_flops()


@pytest.mark.parametrize("dimension", [0, 1, -1])
def test_concatenations_have_the_shape_that_torch_gives_them(dimension: int) -> None:
    x = torch.rand(2, 3, 4)
    expected = torch.cat([x, x], dimension).shape
    with ShapeFlops():
        assert torch.cat([x, x], dimension).shape == expected
        with pytest.raises(RuntimeError):
            torch.cat([x, torch.rand(5, 6, 7)], dimension)


@pytest.mark.parametrize("model", ["yolov7", "yolov8n"])
def test_layer_tables_are_the_same_with_and_without_arithmetic(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    workload = build(WorkloadSpec(model=model, imgsz=64))
    workload.prepare(values=False)
    quick = layer_tables.layer_tables(workload)
    monkeypatch.setattr(workload, "shapes_suffice", False)
    for one, other in zip(quick, layer_tables.layer_tables(workload), strict=True):
        assert one.equals(other)


def test_an_operator_that_zeros_without_memory_break_is_run_for_real(monkeypatch: pytest.MonkeyPatch) -> None:
    workload = build(WorkloadSpec(model="yolov8n", imgsz=64))
    workload.prepare(values=False)
    quick = layer_tables.layer_tables(workload)

    def broken() -> AbstractContextManager[None]:
        raise RuntimeError("unsupported operation")

    monkeypatch.setattr(layer_tables, "ShapeFlops", broken)
    for one, other in zip(quick, layer_tables.layer_tables(workload), strict=True):
        assert one.equals(other)


def test_neither_sympy_nor_the_compiler_is_imported() -> None:
    """They take longer than the rest of ``hwprof layers`` after torch."""
    code = (
        "import sys\nfrom hwprof.cli.app import run\n"
        "run(['layers', '--model', 'yolov7', '--imgsz', '64', '--format', 'csv'])\n"
        "assert not {'sympy', 'torch._dynamo'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
