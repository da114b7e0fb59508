"""The variant that a run measured, and how far what it gives agrees with what the model gives without it."""

from __future__ import annotations

from typing import Final

from hwprof.printable import one_line
from hwprof.report.text.figures import Glyphs, plural
from hwprof.run.variants import VariantRecord

FAR: Final = 0.1
"""Of the largest value: outputs that are farther off say something else."""

FEW: Final = 0.9
"""Of the boxes."""

DIGITS: Final = "{:.1g}"


def name(found: VariantRecord) -> str:
    """``channels_last+bfloat16``."""
    return one_line("+".join(found.names))


def agrees(found: VariantRecord) -> bool:
    """Whether the outputs say the same by and large."""
    outputs, boxes = found.outputs, found.boxes
    if outputs is not None and (outputs.unequal or outputs.largest > FAR or (outputs.others and not outputs.tensors)):
        return False
    return boxes is None or boxes.matched >= FEW * max(boxes.without, boxes.found)


def agreement(found: VariantRecord, glyphs: Glyphs, *, brief: bool = False) -> str:
    """``to 0.05 of the largest value (mean 0.003), 45 of 47 boxes, 49 found``; ``brief``: ``0.05, 45/49 boxes``. Empty
    where nothing was compared."""
    if brief:
        return _brief(found)
    words = []
    outputs = found.outputs
    if outputs is not None and outputs.tensors:
        words.append(_to(outputs.largest, outputs.mean))
    if outputs is not None and outputs.unequal:
        of = outputs.unequal + outputs.tensors
        words.append(f"{outputs.unequal} of {plural(of, 'tensor')} of another shape or type, or not finite")
    if outputs is not None and outputs.others:
        words.append(f"{plural(outputs.others, 'tensor')} without a finite number")
    boxes = found.boxes
    if boxes is not None and (boxes.without or boxes.found):
        more = f", {boxes.found:,} found" if boxes.found != boxes.without else ""
        words.append(f"{boxes.matched:,} of {boxes.without:,} boxes{more}")
    return glyphs.separator.join(words)


def _to(largest: float, mean: float | None) -> str:
    if not largest:
        return "to the bit"
    beside = f" (mean {DIGITS.format(mean)})" if mean is not None else ""
    return f"to {DIGITS.format(largest)} of the largest value{beside}"


def _brief(found: VariantRecord) -> str:
    outputs, boxes, words = found.outputs, found.boxes, []
    if outputs is not None and outputs.unequal:
        words.append("not comparable")
    elif outputs is not None and outputs.tensors:
        words.append(DIGITS.format(outputs.largest) if outputs.largest else "exact")
    if boxes is not None and (boxes.without or boxes.found):
        words.append(f"{boxes.matched:,}/{max(boxes.without, boxes.found):,} boxes")
    return ", ".join(words)
