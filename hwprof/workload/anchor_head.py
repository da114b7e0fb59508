"""The head that says where boxes are relative to anchors, as YOLOv5 and YOLOv7 have it, with the original's names."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn


class Detect(nn.Module):
    """The anchor head of YOLOv5 and YOLOv7: one 1x1 convolution a stride, and the boxes decoded from it."""

    anchors: torch.Tensor
    anchor_grid: torch.Tensor

    def __init__(
        self,
        nc: int,
        anchors: Sequence[Sequence[float]],
        strides: Sequence[int],
        channels: Sequence[int],
        *,
        grid_in_state: bool = True,
    ) -> None:
        """``grid_in_state``: whether checkpoints have the anchors in pixels too, as YOLOv7's have."""
        super().__init__()
        self.nc = nc
        self.no = nc + 5  # x, y, w, h, objectness, classes
        self.na = len(anchors[0]) // 2
        self.strides = tuple(strides)
        pixels = torch.tensor(anchors, dtype=torch.float32).view(len(anchors), self.na, 2)
        self.register_buffer("anchors", pixels / torch.tensor(strides, dtype=torch.float32).view(-1, 1, 1))
        anchor_grid = pixels.view(len(anchors), 1, self.na, 1, 1, 2).clone()
        self.register_buffer("anchor_grid", anchor_grid, persistent=grid_in_state)
        self.m = nn.ModuleList(nn.Conv2d(c, self.no * self.na, 1) for c in channels)
        self._grids: dict[tuple[int, int], torch.Tensor] = {}

    def forward(self, features: Sequence[torch.Tensor]) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """Decoded predictions (B, N, 5 + nc) as x, y, w, h in pixels of the input, objectness, class probabilities;
        and each stride's raw logits (B, anchors, H, W, 5 + nc)."""
        raw = [self._logits(convolution(x)) for convolution, x in zip(self.m, features, strict=True)]
        return torch.cat([self._decode(level, x) for level, x in enumerate(raw)], dim=1), raw

    def _logits(self, x: torch.Tensor) -> torch.Tensor:
        batch, _, height, width = x.shape
        return x.view(batch, self.na, self.no, height, width).permute(0, 1, 3, 4, 2).contiguous()

    def _decode(self, level: int, logits: torch.Tensor) -> torch.Tensor:
        batch, _, height, width, _ = logits.shape
        y = logits.sigmoid()
        y[..., 0:2] = (y[..., 0:2] * 2.0 - 0.5 + self._grid(height, width)) * self.strides[level]
        y[..., 2:4] = (y[..., 2:4] * 2.0) ** 2 * self.anchor_grid[level]
        return y.view(batch, -1, self.no)

    def _grid(self, height: int, width: int) -> torch.Tensor:
        """The cells' x and y, (1, 1, H, W, 2); made once a shape, as it is the same in every call."""
        if (height, width) not in self._grids:
            self._grids[height, width] = cells(height, width)
        return self._grids[height, width]


def cells(height: int, width: int) -> torch.Tensor:
    """The x and y of each, (1, 1, H, W, 2)."""
    y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    return torch.stack((x, y), dim=2).view(1, 1, height, width, 2).float()
