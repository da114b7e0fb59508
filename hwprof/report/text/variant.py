"""The variant that a run measured, and how far what it gives is from what the model gives without it."""

from __future__ import annotations

from typing import Final

from hwprof.printable import one_line
from hwprof.report.text.figures import Glyphs
from hwprof.run.variants import VariantRecord

SAME: Final = 1e-6
"""Of the largest value: sums in another order."""

DIGITS: Final = "{:.1g}"


def name(found: VariantRecord) -> str:
    """``channels_last+bfloat16``."""
    return one_line("+".join(found.names))


def difference(found: VariantRecord, glyphs: Glyphs, *, brief: bool = False) -> str:
    """``up to 0.05 of the largest value off (mean 0.003), 45 of 47 boxes the same, 49 found``; ``brief``: ``0.05, 45/47
    boxes``. Empty where nothing was compared."""
    if brief:
        return _brief(found)
    words = []
    outputs = found.outputs
    if outputs is not None and outputs.unequal:
        words.append(f"{outputs.unequal} of {outputs.unequal + outputs.tensors} tensors cannot be compared")
    if outputs is not None and outputs.tensors:
        words.append("the same" if outputs.largest <= SAME else _off(outputs.largest, outputs.mean))
    boxes = found.boxes
    if boxes is not None and (boxes.without or boxes.found):
        more = f", {boxes.found:,} found" if boxes.found != boxes.without else ""
        words.append(f"{boxes.matched:,} of {boxes.without:,} boxes the same{more}")
    return glyphs.separator.join(words)


def _off(largest: float, mean: float | None) -> str:
    beside = f" (mean {DIGITS.format(mean)})" if mean is not None else ""
    return f"up to {DIGITS.format(largest)} of the largest value off{beside}"


def _brief(found: VariantRecord) -> str:
    outputs, boxes, words = found.outputs, found.boxes, []
    if outputs is not None and outputs.unequal:
        words.append("not comparable")
    elif outputs is not None and outputs.tensors:
        words.append("same" if outputs.largest <= SAME else DIGITS.format(outputs.largest))
    if boxes is not None and (boxes.without or boxes.found):
        words.append(f"{boxes.matched:,}/{max(boxes.without, boxes.found):,} boxes")
    return ", ".join(words)
