"""A zoo: models that PyTorch allows and that profilers stumble over, small enough for a few milliseconds each.

Every public function without arguments is a factory of ``(model, inputs)``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.utils import checkpoint

Made = tuple[nn.Module, Any]

IMAGE = (1, 3, 64, 64)
TOKENS = (2, 64, 128)


class Forward(nn.Module):
    """Modules by name, and a function of them and the inputs as their ``forward``."""

    def __init__(self, function: Callable[..., Any], **modules: nn.Module) -> None:
        super().__init__()
        self._function = function
        for name, module in modules.items():
            self.add_module(name, module)

    def forward(self, *inputs: Any) -> Any:
        return self._function(self, *inputs)


def _convolutions(channels: int = 32) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(3, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.SiLU(), nn.Conv2d(channels, channels, 3)
    )


def _perceptron(width: int = 128) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))


# Attention


def attention() -> Made:
    x = torch.randn(TOKENS)
    return nn.MultiheadAttention(128, 8, batch_first=True), (x, x, x)


def functional_attention() -> Made:
    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        heads = self.qkv(x).unflatten(-1, (3, 8, 16)).permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(*heads).transpose(1, 2).flatten(2)
        return x + self.out(attended)  # type: ignore[no-any-return]

    return Forward(forward, qkv=nn.Linear(128, 384), out=nn.Linear(128, 128)), torch.randn(TOKENS)


def encoder() -> Made:
    """On its fast path, where the layers' modules are never called."""
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(128, 8, 256, batch_first=True), 3), torch.randn(TOKENS)


def masked_encoder() -> Made:
    layer = nn.TransformerEncoderLayer(128, 8, 256, batch_first=True, norm_first=True, activation=functional.silu)
    mask = nn.Transformer.generate_square_subsequent_mask(TOKENS[1])
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), (torch.randn(TOKENS), mask)


def decoder() -> Made:
    layer = nn.TransformerDecoderLayer(128, 8, 256, batch_first=True)
    return nn.TransformerDecoder(layer, 2), (torch.randn(TOKENS), torch.randn(TOKENS))


def vision_transformer() -> Made:
    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        patches = self.patches(x).flatten(2).transpose(1, 2)
        return self.head(self.encoder(patches + self.position).mean(1))  # type: ignore[no-any-return]

    layer = nn.TransformerEncoderLayer(128, 8, 256, batch_first=True, norm_first=True)
    stack = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    model = Forward(forward, patches=nn.Conv2d(3, 128, 8, stride=8), encoder=stack, head=nn.Linear(128, 10))
    model.position = nn.Parameter(torch.zeros(64, 128))
    return model, torch.randn(IMAGE)


# Recurrence


def lstm() -> Made:
    return nn.LSTM(128, 128), torch.randn(20, 4, 128)


def bidirectional_lstm() -> Made:
    return nn.Sequential(nn.LSTM(64, 64, num_layers=2, bidirectional=True)), torch.randn(20, 4, 64)


def gru() -> Made:
    return Forward(
        lambda self, x: self.head(self.gru(x)[0]), gru=nn.GRU(128, 128), head=nn.Linear(128, 8)
    ), torch.randn(20, 4, 128)


def cells() -> Made:
    """A loop of Python's over the steps."""

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        hidden, carried = torch.zeros(2, 4, 64)
        for step in x:
            hidden, carried = self.cell(step, (hidden, carried))
        last: torch.Tensor = hidden
        return last

    return Forward(forward, cell=nn.LSTMCell(64, 64)), torch.randn(30, 4, 64)


# Other numbers, other representations


def quantised() -> Made:
    quantize: Any = torch.ao.quantization.quantize_dynamic
    return quantize(nn.Sequential(_perceptron(), _perceptron()), {nn.Linear}), torch.randn(64, 128)


def quantised_lstm() -> Made:
    quantize: Any = torch.ao.quantization.quantize_dynamic
    return quantize(nn.Sequential(nn.LSTM(64, 64)), {nn.LSTM}), torch.randn(20, 4, 64)


def bfloat16() -> Made:
    return _convolutions().bfloat16(), torch.randn(IMAGE).bfloat16()


def double() -> Made:
    return _perceptron().double(), torch.randn(64, 128).double()


def autocast() -> Made:
    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return self.body(x)  # type: ignore[no-any-return]

    return Forward(forward, body=_convolutions()), torch.randn(IMAGE)


def channels_last() -> Made:
    model: Any = _convolutions()
    return model.to(memory_format=torch.channels_last), torch.randn(IMAGE).contiguous(memory_format=torch.channels_last)


def spectrum() -> Made:
    return Forward(lambda self, x: torch.fft.rfft(self.body(x)).abs(), body=_perceptron()), torch.randn(64, 128)


def scripted() -> Made:
    return torch.jit.script(_convolutions()), torch.randn(IMAGE)


def traced() -> Made:
    trace: Any = torch.jit.trace
    x = torch.randn(IMAGE)
    return trace(_convolutions().eval(), x), x


def compiled() -> Made:
    compiled: Any = torch.compile(_perceptron())
    return nn.Sequential(compiled, nn.ReLU()), torch.randn(64, 128)


def exported() -> Made:
    x = torch.randn(64, 128)
    return torch.export.export(_perceptron(), (x,)).module(), x


def graph_module() -> Made:
    return torch.fx.symbolic_trace(_convolutions()), torch.randn(IMAGE)


# Calls


