"""What a convolution's geometry and shapes tell: the work at its borders, and in channels that are rounded up.

Runs of older versions keep no geometry; there shapes and MACs determine it where kernels are square and not dilated.
"""

from __future__ import annotations

import math
import re
from dataclasses import KW_ONLY, dataclass
from typing import Final

LARGEST_STRIDE: Final = 8
VECTOR_CHANNELS: Final = 16
"""Output channels that vector code computes at a time: float32 values in 512 bits."""

_GEOMETRY: Final = re.compile(r"k([\dx]+) s([\dx]+) p([\dx]+) d([\dx]+) g(\d+)( \w+)?")
_SHAPE: Final = re.compile(r"^(\d+)x(\d+)x(\d+)x(\d+)$")


@dataclass(frozen=True)
class Convolution:
    """A convolution; ``kernel``, ``stride``, ``padding`` and ``dilation`` are None where directions differ in it."""

    kernel: int | None
    stride: int | None
    padding: int | None
    groups: int
    dilation: int | None = 1
    dimensions: int = 2
    _: KW_ONLY
    inside: float
    """The share of its products whose input is not padding."""
    rounding: float
    """How many times more work it is with the output channels rounded up to whole vectors."""


def of_geometry(geometry: str, input_shape: str | None, output_shape: str | None) -> Convolution | None:
    """The convolution of one call by its layer's ``geometry`` (as the table ``layers`` has it) and its shapes; None
    where these do not belong together."""
    found = _GEOMETRY.fullmatch(geometry)
    given, made = (
        [int(size) for size in (text or "").split("x") if size.isdigit()] for text in (input_shape, output_shape)
    )
    if found is None:
        return None
    kernel, stride, padding, dilation = ([int(size) for size in text.split("x")] for text in found.groups()[:4])
    dimensions = len(kernel)
    if len(given) != len(made) or len(given) not in (dimensions + 1, dimensions + 2):
        return None
    channels = made[-dimensions - 1]
    inside = 1.0
    if found[6] is None:  # else what is around the input are values of its own
        inside = math.prod(
            inside_share(*sizes)
            for sizes in zip(given[-dimensions:], made[-dimensions:], kernel, stride, padding, dilation, strict=True)
        )
    whole = math.ceil(channels / VECTOR_CHANNELS) * VECTOR_CHANNELS
    size, step, border, spread = (
        sizes[0] if len(set(sizes)) == 1 else None for sizes in (kernel, stride, padding, dilation)
    )
    return Convolution(
        size, step, border, int(found[5]), spread, dimensions,
        inside=inside,
        rounding=whole / channels if channels else 1.0,
    )  # fmt: skip


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
                return Convolution(kernel, stride, padding, groups, inside=inside, rounding=whole / made_channels)
    return None


def inside_share(length: int, made_length: int, kernel: int, stride: int, padding: int, dilation: int = 1) -> float:
    """The share of a dimension's products (``made_length`` × ``kernel``) whose input lies within ``length``."""
    if not made_length * kernel:
        return 1.0
    firsts = range(-padding, made_length * stride - padding, stride)
    inside = sum(0 <= first + tap * dilation < length for first in firsts for tap in range(kernel))
    return inside / (made_length * kernel)


def _placement(size: list[int], made_size: list[int], kernel: int) -> tuple[int, int] | None:
    """Stride and padding that make one size of the other; the usual padding (half of the kernel) is tried first."""
    for padding in dict.fromkeys((kernel // 2, 0, *range(kernel))):
        for stride in range(1, LARGEST_STRIDE + 1):
            if [(length + 2 * padding - kernel) // stride + 1 for length in size] == made_size:
                return stride, padding
    return None
