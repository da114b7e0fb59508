"""Models of which each loses its time to one known cause, and some that lose none:
``tests.support.models.causes:NAME``."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice, pairwise
from typing import Any

import torch
from torch import Tensor, nn

Made = tuple[nn.Module, Tensor]


class Layer(nn.Module):
    """A function as a layer; tensors that it keeps are no inputs."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self._function = function

    def forward(self, x: Tensor) -> Tensor:
        return self._function(x)


def _model(**layers: nn.Module) -> nn.Module:
    model = nn.Sequential()
    for name, layer in layers.items():
        model.add_module(name, layer)
    return model


# --- No cause


def control() -> Made:
    """Convolutions in channels last, of many channels on large maps: compute, on all threads."""
    sizes = (64, 192, 192, 64, 192, 192, 64)
    steps = enumerate(pairwise(sizes))
    model: Any = _model(**{f"conv{n}": nn.Conv2d(before, after, 3, padding=1) for n, (before, after) in steps})
    x = torch.rand(2, 64, 96, 96).contiguous(memory_format=torch.channels_last)
    return model.to(memory_format=torch.channels_last), x


def big_gemm() -> Made:
    """One product of large matrices."""
    return _model(products=nn.Linear(2048, 2048, bias=False)), torch.rand(2048, 2048)


# --- Memory

LONG = 33_500_000
"""Elements of each of three arrays: 402 MB in all."""


