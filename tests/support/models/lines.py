"""A layer whose lines take a time and memory that a test knows."""

from __future__ import annotations

import time

import numpy as np
from torch import Tensor, nn

SPIN_S = 0.12
NATIVE_S = 0.24
KEPT_BYTES = 8 << 20
COPIED_BYTES = 64 << 20


class Known(nn.Module):
    """Twice as long in native code as in Python; what a call keeps, the next one lets go."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: bytearray | None = None
        self.values = np.random.default_rng(0).random(1 << 16)
        self.source = bytes(COPIED_BYTES)

    def forward(self, x: Tensor) -> Tensor:
        self.spin()
        self.native()
        self.kept = None
        self.kept = bytearray(KEPT_BYTES)
        bytearray(self.source)
        return x

    def spin(self) -> None:
        end_s = time.thread_time() + SPIN_S
        number = 0
        while time.thread_time() < end_s:
            for _ in range(2000):
                number += 1

    def native(self) -> None:
        end_s = time.thread_time() + NATIVE_S
        while time.thread_time() < end_s:
            self.values.copy().sort()


class Slow(nn.Module):
    """There is time to interrupt it."""

    def forward(self, x: Tensor) -> Tensor:
        time.sleep(2)
        return x


def slow() -> nn.Module:
    return nn.Sequential(Slow())


def known() -> nn.Module:
    return nn.Sequential(Known())


class Misnamed(Known):
    """Some of its code says that it stands in files that are no Python, or that no system can have."""

    def forward(self, x: Tensor) -> Tensor:
        for name in ("/etc/passwd", "\ud800.py", "/usr/bin/env"):
            found: dict[str, object] = {}
            exec(compile("def work(end_s, now):\n while now() < end_s:\n  pass", name, "exec"), found)
            found["work"](time.thread_time() + SPIN_S / 2, time.thread_time)  # type: ignore[operator]
        return super().forward(x)


def misnamed() -> nn.Module:
    return Misnamed()
