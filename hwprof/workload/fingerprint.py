"""What two processes must have in common for the one's counts to belong to the other's times."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable
from typing import Any, Final

import torch

from hwprof.workload.protocol import Workload
from hwprof.workload.tensors import tensors_in, without_repetition

HOLD_KERNELS: Final = (
    "ATEN_CPU_CAPABILITY",
    "ONEDNN_MAX_CPU_ISA",
    "DNNL_MAX_CPU_ISA",
    "MKL_CBWR",
    "MKL_ENABLE_INSTRUCTIONS",
)
"""Variables of the environment by which libraries choose their kernels."""


def fingerprint(workload: Workload) -> dict[str, str]:
    """In words what decides which instructions are executed: a prepared workload's inputs and weights (checksums),
    threads, the instruction set that kernels are chosen for, and PyTorch's version."""
    forwards = workload.forwards()
    weights = (
        tensor
        for module in workload.modules.values()
        for tensors in (module.parameters(), module.buffers())
        for tensor in tensors
    )
    held = [f"{name}={os.environ[name]}" for name in HOLD_KERNELS if name in os.environ]
    return {
        "inputs": _checksum(tensor for call in forwards for tensor in tensors_in((call.arguments, call.keywords))),
        "weights": _checksum(weights),
        "threads": str(torch.get_num_threads()),
        "instruction set": " ".join([torch.backends.cpu.get_cpu_capability(), *held]),
        "PyTorch": str(torch.__version__),
    }


def _checksum(tensors: Iterable[torch.Tensor]) -> str:
    """CRC-32 of types, shapes and contents."""
    found = 0
    for tensor in tensors:
        found = zlib.crc32(f"{tensor.dtype} {tuple(tensor.shape)}".encode(), found)
        data = _bytes(tensor)
        if data is not None:
            found = zlib.crc32(data, found)
    return f"{found:08x}"


def _bytes(tensor: torch.Tensor) -> Any:
    """The contents, as a buffer, what a stride of 0 repeats once; None of kinds that do not show them (sparse,
    quantised by channel, made up)."""
    try:
        return without_repetition(tensor.detach()).contiguous().reshape(-1).view(torch.uint8).numpy()
    except (RuntimeError, TypeError, NotImplementedError):
        return None
