"""A layer whose functions are called a number of times that a test knows, and one that profiles itself."""

from __future__ import annotations

import cProfile
import sys
import time
from collections.abc import Iterator

from torch import Tensor, nn

SPIN_S = 0.05
CALLED = 7
DEEP = 5
YIELDED = 4


def spin() -> None:
    end_s = time.thread_time() + SPIN_S
    while time.thread_time() < end_s:
        pass


def called(number: int) -> int:
    return number


def deep(level: int) -> int:
    return deep(level - 1) if level else 0


def gives() -> Iterator[int]:
    yield from range(YIELDED)


def raises() -> None:
    raise ValueError("of the model's own")


class Known(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        spin()
        for number in range(CALLED):
            called(number)
        deep(DEEP - 1)
        sum(gives())
        try:
            raises()
        except ValueError:
            return x
        return x


class Profiled(nn.Module):
    """Its own profiler counts its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = 0

    def forward(self, x: Tensor) -> Tensor:
        def profiler(*_: object) -> None:
            self.seen += 1

        seen = self.seen
        sys.setprofile(profiler)
        called(1)
        sys.setprofile(None)
        assert self.seen > seen, "nobody else may take it away"
        return x


class CProfiled(nn.Module):
    """It has a cProfile of its own."""

    def forward(self, x: Tensor) -> Tensor:
        profile = cProfile.Profile()
        with profile:
            called(1)
        calls = [one.callcount for one in profile.getstats() if one.code is called.__code__]
        assert calls == [1], "nobody else may take it away"
        return x


class AlwaysProfiled(nn.Module):
    """Its profiler stays."""

    def forward(self, x: Tensor) -> Tensor:
        assert sys.getprofile() in (None, self.profiler), "nobody else may take it away"
        sys.setprofile(self.profiler)
        return x

    @staticmethod
    def profiler(*_: object) -> None: ...


def known() -> nn.Module:
    return nn.Sequential(Known())


def convolved() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 16, 3), Known())


def profiled() -> nn.Module:
    return nn.Sequential(Profiled())


def cprofiled() -> nn.Module:
    return nn.Sequential(CProfiled())


def always_profiled() -> nn.Module:
    return nn.Sequential(AlwaysProfiled())


def quick() -> nn.Module:
    """Of no particular calls."""
    return nn.Sequential(nn.Linear(8, 8), nn.ReLU())
