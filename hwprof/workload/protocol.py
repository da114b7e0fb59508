"""What can be measured: the protocol of a workload. Nothing outside of ``workload/`` may assume YOLO."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import torch

from hwprof.run.manifest import WorkloadRecord

Outputs = Callable[[Any], None]
"""Is shown what a workload gives."""


class Call(NamedTuple):
    """One call of a model."""

    module: torch.nn.Module
    arguments: tuple[Any, ...]
    keywords: Mapping[str, Any] = {}

    def run(self) -> Any:
        """What the model gives."""
        return self.module(*self.arguments, **self.keywords)

    def run_as_measured(self) -> Any:
        """The same in the mode in which models are measured."""
        with torch.inference_mode():
            return self.run()


class Stages(Protocol):
    """Marks the pipeline's stages: ``with stages("preprocess"): ...``; they may nest (nms in postprocess)."""

    def __call__(self, name: str) -> AbstractContextManager[None]:
        """The named stage, for as long as the block runs."""
        ...


def unmarked(name: str) -> AbstractContextManager[None]:
    """A stage of no iteration."""
    del name  # nobody asks for its time
    return nullcontext()


class Workload(Protocol):
    """A deterministic piece of work that can be done again and again."""

    modules: Mapping[str, torch.nn.Module]
    """The models to watch: prefix of the layer paths ("" for the only one) -> module. Filled by ``prepare``."""

    shapes_suffice: bool
    """Whether the values that a forward sees never decide what it computes."""

    def prepare(self, *, values: bool = True) -> WorkloadRecord:
        """Builds the model, loads weights and inputs. Without ``values`` the weights may be anything: enough for the
        layer tables. Raises ``HwprofError`` with one clear line on bad input."""
        ...

    def iterate(self, stages: Stages, save_to: Path | None, outputs: Outputs | None = None) -> None:
        """One iteration: every input once through all stages. Results are written into ``save_to``, if given, and what
        comes out is shown to ``outputs``, outside of all stages."""
        ...

    def forwards(self) -> list[Call]:
        """One iteration's model calls, without the pipeline around them. For the static layer table and for
        benchmarks."""
        ...

    def results(self) -> list[str]:
        """One line an input on what came out in the last iteration; empty where there is nothing to say."""
        ...

    def boxes(self) -> list[torch.Tensor] | None:
        """What was found in each input of the last iteration, (n, 6 or more): x1, y1, x2, y2, confidence, class; None
        of a model that finds no boxes."""
        ...