def on_threads() -> Made:
    """Two of its modules are called by threads that the forward starts."""

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        found: dict[str, torch.Tensor] = {}

        def call(name: str) -> None:
            with torch.inference_mode():
                found[name] = getattr(self, name)(x)

        helpers = [threading.Thread(target=call, args=(name,)) for name in ("left", "right")]
        for helper in helpers:
            helper.start()
        for helper in helpers:
            helper.join()
        return self.last(found["left"] + found["right"])  # type: ignore[no-any-return]

    return Forward(forward, left=_perceptron(), right=_perceptron(), last=nn.Linear(128, 8)), torch.randn(256, 128)


class Parallel(nn.Module):
    """Copies of one model, each called by a thread of a pool with a part of the batch, as ``DataParallel`` does."""

    def __init__(self) -> None:
        super().__init__()
        self.replicas = nn.ModuleList([_convolutions(), _convolutions()])
        self._pool: ThreadPoolExecutor | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(2)

        def call(replica: nn.Module, part: torch.Tensor) -> Any:
            with torch.inference_mode():
                return replica(part)

        return torch.cat(list(self._pool.map(call, self.replicas, x.chunk(2))))


def data_parallel() -> Made:
    return Parallel(), torch.randn(4, 3, 64, 64)


def generators() -> Made:
    """A module that is a generator: its call ends before its work begins."""

    def tiles(self: Any, x: torch.Tensor) -> Iterator[torch.Tensor]:
        for tile in x.chunk(4, -1):
            yield self.body(tile)

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return torch.cat(list(self.tiles(x)), -1)

    return Forward(forward, tiles=Forward(tiles, body=_convolutions())), torch.randn(IMAGE)


def hooks() -> Made:
    model = _convolutions()
    model[0].register_forward_pre_hook(lambda module, given: (given[0] * 2,))
    model[3].register_forward_hook(lambda module, given, output: torch.relu(output))
    return model, torch.randn(IMAGE)


def shared() -> Made:
    """One module under two names."""
    block = _perceptron()
    return nn.Sequential(block, nn.ReLU(), block), torch.randn(64, 128)


def repeated() -> Made:
    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        for _ in range(12):
            x = x + self.block(x)
        return x

    return Forward(forward, block=_perceptron(64)), torch.randn(64, 64)


def recursive() -> Made:
    """A module whose forward calls itself."""

    def forward(self: Any, x: torch.Tensor, depth: int = 4) -> torch.Tensor:
        y: torch.Tensor = self.step(x)
        return y if not depth else x + self(y, depth - 1)

    return Forward(forward, step=nn.Linear(128, 128)), torch.randn(64, 128)


def exceptions() -> Made:
    """A layer that fails, and a forward that goes on without it."""

    def refuse(self: Any, x: torch.Tensor) -> torch.Tensor:
        raise ValueError("not today")

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        try:
            return self.refused(x)  # type: ignore[no-any-return]
        except ValueError:
            return self.body(x)  # type: ignore[no-any-return]

    return Forward(forward, refused=Forward(refuse), body=_perceptron()), torch.randn(64, 128)


def checkpointed() -> Made:
    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return checkpoint.checkpoint(self.body, x, use_reentrant=False)  # type: ignore[no-any-return]

    return Forward(forward, body=_convolutions()), torch.randn(IMAGE)


def parametrised() -> Made:
    """Weights that are computed at each call."""
    model = nn.Sequential(nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, 64))
    nn.utils.parametrizations.weight_norm(model[0])
    nn.utils.parametrizations.spectral_norm(model[2])
    return model, torch.randn(64, 128)


def changing() -> Made:
    """Each call does other work than the one before."""

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        for _ in range(1 + self.calls % 3):
            x = self.block(x)
        return x

    model = Forward(forward, block=_perceptron())
    model.calls = 0  # type: ignore[assignment]
    return model, torch.randn(64, 128)


def keywords() -> Made:
    """Called by name, with what is no tensor among them."""

    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.body = nn.Embedding(1000, 128), _perceptron()

        def forward(self, *, input_ids: torch.Tensor, scale: float) -> dict[str, torch.Tensor]:
            return {"last": self.body(self.embedding(input_ids)) * scale}

    return Encoder(), {"input_ids": torch.randint(0, 1000, (4, 64)), "scale": 0.5}


# Shapes of the tree


def deep() -> Made:
    model: nn.Module = nn.Linear(16, 16)
    for _ in range(150):
        model = nn.Sequential(model)
    return model, torch.randn(64, 16)


def wide() -> Made:
    return nn.Sequential(*(deepcopy(nn.Linear(32, 32)) for _ in range(200))), torch.randn(4, 32)


def empty() -> Made:
    return nn.Sequential(), torch.randn(4)


def identity() -> Made:
    return nn.Identity(), torch.randn(4)


def single() -> Made:
    return nn.Conv2d(3, 64, 3), torch.randn(IMAGE)


def functions_only() -> Made:
    """No module in it at all."""
    model = Forward(lambda self, x: functional.conv2d(x, self.weight).relu().sum())
    model.weight = nn.Parameter(torch.randn(32, 3, 3, 3))
    return model, torch.randn(IMAGE)


def embeddings() -> Made:
    def forward(self: Any, numbers: torch.Tensor, dense: torch.Tensor) -> torch.Tensor:
        return self.top(torch.cat([self.table(numbers), self.bottom(dense)], -1))  # type: ignore[no-any-return]

    model = Forward(forward, table=nn.EmbeddingBag(50_000, 64), bottom=nn.Linear(16, 64), top=nn.Linear(128, 1))
    return model, (torch.randint(0, 50_000, (128, 40)), torch.randn(128, 16))


def volumes() -> Made:
    return nn.Sequential(nn.Conv3d(1, 8, 3), nn.MaxPool3d(2), nn.ConvTranspose3d(8, 4, 3)), torch.randn(
        1, 1, 16, 32, 32
    )
