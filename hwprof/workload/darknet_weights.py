"""Darknet's own files of weights (.weights): a header, and 32-bit floats in the order of the model's layers."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from torch import nn

from hwprof.errors import HwprofError, UsageError
from hwprof.workload.darknet_layers import Detections, PlainConv
from hwprof.workload.tensors import StateDict

SUFFIX: Final = ".weights"

VERSION: Final = struct.Struct("<3i")
SEEN: Final = {False: struct.Struct("<i"), True: struct.Struct("<q")}
"""How many images it was trained with: since version 0.2 in 64 bits."""

FLOAT_BYTES: Final = 4


@dataclass(frozen=True)
class DarknetWeights:
    """A file of which only the model tells what its numbers are."""

    path: Path
    state: StateDict = field(default_factory=dict)  # it names no tensors
    names: Mapping[int, str] = field(default_factory=dict)  # nor classes
    layout: str = ""  # nor its .cfg
    described: Mapping[str, Any] = field(default_factory=dict)

    def load_into(self, model: nn.Module, fuse: Callable[[], None] | None = None) -> bool:
        """Copies them into a model that is not fused. Raises ``UsageError`` where it is no model of Darknet, or has
        another number of parameters, and ``HwprofError`` for a file that cannot be read."""
        del fuse  # such files hold batch normalisation
        if not any(isinstance(module, Detections) for module in model.modules()):
            raise UsageError(f"{self.path} is for models of Darknet", "--model with their .cfg: --model yolov4.cfg")
        wanted = numbers_in_file(model)
        try:
            with self.path.open("rb") as file:
                head = file.read(VERSION.size)
                if len(head) < VERSION.size:
                    raise UsageError(f"{self.path} is shorter than a header", "another copy of it")
                major, minor, _ = VERSION.unpack(head)
                begin = VERSION.size + SEEN[10 * major + minor >= 2].size
                there_bytes = max(0, self.path.stat().st_size - begin)
                if there_bytes != FLOAT_BYTES * wanted:
                    sizes = f"{there_bytes:,} bytes of numbers, the model's take {FLOAT_BYTES * wanted:,}"
                    raise UsageError(f"{self.path} holds {sizes}", "the .cfg that it belongs to, or another copy of it")
                file.seek(begin)
                numbers = np.fromfile(file, dtype="<f4", count=wanted)
            if len(numbers) != wanted:
                raise HwprofError(f"{self.path} became shorter while it was read", "a file that nobody writes to")
        except OSError as error:
            raise HwprofError(f"cannot read {self.path}: {error.strerror or error}") from error
        place = 0
        with torch.no_grad():
            for tensor in parameters_in_file(model):
                until = place + tensor.numel()
                tensor.copy_(torch.from_numpy(numbers[place:until].astype(np.float32)).view_as(tensor))
                place = until
        return False


def parameters_in_file(model: nn.Module) -> list[torch.Tensor]:
    """The tensors of a .weights file, in its order: of each convolution its biases, or its batch normalisation, before
    its weights."""
    found: list[torch.Tensor] = []
    for module in model.modules():
        conv, norm = getattr(module, "conv", None), getattr(module, "bn", None)
        if isinstance(module, PlainConv):
            assert module.conv.bias is not None
            found += [module.conv.bias, module.conv.weight]
        elif isinstance(conv, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d):
            assert norm.running_mean is not None and norm.running_var is not None
            found += [norm.bias, norm.weight, norm.running_mean, norm.running_var, conv.weight]
    return found


def numbers_in_file(model: nn.Module) -> int:
    """How many numbers these are."""
    return sum(tensor.numel() for tensor in parameters_in_file(model))
