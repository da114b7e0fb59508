"""Which inputs are proposed in the place of refused ones."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from hwprof.workload.fitting_inputs import example, options, refused_by

WORDS, PICTURE = torch.zeros(1, 9, dtype=torch.int64), torch.zeros(1, 3, 20, 20)


class Encoder(nn.Module):
    """With a layer, defined first, that gets nothing from outside."""

    def __init__(self) -> None:
        super().__init__()
        self.positions = nn.Embedding(64, 4)
        self.words = nn.Embedding(50, 4)

    def forward(self, ids: torch.Tensor) -> Any:
        return self.words(ids) + self.positions(torch.arange(ids.shape[1]))


class OfTwo(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.picture = nn.Embedding(50, 4), nn.Conv2d(3, 4, 3)

    def forward(self, ids: torch.Tensor, pixels: torch.Tensor, scale: float = 1.0) -> Any:
        return self.words(ids).sum() + scale * self.picture(pixels).sum()


class Optional(OfTwo):
    def forward(self, ids: Any, pixels: torch.Tensor = PICTURE, scale: float = 1.0) -> Any:
        return super().forward(ids, pixels)


class OfLists(OfTwo):
    def forward(self, ids: Any, pixels: Any, scale: float = 1.0) -> Any:
        return super().forward(ids[0], pixels[0])


class Flat(nn.Module):
    """Whose layer gets what forward has made of the input."""

    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Linear(100, 4)

    def forward(self, x: torch.Tensor) -> Any:
        return self.last(x.flatten(1))


class Plain(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("expected scalar type Long but found Float")


def proposed(module: nn.Module, *arguments: Any, **keywords: torch.Tensor) -> str:
    inputs = (arguments, keywords)
    with torch.inference_mode(), pytest.raises((RuntimeError, TypeError, IndexError)) as raised:
        module(*arguments, **keywords)
    return options(module, example(module, inputs, raised.value), inputs, raised.value)


CLASSIFIER = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Flatten(), nn.Linear(4 * 26 * 26, 10))


@pytest.mark.parametrize(
    ("module", "arguments", "keywords", "text"),
    [
        (Encoder(), (torch.zeros(1, 9),), {}, "--input ids:1x9:int64:0..49"),
        (Encoder(), (WORDS + 50,), {}, "--input ids:1x9:int64:0..49"),
        (Encoder(), (), {"ids": torch.zeros(1, 9)}, "--input ids:1x9:int64:0..49"),
        (nn.Sequential(nn.LSTM(128, 4)), (torch.zeros(1, 64, 127),), {}, "--input-shape 1,64,128"),
        (nn.Sequential(nn.ReLU(), nn.Linear(8, 4)), (torch.zeros(2, 9),), {}, "--input-shape 2,8"),
        (nn.Linear(8, 4).half(), (torch.zeros(2, 8),), {}, "--input input:2x8:float16"),
        (nn.Conv2d(3, 4, 3), (), {"zz": PICTURE}, "--input-shape 1,3,20,20"),  # its name was wrong
        (CLASSIFIER, (torch.zeros(1, 1, 30, 30),), {}, "--input input:SHAPE:DTYPE"),  # not known of which size
        (Flat(), (PICTURE,), {}, "--input x:SHAPE:DTYPE"),
        (Flat(), (torch.zeros(2, 9),), {}, "--input-shape 2,100"),
        (OfTwo(), (WORDS, PICTURE[:, :1]), {}, "--input ids:SHAPE:DTYPE --input pixels:1x3x20x20"),
        (OfTwo(), (PICTURE, PICTURE), {}, "--input ids:1x128:int64:0..49 --input pixels:SHAPE:DTYPE"),
        (OfTwo(), (WORDS,), {}, "--input ids:SHAPE:DTYPE --input pixels:SHAPE:DTYPE"),
        (Optional(), (WORDS, PICTURE[:, :1]), {}, "--input ids:SHAPE:DTYPE --input pixels:1x3x20x20"),
        (Optional(), (PICTURE,), {}, "--input ids:1x128:int64:0..49"),
        (OfLists(), ([WORDS], [WORDS]), {}, "--input ids:SHAPE:DTYPE --input pixels:SHAPE:DTYPE"),
        (Plain(), (torch.zeros(2, 9),), {}, "--input x:2x9:int64"),
        (Plain(), (WORDS,), {}, "--input x:SHAPE:DTYPE"),
    ],
)
def test_the_layer_that_refused_says_what_it_takes(
    module: nn.Module, arguments: tuple[Any, ...], keywords: dict[str, torch.Tensor], text: str
) -> None:
    assert proposed(module, *arguments, **keywords) == text


@pytest.mark.parametrize(
    ("module", "given", "text"),
    [
        (Flat(), PICTURE, "last (Linear) has in_features 100 and got 1x1200"),
        (CLASSIFIER, torch.zeros(1, 1, 30, 30), "2 (Linear) has in_features 2704 and got 1x3136"),
        (nn.Embedding(50, 4), torch.full((1, 2), 50), "Embedding has num_embeddings 50 and got 1x2 int64"),
        (Plain(), PICTURE, None),
    ],
)
def test_the_layer_that_refused_what_became_of_the_input_is_named(
    module: nn.Module, given: torch.Tensor, text: str | None
) -> None:
    with torch.inference_mode(), pytest.raises((RuntimeError, IndexError)) as raised:
        module(given)
    assert refused_by(module, raised.value) == text


@pytest.mark.parametrize(
    ("module", "text"),
    [
        (nn.Sequential(nn.LSTM(128, 4)), "--input-shape 1,16,128"),
        (CLASSIFIER, "--input-shape 1,1,224,224"),
        (nn.Embedding(50, 4), "--input input:1x128:int64:0..49"),
        (OfTwo(), "--input ids:SHAPE:DTYPE --input pixels:SHAPE:DTYPE"),
        (Plain(), "--input-shape 1,3,224,224, or --input x:1x128:int64:0..30000"),
    ],
)
def test_without_inputs_the_first_layer_that_has_a_wish_says_it(module: nn.Module, text: str) -> None:
    assert options(module, example(module)) == text
