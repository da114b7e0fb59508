"""What a model gives without a variant, and how far from that is what it gives with it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import torch

from hwprof.run.trials import Difference
from hwprof.run.variants import MatchedBoxes
from hwprof.workload.libraries import require_ultralytics
from hwprof.workload.output_differences import Array, difference
from hwprof.workload.protocol import Workload, unmarked
from hwprof.workload.tensors import arrays_of

MATCHED: Final = 0.5
"""The intersection of two boxes over their union from which on they are the same one, as PASCAL VOC has it."""

REPEATED: Final = 1e-6
"""Of the largest value: threads may add up in another order."""

CLASS: Final = 5
"""The column of a box."""


class VariantOutputs:
    """Made without the variant."""

    def __init__(self, workload: Workload) -> None:
        """Calls the model with its first input, twice, and once in its pipeline. Raises what that raises."""
        self._without = _outputs(workload)
        again = difference(itertools.zip_longest(_outputs(workload), self._without))
        self.repeatable = again.largest <= REPEATED and not again.unequal
        workload.iterate(unmarked, None)
        self._boxes = workload.boxes()

    def compared(self, workload: Workload) -> tuple[Difference | None, MatchedBoxes | None]:
        """With what comes out of ``workload`` now, of the model alone and of its pipeline; not of a model that gives
        other outputs at each call."""
        if not self.repeatable:
            return None, None
        outputs = difference(itertools.zip_longest(_outputs(workload), self._without))
        workload.iterate(unmarked, None)
        boxes = workload.boxes()
        both = matched(boxes, self._boxes) if boxes is not None and self._boxes is not None else None
        return outputs, both


def _outputs(workload: Workload) -> list[Array]:
    """What the model gives for its first input: copies, as code of its own may use the memory again."""
    with torch.inference_mode():
        return [np.array(one) for one in arrays_of(workload.forwards()[0].run())]


def matched(found: Sequence[torch.Tensor], without: Sequence[torch.Tensor]) -> MatchedBoxes:
    """Of each input's boxes, (n, 6 or more) with x1, y1, x2, y2, confidence, class: those that are most sure choose
    first."""
    pairs = sum(_pairs(here, there) for here, there in zip(found, without, strict=True))
    return MatchedBoxes(without=sum(map(len, without)), found=sum(map(len, found)), matched=pairs)


def _pairs(found: torch.Tensor, without: torch.Tensor) -> int:
    if not len(found) or not len(without):
        return 0
    box_iou: Any = require_ultralytics("utils.metrics").box_iou
    overlap: torch.Tensor = box_iou(_with_edges(found), _with_edges(without))
    overlap = torch.where(found[:, CLASS, None] == without[None, :, CLASS], overlap, 0.0)
    pairs = 0
    for row in found[:, 4].argsort(descending=True).tolist():
        most, column = overlap[row].max(dim=0)
        if most >= MATCHED:
            pairs += 1
            overlap[:, column] = 0.0
    return pairs


def _with_edges(boxes: torch.Tensor) -> torch.Tensor:
    """With the pixels that they end at, as VOC has it: those at the image's edge may be of no width without."""
    corners = boxes[:, :4].float().clone()
    corners[:, 2:] += 1
    return corners
