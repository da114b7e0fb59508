"""A workload's stages without a session."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class RecordedStages:
    """Stands in for the span recorder: the stages in order of their begin, as ``postprocess/nms`` where nested."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self._open: list[str] = []

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        self._open.append(name)
        self.begun.append("/".join(self._open))
        yield
        assert self._open.pop() == name
