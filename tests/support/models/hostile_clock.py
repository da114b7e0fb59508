"""Models whose code does to the process what servers and tests do: blocked signals, a clock that stands."""

from __future__ import annotations

import signal
import time

from torch import Tensor, nn


class Short(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        end_s = time.thread_time() + 0.02
        while time.thread_time() < end_s:
            pass
        return x + 1


class Freezing(Short):
    """At a call."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.at = at
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        if self.calls == self.at:
            now_ns, now_s = time.monotonic_ns(), time.monotonic()
            time.monotonic_ns = lambda: now_ns
            time.monotonic = lambda: now_s
        return super().forward(x)


def masked() -> nn.Module:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    return Short()


def frozen() -> nn.Module:
    return Freezing(at=4)


def frozen_at_once() -> nn.Module:
    """Before the collectors start."""
    return Freezing(at=1)
