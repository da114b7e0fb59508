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
        from hwprof.workload.darknet_model import numbers_in_file, parameters_in_file, require_darknet

        require_darknet(model, self.path)
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
