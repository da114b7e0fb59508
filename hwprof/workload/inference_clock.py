"""How long a model's calls take, and the memory that they do it in, where nothing else is measured."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

INFERENCE: Final = "inference"

RESET: Final = Path("/proc/self/clear_refs")
PEAK: Final = "5"
"""man 5 proc: the peak resident size begins anew."""


class InferenceClock:
    """Of the stages of an iteration the one in which the model is called."""

    def __init__(self) -> None:
        self.inference_ns = 0

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """As ``Stages``."""
        begin_ns = time.perf_counter_ns()
        yield
        if name == INFERENCE:
            self.inference_ns += time.perf_counter_ns() - begin_ns


def forget_peak() -> None:
    """Building a model takes more memory than running it; where the kernel has no such file the peak has that in it."""
    with suppress(OSError):
        RESET.write_text(PEAK)
