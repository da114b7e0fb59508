"""A Darknet model as modules of torch, numbered as its layers are: ``model.7.conv`` is the convolution of layer 7.

Imported only after ``libraries.require_ultralytics``.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from torch import nn

from hwprof.workload.architecture import ArchitectureModel
from hwprof.workload.darknet_cfg import Section, read_cfg
from hwprof.workload.darknet_layers import Detections, MaxPool, PlainConv, Route, Shortcut, Yolo
from hwprof.workload.yolov7_blocks import Conv

MOST_PARAMETERS: Final = 2_000_000_000
"""Of a layer, and of a model: the largest that anybody has published has a tenth."""

MOST_STRIDE: Final = 1024
MOST_PLACES: Final = 64
"""What nobody has, and what no memory holds."""

ACTIVATIONS: Final[dict[str, Callable[[], nn.Module | None]]] = {
    "elu": nn.ELU,
    "gelu": lambda: nn.GELU("tanh"),
    "hardtan": nn.Hardtanh,
    "leaky": lambda: nn.LeakyReLU(0.1),
    "linear": lambda: None,
    "logistic": nn.Sigmoid,
    "mish": nn.Mish,
    "relu": nn.ReLU,
    "relu6": nn.ReLU6,
    "silu": nn.SiLU,
    "swish": nn.SiLU,
    "tanh": nn.Tanh,
}


PLAIN: Final = {
    "antialiasing": "0", "assisted_excitation": "0", "binary": "0", "coordconv": "0", "deform": "0",
    "maxpool_depth": "0", "reverse": "0", "rotate": "0", "scale": "1", "share_index": "", "stretch": "0",
    "stretch_sway": "0", "sway": "0", "weights_type": "none", "xnor": "0",
}  # fmt: skip
"""Keys that change what a layer does, with the value at which they do not."""


def build_darknet(file: Path) -> ArchitectureModel:
    """The model of a .cfg, not fused, weights as PyTorch draws them. Raises ``UsageError`` for layers that there are
    not here, and for numbers that do not fit."""
    network, sections = read_cfg(file)
    if network.whole("channels", 3) != 3:
        raise network.error("channels: an image has three")
    builder = _Builder()
    for section in sections:
        builder.add(section)
    return builder.model(network)


class _Builder:
    """Layer by layer: the modules, what they read, and of what they put out the channels and the stride."""

    def __init__(self) -> None:
        self._modules: list[nn.Module] = []
        self._sources: list[int | tuple[int, ...]] = []
        self._channels: list[int] = []
        self._strides: list[Fraction] = []
        self._parameters = 0

    def add(self, section: Section) -> None:
        """One more layer."""
        makers = {
            "convolutional": self._convolution,
            "conv": self._convolution,
            "shortcut": self._shortcut,
            "route": self._route,
            "maxpool": self._maxpool,
            "upsample": self._upsample,
            "dropout": self._nothing,
            "yolo": self._yolo,
        }
        make = makers.get(section.kind)
        if make is None:
            near = difflib.get_close_matches(section.kind, makers, n=1)
            remedy = f"did you mean [{near[0]}]?" if near else f"a model of these layers: {', '.join(makers)}"
            raise section.error("it is none of the layers that are read here", remedy)
        for key, plain in PLAIN.items():
            if section.text(key, plain) != plain:
                raise section.error(f"{key}={section.text(key, '')[:40]} is not read here")
        for key in ("stride_x", "stride_y"):
            if section.whole(key, section.whole("stride", 1)) != section.whole("stride", 1):
                raise section.error(f"{key} other than stride is not read here")
        make(section)
        if self._strides[-1] > MOST_STRIDE:
            raise section.error(f"the strides until here come to more than {MOST_STRIDE:,}")

    def model(self, network: Section) -> ArchitectureModel:
        """Of all layers."""
        heads = [(place, one) for place, one in enumerate(self._modules) if isinstance(one, Yolo)]
        if not heads:
            raise network.error("no layer is a [yolo]: what it puts out is no boxes")
        scoring = [self._scoring(network, place) for place, _ in heads]
        if len({(head.nc, head.na) for _, head in heads}) > 1:
            raise network.error("its [yolo] layers differ in classes or in the number of anchors")
        deepest = max(math.ceil(stride) for stride in self._strides)
        self._modules.append(Detections([head for _, head in heads], scoring, deepest))
        self._sources.append(tuple(place for place, _ in heads))
        return ArchitectureModel(self._modules, self._sources)

    def _scoring(self, network: Section, place: int) -> nn.Conv2d:
        """The convolution that a [yolo] layer reads."""
        before = self._modules[place - 1] if place else None
        if not isinstance(before, PlainConv):
            raise network.error(f"layer {place} [yolo] reads no [convolutional] without batch_normalize")
        return before.conv

    def _put(self, module: nn.Module, source: int | tuple[int, ...], channels: int, stride: Fraction) -> None:
        self._modules.append(module)
        self._sources.append(source)
        self._channels.append(channels)
        self._strides.append(stride)

    def _before(self) -> tuple[int, int, Fraction]:
        """Of the last layer, or of the input: its place, channels, stride."""
        last = len(self._modules) - 1
        return (last, self._channels[last], self._strides[last]) if last >= 0 else (-1, 3, Fraction(1))

    def _convolution(self, section: Section) -> None:
        source, channels, stride = self._before()
        filters, size = section.whole("filters", 1, least=1), section.whole("size", 1, least=1, most=255)
        step, groups = section.whole("stride", 1, least=1, most=255), section.whole("groups", 1, least=1)
        dilation = section.whole("dilation", 1, least=1, most=255)
        padding = size // 2 if section.whole("pad", 0) else section.whole("padding", 0, most=255)
        if channels % groups or filters % groups:
            raise section.error(f"groups={groups} divides {channels} channels or {filters} filters not evenly")
        self._parameters += filters * (channels // groups) * size * size
        if self._parameters > MOST_PARAMETERS:
            raise section.error(f"the model has more than {MOST_PARAMETERS:,} parameters with it")
        act = self._activation(section, "logistic")
        if section.whole("batch_normalize", 0):
            module: Any = Conv(
                channels, filters, size, step, padding * dilation, groups, dilation, act or nn.Identity()
            )
        else:
            conv = nn.Conv2d(channels, filters, size, step, padding * dilation, dilation, groups)
            module = PlainConv(conv, act)
        self._put(module, source, filters, stride * step)

    def _shortcut(self, section: Section) -> None:
        source, channels, stride = self._before()
        places = (source, *self._places(section, "from"))
        self._require_alike(section, places)
        if {self._channels[place] for place in places} != {channels}:
            raise section.error("it adds layers of different numbers of channels")
        self._put(Shortcut(self._activation(section, "linear")), places, channels, stride)

    def _route(self, section: Section) -> None:
        places = self._places(section, "layers")
        self._require_alike(section, places)
        groups = section.whole("groups", 1, least=1)
        group = section.whole("group_id", 0, most=groups - 1)
        if any(self._channels[place] % groups for place in places):
            raise section.error(f"groups={groups} divides the channels not evenly")
        channels = sum(self._channels[place] for place in places) // groups
        self._put(Route(groups, group), places, channels, self._strides[places[0]])

    def _maxpool(self, section: Section) -> None:
        source, channels, stride = self._before()
        step = section.whole("stride", 1, least=1, most=255)
        size = section.whole("size", step, least=1, most=255)
        module = MaxPool(size, step, section.whole("padding", size - 1, most=size))
        self._put(module, source, channels, stride * step)

    def _upsample(self, section: Section) -> None:
        source, channels, stride = self._before()
        step = section.whole("stride", 2, least=1, most=255)
        self._put(nn.Upsample(scale_factor=step, mode="nearest"), source, channels, stride / step)

    def _nothing(self, _: Section) -> None:
        source, channels, stride = self._before()
        self._put(nn.Identity(), source, channels, stride)

    def _yolo(self, section: Section) -> None:
        source, channels, stride = self._before()
        if stride.denominator != 1:
            raise section.error("it lies finer than the input")
        head = Yolo(section, int(stride))
        if channels != head.na * head.no:
            raise section.error(f"it reads {channels} channels and needs {head.na} x (5 + {head.nc})")
        self._put(head, source, channels, stride)

    def _places(self, section: Section, key: str) -> tuple[int, ...]:
        """The layers that it reads."""
        here = len(self._modules)
        places = tuple(here + place if place < 0 else place for place in section.wholes(key))
        if not places or not all(0 <= place < here for place in places):
            raise section.error(f"{key}={section.text(key, '')[:40]} names no layers before it")
        if len(places) > MOST_PLACES:
            raise section.error(f"it reads more than {MOST_PLACES} layers")
        return places

    def _require_alike(self, section: Section, places: Sequence[int]) -> None:
        if len({self._strides[place] for place in places}) > 1:
            raise section.error("it joins layers of different sizes")

    def _activation(self, section: Section, otherwise: str) -> nn.Module | None:
        name = section.text("activation", otherwise)
        if name not in ACTIVATIONS:
            raise section.error(f"activation={name[:40]} is none that is read here")
        return ACTIVATIONS[name]()
