"""A model from a layout file of ours: numbered modules, each with the places its input comes from.

Imported only after ``libraries.require_ultralytics``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn
from ultralytics.nn import modules as ultralytics_modules

from hwprof.workload.model_registry import read_yaml
from hwprof.workload.yolov7_blocks import MP, SPPCSPC, Conv, Detect, RepConv, folded

Concat: Any = ultralytics_modules.Concat  # untyped there


class ArchitectureModel(nn.Module):
    """The modules of a layout in order; outputs that a later module reads are kept until the end of the call."""

    def __init__(self, modules: Sequence[nn.Module], sources: Sequence[int | tuple[int, ...]]) -> None:
        super().__init__()
        self.model = nn.Sequential(*modules)
        self.sources = list(sources)
        named = (source if isinstance(source, tuple) else (source,) for source in sources)
        self._kept = {place for group in named for place in group}

    def forward(self, x: torch.Tensor) -> Any:
        """(B, 3, H, W) in 0..1, H and W multiples of the largest stride -> what the last module returns."""
        kept: dict[int, Any] = {-1: x}
        y: Any = x
        for index, (module, source) in enumerate(zip(self.model, self.sources, strict=True)):
            y = module([kept[place] for place in source] if isinstance(source, tuple) else kept[source])
            if index in self._kept:
                kept[index] = y
        return y

    def fuse(self) -> None:
        """Folds batch normalisation into convolutions and re-parametrises RepConv, for inference."""
        for module in list(self.modules()):
            if isinstance(module, RepConv):
                module.fuse()
            elif isinstance(module, Conv) and hasattr(module, "bn"):
                _fuse_conv(module)
        self.requires_grad_(False)


def build_architecture(file: Path) -> ArchitectureModel:
    """The model of a layout file, not fused, weights as PyTorch draws them."""
    layout = read_yaml(file)
    channels: list[int] = []
    modules: list[nn.Module] = []
    sources: list[int | tuple[int, ...]] = []
    for index, (source, kind, arguments) in enumerate(layout["layers"]):
        places = tuple(_absolute(place, index) for place in (source if isinstance(source, list) else [source]))
        inputs = [channels[place] if place >= 0 else 3 for place in places]
        module, out = _make(kind, inputs, arguments, layout)
        modules.append(module)
        channels.append(out)
        sources.append(places if isinstance(source, list) else places[0])
    model = ArchitectureModel(modules, sources)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):  # YOLO's own values, not PyTorch's
            module.eps, module.momentum = 1e-3, 0.03
    return model


def _fuse_conv(block: Any) -> None:
    """Leaves ultralytics' ``Conv`` with one convolution that has a bias, and its own way of calling that."""
    weight, bias = folded(block.conv.weight, block.bn)
    block.conv.weight, block.conv.bias = nn.Parameter(weight), nn.Parameter(bias)
    del block.bn
    block.forward = block.forward_fuse


def _absolute(place: int, index: int) -> int:
    """The module that a source names; -1 is the model's input."""
    return place if place >= 0 else index + place


def _make(kind: str, inputs: list[int], arguments: list[Any], layout: dict[str, Any]) -> tuple[nn.Module, int]:
    """A line's module and how many channels it puts out."""
    match kind:
        case "Conv":
            return Conv(inputs[0], *arguments), arguments[0]
        case "SPPCSPC":
            return SPPCSPC(inputs[0], *arguments), arguments[0]
        case "RepConv":
            return RepConv(inputs[0], *arguments), arguments[0]
        case "Concat":
            return Concat(*arguments), sum(inputs)
        case "MP":
            return MP(*arguments), inputs[0]
        case "Upsample":
            return nn.Upsample(*arguments), inputs[0]
        case "Detect":
            return Detect(layout["classes"], layout["anchors"], layout["strides"], inputs), 0
    raise ValueError(f"a layout names the module {kind}, which there is not")
