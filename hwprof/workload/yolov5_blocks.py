"""The module that YOLOv5 has otherwise than ultralytics, with the original's parameter names: its checkpoints fit.

Imported only after ``libraries.require_ultralytics``.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from ultralytics.nn import modules as ultralytics_modules

Conv: Any = ultralytics_modules.Conv  # untyped there


class SPPF(nn.Module):
    """Spatial pyramid pooling: the same pooling three times over. Its first convolution has an activation."""

    def __init__(self, c1: int, c2: int, k: int = 5) -> None:
        super().__init__()
        self.cv1 = Conv(c1, c1 // 2, 1, 1)
        self.cv2 = Conv(4 * (c1 // 2), c2, 1, 1)
        self.m = nn.MaxPool2d(kernel_size=k, stride=1, padding=k // 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(B, c1, H, W) -> (B, c2, H, W)."""
        pyramid = [self.cv1(x)]
        for _ in range(3):
            pyramid.append(self.m(pyramid[-1]))
        pooled: torch.Tensor = self.cv2(torch.cat(pyramid, dim=1))
        return pooled
