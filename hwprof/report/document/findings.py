"""What to change first: causes of lost time, with evidence, remedy and what could be won."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from hwprof.report.document.kernels import no_samples
from hwprof.report.document.part import Part
from hwprof.unavailable import Unavailable

if TYPE_CHECKING:
    from hwprof.analysis.run_analysis import RunAnalysis


class Finding(msgspec.Struct, kw_only=True, frozen=True):
    """A cause of lost time. The gain is of the time of ``gain_of``: an interval of what could be won, no promise."""

    rule: str
    title: str
    evidence: str
    meaning: str
    remedy: str
    gain_low: float
    gain_high: float
    layers: list[str]
    stage: str | None  # that it is about; null: the inference, or layers of it
    gain_of: str  # "inference", "iteration"


class Findings(Part, kw_only=True, frozen=True):
    """What could win most first; none where no rule found its cause."""

    rows: list[Finding]


PART: Final = Findings


def build(analysis: RunAnalysis) -> Findings | Unavailable:
    """From the pass that the samples are of, and the main pass."""
    if analysis.sampled is None:
        return no_samples(analysis)
    if analysis.findings is None:
        return Unavailable("the thread that calls the model was not sampled")
    return Findings(rows=[Finding(**{**one._asdict(), "layers": list(one.layers)}) for one in analysis.findings])
