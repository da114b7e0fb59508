"""What a convolution's shapes and multiply-accumulates tell: kernel, stride, padding, and the work at its borders.

The layer table keeps no hyperparameters, but shapes and MACs determine them where kernels are square and not dilated.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Final

LARGEST_STRIDE: Final = 8
VECTOR_CHANNELS: Final = 16
"""Output channels that vector code computes at a time: float32 values in 512 bits."""

_SHAPE: Final = re.compile(r"^(\d+)x(\d+)x(\d+)x(\d+)$")


@dataclass(frozen=True)
class Convolution:
    """A two-dimensional convolution with a square kernel."""

    kernel: int
    stride: int
    padding: int
    groups: int
    inside: float
    """The share of its products whose input is not padding."""
    rounding: float
    """How many times more work it is with the output channels rounded up to whole vectors."""


def convolution(input_shape: str | None, output_shape: str | None, macs: float) -> Convolution | None:
    """The convolution of one call's shapes (``BATCHxCHANNELSxHEIGHTxWIDTH``) and MACs; None where none fits."""
    given, made = (_SHAPE.match(text or "") for text in (input_shape, output_shape))
    if given is None or made is None:
        return None
    _, channels, *size = map(int, given.groups())
    batch, made_channels, *made_size = map(int, made.groups())
    elements = batch * made_channels * math.prod(made_size)
    products = macs / elements if elements else 0.0
    for groups in dict.fromkeys((1, math.gcd(channels, made_channels))):
        kernel = math.isqrt(round(products * groups / channels)) if channels else 0
        if kernel and kernel**2 * channels / groups == products:
            placed = _placement(size, made_size, kernel)
            if placed is not None:
                stride, padding = placed
                inside = math.prod(
                    inside_share(length, made_length, kernel, stride, padding)
                    for length, made_length in zip(size, made_size, strict=True)
                )
                whole = math.ceil(made_channels / VECTOR_CHANNELS) * VECTOR_CHANNELS
                return Convolution(kernel, stride, padding, groups, inside, whole / made_channels)
    return None


def inside_share(length: int, made_length: int, kernel: int, stride: int, padding: int) -> float:
    """The share of a dimension's products (``made_length`` × ``kernel``) whose input lies within ``length``."""
    inside = 0
    for place in range(made_length):
        first = place * stride - padding
        inside += max(0, min(first + kernel, length) - max(first, 0))
    return inside / (made_length * kernel)


def _placement(size: list[int], made_size: list[int], kernel: int) -> tuple[int, int] | None:
    """Stride and padding that make one size of the other; the usual padding (half of the kernel) is tried first."""
    for padding in dict.fromkeys((kernel // 2, 0, *range(kernel))):
        for stride in range(1, LARGEST_STRIDE + 1):
            if [(length + 2 * padding - kernel) // stride + 1 for length in size] == made_size:
                return stride, padding
    return None
