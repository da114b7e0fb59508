"""What a layer by itself can be called with, as its class and its sizes tell."""

from __future__ import annotations

from typing import Final

from torch import nn

from hwprof.workload.spec import FLOATS, InputSpec

IMAGE: Final = (1, 3, 224, 224)
"""An example of a shape."""

TOKENS: Final = (1, 128)
"""Another one, of integers."""

FEATURES: Final[tuple[tuple[type[nn.Module], str, tuple[int, ...], tuple[int, ...]], ...]] = (
    (nn.Linear, "in_features", (1,), ()),
    (nn.RNNBase, "input_size", (1, 16), (2, 3)),
    (nn.RNNCellBase, "input_size", (1,), (1, 2)),
    (nn.MultiheadAttention, "embed_dim", (1, 16), (2, 3)),
)
"""Layers that want so many values in the last dimension: by which attribute, what comes before in an example, and how
many dimensions they take, where not any."""

CHANNELS: Final[tuple[tuple[type[nn.Module], str, tuple[int, ...]], ...]] = (
    (nn.Conv1d, "in_channels", (1024,)),
    (nn.Conv2d, "in_channels", IMAGE[2:]),
    (nn.Conv3d, "in_channels", (16, 112, 112)),
    (nn.ConvTranspose1d, "in_channels", (64,)),
    (nn.ConvTranspose2d, "in_channels", (16, 16)),
    (nn.ConvTranspose3d, "in_channels", (8, 8, 8)),
    (nn.BatchNorm2d, "num_features", IMAGE[2:]),
    (nn.BatchNorm3d, "num_features", (16, 112, 112)),
)
"""Layers that want so many channels in the second dimension: by which attribute, and what comes behind in an
example."""


def taken(layer: nn.Module, shape: tuple[int, ...] = ()) -> InputSpec | None:
    """An input that the layer takes, of that shape as far as it fits; None where its class does not tell."""
    if isinstance(layer, (nn.Embedding, nn.EmbeddingBag)):
        fits = 0 < len(shape) <= len(TOKENS)
        return InputSpec(shape=shape if fits else TOKENS, dtype="int64", range=(0, max(0, layer.num_embeddings - 1)))
    found = _with_features(layer, shape) or _with_channels(layer, shape)
    return InputSpec(shape=found, dtype=_dtype(layer)) if found and min(found) > 0 else None  # 0: not known yet


def wish(layer: nn.Module) -> str | None:
    """``in_features 128``: which of its sizes an input has to fit; None where its class does not tell."""
    if taken(layer) is None:
        return None
    if isinstance(layer, (nn.Embedding, nn.EmbeddingBag)):
        return f"num_embeddings {layer.num_embeddings}"
    sizes = [(kind, size) for kind, size, _, _ in FEATURES] + [(kind, size) for kind, size, _ in CHANNELS]
    return next(f"{size} {getattr(layer, size)}" for kind, size in sizes if isinstance(layer, kind))


def _with_features(layer: nn.Module, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    for kind, attribute, before, dimensions in FEATURES:
        if isinstance(layer, kind):
            fits = len(shape) in dimensions if dimensions else bool(shape)
            return (*(shape[:-1] if fits else before), int(getattr(layer, attribute)))
    return None


def _with_channels(layer: nn.Module, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    for kind, attribute, behind in CHANNELS:
        if isinstance(layer, kind):
            channels = int(getattr(layer, attribute))
            return (shape[0], channels, *shape[2:]) if len(shape) == len(behind) + 2 else (1, channels, *behind)
    return None


def _dtype(layer: nn.Module) -> str:
    """Of its weights, where inputs can be drawn in that."""
    weight = next(layer.parameters(), None)
    name = str(weight.dtype).removeprefix("torch.") if weight is not None else ""
    return name if name in FLOATS else "float32"
