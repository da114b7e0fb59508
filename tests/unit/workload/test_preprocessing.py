from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image as Pictures

from hwprof.errors import UsageError
from hwprof.workload.preprocessing import CentreCrop


def _noise(height: int, width: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    return np.random.default_rng(0).integers(0, 255, (height, width, 3), dtype=np.uint8)


@pytest.mark.parametrize(("height", "width"), [(100, 180), (333, 200), (64, 64), (40, 30)])
def test_the_shorter_side_fits_and_the_middle_is_kept(height: int, width: int) -> None:
    """As torchvision documents Resize, CenterCrop and ToTensor, which are what ``classify_transforms`` consists of."""
    image, size = _noise(height, width), 64
    wide, high = (size, size * height // width) if width <= height else (size * width // height, size)
    whole = np.asarray(Pictures.fromarray(image[..., ::-1]).resize((wide, high), Pictures.Resampling.BILINEAR))
    top, left = round((high - size) / 2.0), round((wide - size) / 2.0)
    expected = torch.from_numpy(whole[top : top + size, left : left + size].transpose(2, 0, 1) / 255.0).float()
    crop = CentreCrop(size)
    batch = crop([image, image])
    assert tuple(batch.shape) == crop.shape_of([(height, width)] * 2) == (2, 3, size, size)
    torch.testing.assert_close(batch[1], expected)


def test_an_image_that_would_fill_the_memory_is_refused() -> None:
    with pytest.raises(UsageError, match=r"1x200000 pixels is too narrow: with 224 across it has 10,035,200,000"):
        CentreCrop(224)([_noise(1, 200_000)])
