"""The layers of Darknet's models as modules of torch."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn
from torch.nn import functional

from hwprof.workload.anchor_head import cells
from hwprof.workload.darknet_cfg import Section


class PlainConv(nn.Module):
    """A convolution with a bias, without batch normalisation."""

    def __init__(self, conv: nn.Conv2d, act: nn.Module | None) -> None:
        super().__init__()
        self.conv = conv
        self.act = act

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(B, C, H, W) -> (B, filters, H/stride, W/stride)."""
        y: torch.Tensor = self.conv(x)
        return y if self.act is None else self.act(y)


class Shortcut(nn.Module):
    """A sum, and an activation of it."""

    def __init__(self, act: nn.Module | None) -> None:
        super().__init__()
        self.act = act

    def forward(self, inputs: Sequence[torch.Tensor]) -> torch.Tensor:
        """Two or more of (B, C, H, W) -> the same."""
        y: torch.Tensor = sum(inputs[1:], inputs[0])
        return y if self.act is None else self.act(y)


class Route(nn.Module):
    """Layers side by side, or one of several groups of their channels."""

    def __init__(self, groups: int, group: int) -> None:
        super().__init__()
        self.groups, self.group = groups, group

    def forward(self, inputs: Sequence[torch.Tensor]) -> torch.Tensor:
        """Some of (B, Ci, H, W) -> (B, sum of Ci / groups, H, W)."""
        parts = [x.chunk(self.groups, dim=1)[self.group] for x in inputs] if self.groups > 1 else list(inputs)
        return torch.cat(parts, dim=1) if len(parts) > 1 else parts[0]


class MaxPool(nn.Module):
    """Padded to the right and below by one more than to the left and above, where the size is even."""

    def __init__(self, size: int, stride: int, padding: int) -> None:
        super().__init__()
        self.size, self.stride, self.padding = size, stride, padding

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(B, C, H, W) -> (B, C, (H + padding - size) / stride + 1, …)."""
        before = self.padding // 2
        if 2 * before == self.padding:
            return functional.max_pool2d(x, self.size, self.stride, before)
        # no copy for what no window reaches
        after = [self._reach(side) - before - side for side in (x.shape[-1], x.shape[-2])]
        if before or max(after) > 0:
            x = functional.pad(x, (before, max(after[0], 0), before, max(after[1], 0)), value=-torch.inf)
        return functional.max_pool2d(x, self.size, self.stride)

    def _reach(self, side: int) -> int:
        """Where the last window ends, counted from the first one's begin."""
        return (side + self.padding - self.size) // self.stride * self.stride + self.size


class Yolo(nn.Module):
    """The boxes of one stride, relative to its anchors."""

    anchors: torch.Tensor

    def __init__(self, section: Section, stride: int) -> None:
        super().__init__()
        self.nc = section.whole("classes", 20, least=1, most=10_000)
        self.no = self.nc + 5
        pairs = torch.tensor(_anchors(section), dtype=torch.float32)
        self.na = len(pairs)
        self.stride = stride
        self.scale = section.real("scale_x_y", 1.0)
        self.new_coords = bool(section.whole("new_coords", 0))
        self.register_buffer("anchors", pairs.view(1, self.na, 1, 1, 2), persistent=False)
        self._grids: dict[tuple[int, int], torch.Tensor] = {}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(B, anchors · (5 + nc), H, W) -> (B, anchors · H · W, 5 + nc): x, y, w, h in pixels, objectness, classes."""
        batch, _, height, width = x.shape
        y = x.view(batch, self.na, self.no, height, width).permute(0, 1, 3, 4, 2)
        y = y.clone() if self.new_coords else torch.cat((y[..., :2].sigmoid(), y[..., 2:4], y[..., 4:].sigmoid()), -1)
        if (height, width) not in self._grids:
            self._grids[height, width] = cells(height, width)
        y[..., :2] = (y[..., :2] * self.scale - 0.5 * (self.scale - 1) + self._grids[height, width]) * self.stride
        sides = (2 * y[..., 2:4]) ** 2 if self.new_coords else y[..., 2:4].exp()
        y[..., 2:4] = sides * self.anchors
        return y.reshape(batch, -1, self.no)


class Detections(nn.Module):
    """What all strides found; ``m``: the convolutions that score, ``nc``, ``na``: as other heads have them.
    ``deepest``: the largest stride of any layer, which the sides of an input are multiples of."""

    def __init__(self, heads: Sequence[Yolo], scoring: Sequence[nn.Conv2d], deepest: int) -> None:
        super().__init__()
        self.m = tuple(scoring)  # no submodules: they are the layers'
        self.deepest = deepest
        self.nc, self.na = heads[0].nc, heads[0].na

    def forward(self, found: Sequence[torch.Tensor]) -> torch.Tensor:
        """Of each stride (B, Ni, 5 + nc) -> (B, sum of Ni, 5 + nc)."""
        return torch.cat(list(found), dim=1)


def _anchors(section: Section) -> list[tuple[float, float]]:
    """Those of its mask, in pixels."""
    sides = section.reals("anchors")
    pairs = list(zip(sides[::2], sides[1::2], strict=False))
    chosen = section.wholes("mask") if "mask" in section.values else list(range(len(pairs)))
    if not chosen or not all(0 <= one < len(pairs) for one in chosen):
        raise section.error(f"mask={section.text('mask', '')} names anchors that there are not")
    return [pairs[one] for one in chosen]
