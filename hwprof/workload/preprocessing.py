"""From decoded images to a model's input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import torch

from hwprof.errors import UsageError
from hwprof.workload.images import Image
from hwprof.workload.libraries import MOST_PIXELS, require_ultralytics

Shape = tuple[int, int, int, int]
"""Of a batch, (B, 3, H, W)."""


class Preprocessing(Protocol):
    """How images become a batch."""

    def __call__(self, images: Sequence[Image]) -> torch.Tensor:
        """Images as the model's input (B, 3, H, W), red first, 0..1."""
        ...

    def shape_of(self, sizes: Sequence[tuple[int, int]]) -> Shape:
        """The shape that a call gives images of these heights and widths."""
        ...


class LetterBox:
    """The longer side becomes the image size and the shorter is padded with grey up to the model's stride; where the
    images of a batch differ in shape, to the full square."""

    def __init__(self, imgsz: int, stride: int) -> None:
        """``imgsz``: in pixels, a multiple of the stride."""
        self._imgsz = imgsz
        self._stride = stride
        self._letterbox_class: Any = require_ultralytics("data.augment").LetterBox

    def __call__(self, images: Sequence[Image]) -> torch.Tensor:
        """(B, 3, H, W)."""
        alike = len({image.shape for image in images}) == 1
        letterbox = self._letterbox_class((self._imgsz, self._imgsz), auto=alike, stride=self._stride)
        return _as_input(np.stack([letterbox(image=image) for image in images]))

    def shape_of(self, sizes: Sequence[tuple[int, int]]) -> Shape:
        """Of such a batch."""
        height = width = self._imgsz
        if len(set(sizes)) == 1:
            height, width = (self._padded(side, max(sizes[0])) for side in sizes[0])
        return len(sizes), 3, height, width

    def _padded(self, side: int, longer: int) -> int:
        """As LetterBox does it: scaled, then padded by what is left of the square beyond whole strides."""
        scaled = max(round(side * (self._imgsz / longer)), 1)
        return scaled + (self._imgsz - scaled) % self._stride


class CentreCrop:
    """The shorter side becomes the image size, and of the longer the middle is kept. As ``classify_transforms`` of
    ultralytics does it with torchvision, which is not needed for it."""

    def __init__(self, imgsz: int) -> None:
        """``imgsz``: in pixels."""
        self._imgsz = imgsz

    def __call__(self, images: Sequence[Image]) -> torch.Tensor:
        """(B, 3, imgsz, imgsz)."""
        return _as_input(np.stack([self._cropped(image) for image in images]))

    def shape_of(self, sizes: Sequence[tuple[int, int]]) -> Shape:
        """Of such a batch."""
        return len(sizes), 3, self._imgsz, self._imgsz

    def _cropped(self, image: Image) -> Image:
        from PIL import Image as Pictures  # of ultralytics' requirements

        shorter = min(image.shape[:2])
        height, width = (int(self._imgsz * side / shorter) for side in image.shape[:2])
        if height * width > MOST_PIXELS:
            sides = "x".join(map(str, image.shape[:2]))
            told = f"an image of {sides} pixels is too narrow: with {self._imgsz} across it has {height * width:,}"
            raise UsageError(told, "take it out, or a smaller --imgsz")
        top, left = (round((side - self._imgsz) / 2) for side in (height, width))
        resized = Pictures.fromarray(image).resize((width, height), Pictures.Resampling.BILINEAR)
        return np.asarray(resized)[top : top + self._imgsz, left : left + self._imgsz]


def _as_input(stacked: np.ndarray[Any, np.dtype[np.uint8]]) -> torch.Tensor:
    """(B, H, W, 3), blue first, as (B, 3, H, W), red first, 0..1."""
    planes = np.ascontiguousarray(stacked[..., ::-1].transpose(0, 3, 1, 2))
    return torch.from_numpy(planes).float().div_(255.0)