def streaming() -> Made:
    """A sum of two arrays into a third."""

    class Added(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.other, self.out = nn.Parameter(torch.rand(LONG)), torch.zeros(LONG)

        def forward(self, x: Tensor) -> Tensor:
            return torch.add(x, self.other, out=self.out)

    class Often(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.added = Added()

        def forward(self, x: Tensor) -> Tensor:
            for _ in range(8):
                self.added(x)
            return x

    return Often(), torch.rand(LONG)


def _beyond_caches(least: int) -> int:
    """Bytes: twice the last cache, and so many at least."""
    from hwprof.hardware import machine

    return max([least, *(2 * cache.size_bytes for cache in machine.caches())])


GATHERED = 1_500_000


def strided_gather() -> Made:
    """One number of each line asked for, of memory that no cache holds, in an order that no prefetcher knows."""
    table = torch.rand(_beyond_caches(96 << 20) // 64, 16)
    orders = cycle([torch.randperm(len(table))[:GATHERED] * 16 for _ in range(24)])
    out = torch.empty(GATHERED)

    def gather(x: Tensor) -> Tensor:
        for order in islice(orders, 8):
            torch.take(table, order, out=out)
        return x

    return _model(gather=Layer(gather)), torch.rand(8)


STEPS = 1_500_000


def pointer_chase() -> Made:
    """Each load has its address from the one before; each call goes on elsewhere."""
    from hwprof.hardware.peaks.kernels import Kernels
    from hwprof.hardware.peaks.memory import Memory

    kernels, _ = Kernels.compiled(())
    memory = Memory.of_a_chase(_beyond_caches(128 << 20), 0, huge_pages=False)  # as a model's own memory is
    starts = range(memory.address, memory.address + memory.bytes.nbytes, memory.bytes.nbytes // 16)
    walks = cycle([kernels.chase(start) for start in starts])

    def chase(x: Tensor) -> Tensor:
        next(walks)(STEPS)
        return x

    layer = Layer(chase)
    layer.memory = memory  # type: ignore[assignment]  # it must live as long as the layer
    return _model(chase=layer), torch.rand(8)


def page_faults() -> Made:
    """A number into each page of memory that is new at each call."""

    def faulting(x: Tensor) -> Tensor:
        for _ in range(4):
            torch.empty(40_000_000, dtype=torch.uint8)[::4096].fill_(1)
        return x

    return _model(faulting=Layer(faulting)), torch.rand(8)


# --- Dispatch and Python


def tiny_layers() -> Made:
    """Thousands of operators on eight numbers."""

    def tiny(x: Tensor) -> Tensor:
        for _ in range(12_000):
            x = x * 1.0
        return x

    return _model(tiny=Layer(tiny)), torch.rand(8)


def python_heavy() -> Made:
    """A loop over numbers in Python."""

    def loop(x: Tensor) -> Tensor:
        number = 0.0
        for place in range(2_000_000):
            number += place % 7 * 0.5
        return x + number

    return _model(loop=Layer(loop)), torch.rand(8)


class _Node:
    def __init__(self, parent: _Node | None) -> None:
        self.parent, self.children = parent, list[_Node]()
        if parent is not None:
            parent.children.append(self)


def garbage() -> Made:
    """Objects in circles, many of them alive at a time: the collector looks at them again and again."""

    def forest(x: Tensor) -> Tensor:
        roots = [_Node(None) for _ in range(200)]
        for root in roots:
            for _ in range(600):
                _Node(root)
        return x

    return _model(forest=Layer(forest)), torch.rand(8)


# --- Threads


def one_threaded() -> Made:
    """A running sum, which PyTorch does not share out."""
    out = torch.empty(1_000_000)

    def sums(x: Tensor) -> Tensor:
        for _ in range(120):
            torch.cumsum(x, 0, out=out)
        return out

    return _model(sums=Layer(sums)), torch.rand(1_000_000)


def imbalanced() -> Made:
    """A function that takes long of all numbers in the first half, and of every third one of the others."""
    x = torch.zeros(6_000_000)
    x[:3_000_000] = x[3_000_000::3] = 5.0
    order, out = torch.full_like(x, 5.0), torch.empty_like(x)
    return _model(gamma=Layer(lambda given: torch.special.gammainc(order, given, out=out))), x


def two_pools() -> Made:
    """Products on threads of the model's own, each with a team of its own."""
    pool: list[ThreadPoolExecutor] = []
    made = threading.Lock()
    weight = torch.rand(768, 768)

    def products(x: Tensor) -> Tensor:
        with made:
            if not pool:
                pool.append(ThreadPoolExecutor(3))

        def product(_: int) -> Tensor:
            with torch.inference_mode():
                for _ in range(4):
                    found = weight @ weight
                return found

        return sum(pool[0].map(product, range(3)), x)

    return _model(pooled=Layer(products)), torch.rand(768, 768)


# --- Kernels and layouts


def scalar_pooling() -> Made:
    """Max pooling in NCHW."""
    return _model(pool=nn.MaxPool2d(3, 2, 1)), torch.rand(16, 64, 160, 160)


def repeated_pooling() -> Made:
    """The same map pooled by 5, 9 and 13, in channels last: the vectors are there."""

    class Pyramid(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.pools = nn.ModuleList(nn.MaxPool2d(size, 1, size // 2) for size in (5, 9, 13))

        def forward(self, x: Tensor) -> Tensor:
            return torch.cat([pool(x) for pool in self.pools], 1)

    return _model(pyramid=Pyramid()), torch.rand(16, 256, 40, 40).contiguous(memory_format=torch.channels_last)


def chained_pooling() -> Made:
    """The chain that does the same: no cause."""

    class Chain(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.pools = nn.ModuleList(nn.MaxPool2d(5, 1, 2) for _ in range(3))

        def forward(self, x: Tensor) -> Tensor:
            found = []
            for pool in self.pools:
                x = pool(x)
                found.append(x)
            return torch.cat(found, 1)

    return _model(chain=Chain()), torch.rand(16, 256, 40, 40).contiguous(memory_format=torch.channels_last)


def layouts() -> Made:
    """Convolutions by 1x1 of large maps in NCHW, with little arithmetic for each number that is reordered."""
    return _model(
        first=nn.Conv2d(24, 48, 3, padding=1), second=nn.Conv2d(48, 48, 1), third=nn.Conv2d(48, 24, 3, padding=1)
    ), torch.rand(2, 24, 256, 256)


def reordered_weights() -> Made:
    """Large weights for maps of a few places."""
    wide = {f"wide{number}": nn.Conv2d(512, 512, 3, padding=1) for number in range(12)}
    return _model(**wide), torch.rand(2, 512, 5, 5)


DIVISIONS = 500
DIVIDED = 1_000_000
"""Numbers of each: of fewer, calling the operator would take a part of the time that is worth a finding."""


def _divided(scale: float) -> Made:
    x, by, out = torch.rand(DIVIDED) * scale, torch.full((DIVIDED,), 1.5), torch.empty(DIVIDED)

    def divide(given: Tensor) -> Tensor:
        for _ in range(DIVISIONS):
            torch.div(given, by, out=out)
        return out

    return _model(divide=Layer(divide)), x


def denormal_fed() -> Made:
    """Divisions of numbers below 1.2e-38."""
    return _divided(1e-39)


def normal_fed() -> Made:
    """The same of numbers that are normal: no cause."""
    return _divided(1.0)
