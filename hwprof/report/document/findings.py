"""What to change first: causes of lost time, with evidence, remedy and what could be won."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from hwprof.report.document.kernels import no_samples
from hwprof.report.document.part import Part
from hwprof.run.trials import Trial, Trials
from hwprof.unavailable import Unavailable

if TYPE_CHECKING:
    from hwprof.analysis import actions as analysed
    from hwprof.analysis.findings import facts
    from hwprof.analysis.run_analysis import RunAnalysis


class Finding(msgspec.Struct, kw_only=True, frozen=True):
    """A cause of lost time. The gain is of the time of ``gain_of``: an interval of what could be won, no promise."""

    rule: str  # its name, as hwprof explain has it
    title: str  # what it is, in a few words
    evidence: str  # the figures that it follows from
    meaning: str
    remedy: str | None  # what to do; null: nothing that the run has not already
    gain_low: float  # the least that could be won
    gain_high: float  # the most
    layers: list[str]
    stage: str | None  # that it is about; null: the inference, or layers of it
    gain_of: str  # "inference", "iteration"
    remedies: list[str] = []  # names, for hwprof try


class Action(msgspec.Struct, kw_only=True, frozen=True):
    """What to do: a remedy, and the causes that it is for. The gain is what these take, at most."""

    title: str
    remedy: str | None  # its name, where ``hwprof try`` can try it
    causes: list[str]  # titles of findings, largest first
    rules: list[str]
    evidence: str  # of the first of them
    gain_low: float
    gain_high: float
    gain_of: str
    tried: Trial | None  # null: nobody has


class Findings(Part, kw_only=True, frozen=True):
    """What could win most first; none where no rule found its cause."""

    rows: list[Finding]
    actions: list[Action] = msgspec.field(
        default_factory=list
    )  # what helped most when it was tried first, then by what it brought, or could bring where nobody tried it
    together: Trial | None = None  # the best combination, where none of its remedies is better alone
    trials: Trials | None = None  # all that was tried; null: nothing
    missing: Unavailable | None = None  # why there are no findings, though remedies were tried


PART: Final = Findings


def build(analysis: RunAnalysis) -> Findings | Unavailable:
    """From the pass that the samples are of, and the main pass."""
    from hwprof.analysis.actions import actions, together
    from hwprof.remedies.told import told

    tried = analysis.run.manifest.trials
    trials = told(tried) if tried is not None else None
    found = analysis.findings if analysis.sampled is not None else no_samples(analysis)
    findings, missing = ([], found) if isinstance(found, Unavailable) else (found, None)
    if missing is not None and trials is None:
        return missing
    return Findings(
        rows=[_finding(one) for one in findings],
        actions=[_action(one) for one in actions(findings, trials)],
        together=together(trials),
        trials=trials,
        missing=missing,
    )


OF_ACTIONS: Final = ("shared", "by_hand")
"""What of a finding only actions tell."""


def _finding(one: facts.Finding) -> Finding:
    told = {name: value for name, value in one._asdict().items() if name not in OF_ACTIONS}
    return Finding(**{**told, "layers": list(one.layers), "remedies": list(one.remedies)})


def _action(one: analysed.Action) -> Action:
    return Action(
        title=one.title,
        remedy=one.remedy,
        causes=[cause.title for cause in one.causes],
        rules=[cause.rule for cause in one.causes],
        evidence=one.causes[0].evidence if one.causes else "",
        gain_low=one.gain_low,
        gain_high=one.gain_high,
        gain_of=one.causes[0].gain_of if one.causes else "inference",
        tried=one.tried,
    )
