"""A model from a layout file of ours: numbered modules, each with the places its input comes from.

A line of a layout is [where the input comes from, module, arguments]; a negative source counts back from the line
itself, and the input's channels are known from the sources. A line ``block: [values]`` stands for the lines of that
block, with the values for the names that it ``takes``. The arguments of a module with channels of its own begin with
these, which a layout of several sizes (``scales``) multiplies by the width, and its number of bottlenecks by the depth.

Imported only after ``libraries.require_ultralytics``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch
from torch import nn
from ultralytics.nn import modules as ultralytics_modules

from hwprof.workload.anchor_head import Detect
from hwprof.workload.model_registry import read_yaml
from hwprof.workload.yolov5_blocks import SPPF
from hwprof.workload.yolov7_blocks import MP, SP, SPPCSPC, Conv, DownC, ReOrg, RepConv, Shortcut, folded

Concat: Any = ultralytics_modules.Concat  # untyped there
C3: Any = ultralytics_modules.C3

Line = tuple[int | list[int], str, list[Any]]

CHANNELS_STEP: Final = 8
"""Channels of a scaled layout are a multiple of it."""

WITH_CHANNELS: Final[Mapping[str, Callable[..., nn.Module]]] = {
    "Conv": Conv,
    "C3": C3,
    "SPPF": SPPF,
    "SPPCSPC": SPPCSPC,
    "RepConv": RepConv,
    "DownC": DownC,
}
"""Modules whose first argument says how many channels they put out."""

AS_WIDE: Final[Mapping[str, Callable[..., nn.Module]]] = {
    "MP": MP,
    "SP": SP,
    "Shortcut": Shortcut,
    "Upsample": nn.Upsample,
}
"""Modules that put out as many channels as they take."""


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


def build_architecture(file: Path, scale: str | None = None, classes: int | None = None) -> ArchitectureModel:
    """The model of a layout file, not fused, weights as PyTorch draws them. ``scale``: of several sizes that one;
    ``classes``: how many, in place of the layout's."""
    layout = read_yaml(file)
    layout["classes"] = classes or layout["classes"]
    builder = _Builder(layout, *(layout["scales"][scale] if scale is not None else (1.0, 1.0)))
    channels: list[int] = []
    modules: list[nn.Module] = []
    sources: list[int | tuple[int, ...]] = []
    for index, (source, kind, arguments) in enumerate(_lines(layout)):
        places = tuple(_absolute(place, index) for place in (source if isinstance(source, list) else [source]))
        inputs = [channels[place] if place >= 0 else 3 for place in places]
        module, out = builder.make(kind, inputs, arguments)
        modules.append(module)
        channels.append(out)
        sources.append(places if isinstance(source, list) else places[0])
    model = ArchitectureModel(modules, sources)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):  # YOLO's own values, not PyTorch's
            module.eps, module.momentum = 1e-3, 0.03
        elif isinstance(module, Conv) and "activation" in layout:
            name, *values = layout["activation"]
            module.act = getattr(nn, name)(*values)
    return model


def _lines(layout: Mapping[str, Any]) -> Iterator[Line]:
    """The layout's lines, blocks written out."""
    for line in layout["layers"]:
        if not isinstance(line, dict):
            yield line
            continue
        ((name, values),) = line.items()
        block = layout["blocks"][name]
        given = dict(zip(block["takes"], values, strict=True))
        for source, kind, arguments in block["layers"]:
            told = given[source] if isinstance(source, str) else source
            yield told, kind, [given.get(value, value) if isinstance(value, str) else value for value in arguments]


def _fuse_conv(block: Any) -> None:
    """Leaves ultralytics' ``Conv`` with one convolution that has a bias, and its own way of calling that."""
    weight, bias = folded(block.conv.weight, block.bn)
    block.conv.weight, block.conv.bias = nn.Parameter(weight), nn.Parameter(bias)
    del block.bn
    block.forward = block.forward_fuse


def _absolute(place: int, index: int) -> int:
    """The module that a source names; -1 is the model's input."""
    return place if place >= 0 else index + place


@dataclass(frozen=True)
class _Builder:
    """Makes the modules of a layout, of one of its sizes."""

    layout: Mapping[str, Any]
    depth: float
    width: float

    def make(self, kind: str, inputs: list[int], arguments: list[Any]) -> tuple[nn.Module, int]:
        """A line's module and how many channels it puts out."""
        if kind in WITH_CHANNELS:
            out, *others = arguments
            out = math.ceil(out * self.width / CHANNELS_STEP) * CHANNELS_STEP
            if kind == "C3":
                others[0] = max(round(others[0] * self.depth), 1)
            return WITH_CHANNELS[kind](inputs[0], out, *others), out
        if kind in AS_WIDE:
            return AS_WIDE[kind](*arguments), inputs[0]
        if kind == "ReOrg":
            return ReOrg(), 4 * inputs[0]
        if kind == "Concat":
            return Concat(*arguments), sum(inputs)
        if kind == "Detect":
            (grid_in_state,) = arguments
            classes, anchors, strides = (self.layout[name] for name in ("classes", "anchors", "strides"))
            return Detect(classes, anchors, strides, inputs, grid_in_state=grid_in_state), 0
        raise ValueError(f"a layout names the module {kind}, which there is not")
