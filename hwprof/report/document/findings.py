"""What to change first: causes of lost time, with evidence, remedy and what could be won."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from hwprof.report.document.kernels import no_samples
from hwprof.report.document.part import Part
from hwprof.report.document.roofline import Roofline
from hwprof.report.document.roofline import build as roofline
from hwprof.unavailable import Unavailable

if TYPE_CHECKING:
    from hwprof.analysis.findings.facts import Facts, Kernel, Share
    from hwprof.analysis.run_analysis import RunAnalysis

MOST_KERNELS: Final = 100


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
    gain_of: str  # "inference", "iteration"


class Findings(Part, kw_only=True, frozen=True):
    """What could win most first; none where no rule found its cause."""

    rows: list[Finding]


PART: Final = Findings


def build(analysis: RunAnalysis) -> Findings | Unavailable:
    """From the pass that the samples are of, and the main pass."""
    if analysis.sampled is None:
        return no_samples(analysis)
    if analysis.time_budget is None or analysis.figures is None:
        return Unavailable("the thread that calls the model was not sampled")
    from hwprof.analysis.findings.rules import find_all

    found = [one._asdict() for one in find_all(_facts(analysis))]
    known = Finding.__struct_fields__
    return Findings(rows=[Finding(**{**{key: one[key] for key in known}, "layers": [*one["layers"]]}) for one in found])


def _facts(analysis: RunAnalysis) -> Facts:
    from hwprof.analysis.findings.facts import Facts, Layer
    from hwprof.analysis.run_findings import convolutions, further_facts, memory_facts, stage_shares
    from hwprof.analysis.thread_facts import processors
    from hwprof.analysis.time_budget import nested

    assert analysis.time_budget is not None
    whole, *layers = nested(analysis.time_budget)
    under = roofline(analysis)
    bounds = {one.path: one.bound for one in under.rows} if isinstance(under, Roofline) else {}
    workload = analysis.run.manifest.workload
    return Facts(
        parts={part["part"]: _share(part) for part in whole["parts"]},
        layers=[
            Layer(
                one["path"],
                one["elapsed_ns"] / whole["elapsed_ns"],
                {part["part"]: part["share"] for part in one["parts"]},
                bounds.get(one["path"]),
            )
            for one in layers
        ],
        kernels=_kernels(analysis),
        stages=stage_shares(analysis),
        **memory_facts(analysis),
        **further_facts(analysis),
        vendor=analysis.machine.vendor,
        threads=workload.threads if workload is not None else 1,
        processors=processors(analysis.machine),
        convolutions=convolutions(analysis.modules),
    )


def _share(row: dict[str, Any]) -> Share:
    from hwprof.analysis.findings.facts import Share

    return Share(row["share"], row["share_low"] or 0.0, row["share_high"] or row["share"])


def _kernels(analysis: RunAnalysis) -> list[Kernel]:
    from hwprof.analysis.findings.facts import Kernel
    from hwprof.analysis.sampled_kernels import kernel_table

    assert analysis.sampled is not None
    rows = kernel_table(analysis.sampled.inside, analysis.sampled.kernels).head(MOST_KERNELS).to_dicts()
    return [
        Kernel(row["name"] or "", row["library"] or "", _share(row), row["domain"] or "")
        for row in rows
        if row["share"] is not None
    ]
