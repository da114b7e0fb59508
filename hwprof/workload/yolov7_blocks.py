"""The modules that YOLOv7 has and ultralytics does not, with the original's parameter names: its checkpoints fit.

Imported only after ``libraries.require_ultralytics``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils.fusion import fuse_conv_bn_weights
from ultralytics.nn import modules as ultralytics_modules

Conv: Any = ultralytics_modules.Conv  # untyped there


class MP(nn.Module):
    """Max-pooling that halves height and width."""

    def __init__(self, k: int = 2) -> None:
        super().__init__()
        self.m = nn.MaxPool2d(kernel_size=k, stride=k)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(B, C, H, W) -> (B, C, H/k, W/k)."""
        pooled: torch.Tensor = self.m(x)
        return pooled


class SPPCSPC(nn.Module):
    """Spatial pyramid pooling on one of two parallel paths (cross-stage partial)."""

    def __init__(self, c1: int, c2: int, kernels: Sequence[int] = (5, 9, 13)) -> None:
        super().__init__()
        self.cv1 = Conv(c1, c2, 1, 1)
        self.cv2 = Conv(c1, c2, 1, 1)
        self.cv3 = Conv(c2, c2, 3, 1)
        self.cv4 = Conv(c2, c2, 1, 1)
        self.m = nn.ModuleList(nn.MaxPool2d(kernel_size=k, stride=1, padding=k // 2) for k in kernels)
        self.cv5 = Conv((1 + len(kernels)) * c2, c2, 1, 1)
        self.cv6 = Conv(c2, c2, 3, 1)
        self.cv7 = Conv(2 * c2, c2, 1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(B, c1, H, W) -> (B, c2, H, W)."""
        narrow = self.cv4(self.cv3(self.cv1(x)))
        pyramid = torch.cat([narrow, *(pool(narrow) for pool in self.m)], dim=1)
        pooled = self.cv6(self.cv5(pyramid))
        joined: torch.Tensor = self.cv7(torch.cat((pooled, self.cv2(x)), dim=1))
        return joined


def folded(weight: torch.Tensor, bn: nn.BatchNorm2d) -> tuple[torch.Tensor, torch.Tensor]:
    """Kernel and bias of a bias-free convolution followed by batch normalisation, as in inference."""
    assert bn.running_mean is not None and bn.running_var is not None
    folded_weight, folded_bias = fuse_conv_bn_weights(
        weight, None, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return folded_weight.detach(), folded_bias.detach()


class ConvBn(nn.Sequential):
    """A convolution without bias and its batch normalisation; its parameters are named ``0.*`` and ``1.*``."""

    def __init__(self, convolution: nn.Conv2d) -> None:
        super().__init__(convolution, nn.BatchNorm2d(convolution.out_channels))

    @property
    def convolution(self) -> nn.Conv2d:
        """The convolution."""
        module = self[0]
        assert isinstance(module, nn.Conv2d)
        return module

    def folded(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Kernel and bias of the one convolution that does the same in inference."""
        norm = self[1]
        assert isinstance(norm, nn.BatchNorm2d)
        return folded(self.convolution.weight, norm)


class RepConv(nn.Module):
    """A 3x3 and a 1x1 convolution (and the identity, where shapes allow) side by side, which ``fuse`` makes one."""

    def __init__(self, c1: int, c2: int, k: int = 3, s: int = 1) -> None:
        super().__init__()
        if k != 3:
            raise ValueError(f"RepConv re-parametrises 3x3 kernels, not {k}x{k}")
        self.stride = s
        self.act = nn.SiLU()
        self.rbr_identity = nn.BatchNorm2d(c1) if c1 == c2 and s == 1 else None
        self.rbr_dense: ConvBn | None = ConvBn(nn.Conv2d(c1, c2, k, s, padding=1, bias=False))
        self.rbr_1x1: ConvBn | None = ConvBn(nn.Conv2d(c1, c2, 1, s, bias=False))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(B, c1, H, W) -> (B, c2, H/s, W/s)."""
        if self.rbr_dense is None or self.rbr_1x1 is None:
            fused: torch.Tensor = self.act(self.rbr_reparam(x))
            return fused
        y = self.rbr_dense(x) + self.rbr_1x1(x)
        if self.rbr_identity is not None:
            y = y + self.rbr_identity(x)
        branched: torch.Tensor = self.act(y)
        return branched

    @torch.no_grad()
    def fuse(self) -> None:
        """Replaces the branches with the one convolution ``rbr_reparam`` that gives the same output in inference.

        Batch normalisation in inference is linear, so each branch is a convolution with a bias, and the sum of
        convolutions is the convolution with the summed kernels (Ding et al., RepVGG, 2021).
        """
        if self.rbr_dense is None or self.rbr_1x1 is None:
            return
        dense = self.rbr_dense.convolution
        weight, bias = self.rbr_dense.folded()
        pointwise_weight, pointwise_bias = self.rbr_1x1.folded()
        weight, bias = weight + functional.pad(pointwise_weight, (1, 1, 1, 1)), bias + pointwise_bias
        if self.rbr_identity is not None:
            unit = torch.zeros_like(dense.weight)
            nn.init.dirac_(unit)
            identity_weight, identity_bias = folded(unit, self.rbr_identity)
            weight, bias = weight + identity_weight, bias + identity_bias
        self.rbr_reparam = nn.Conv2d(
            dense.in_channels, dense.out_channels, 3, self.stride, padding=1, bias=True, device="meta"
        )
        self.rbr_reparam.weight = nn.Parameter(weight, requires_grad=False)
        self.rbr_reparam.bias = nn.Parameter(bias, requires_grad=False)
        self.rbr_dense = self.rbr_1x1 = self.rbr_identity = None


class ReOrg(nn.Module):
    """Every second pixel in a channel of its own."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(B, C, H, W) -> (B, 4C, H/2, W/2)."""
        return torch.cat([x[..., ::2, ::2], x[..., 1::2, ::2], x[..., ::2, 1::2], x[..., 1::2, 1::2]], dim=1)


class DownC(nn.Module):
    """Half the height and width, by a convolution and by pooling side by side."""

    def __init__(self, c1: int, c2: int, k: int = 2) -> None:
        super().__init__()
        self.cv1 = Conv(c1, c1, 1, 1)
        self.cv2 = Conv(c1, c2 // 2, 3, k)
        self.cv3 = Conv(c1, c2 // 2, 1, 1)
        self.mp = nn.MaxPool2d(kernel_size=k, stride=k)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(B, c1, H, W) -> (B, c2, H/k, W/k)."""
        return torch.cat((self.cv2(self.cv1(x)), self.cv3(self.mp(x))), dim=1)


class SP(nn.Module):
    """Max-pooling that leaves height and width as they are."""

    def __init__(self, k: int) -> None:
        super().__init__()
        self.m = nn.MaxPool2d(kernel_size=k, stride=1, padding=k // 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(B, C, H, W) -> the same."""
        pooled: torch.Tensor = self.m(x)
        return pooled


class Shortcut(nn.Module):
    """The sum of two."""

    def forward(self, inputs: Sequence[torch.Tensor]) -> torch.Tensor:
        """Two of (B, C, H, W) -> the same."""
        return inputs[0] + inputs[1]
