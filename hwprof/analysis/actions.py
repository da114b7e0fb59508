"""What to do first: the remedies of findings, several causes of one remedy together, those that were tried by what they
brought."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hwprof.analysis.findings.facts import Finding
from hwprof.remedies.catalogue import title_of
from hwprof.run.trials import Trial, Trials


@dataclass
class Action:
    """One remedy and the causes that it is for. ``gain``: of the time that they take, what could be won, no promise."""

    title: str
    remedy: str | None  # its name, where hwprof can try it
    causes: list[Finding] = field(default_factory=list)
    tried: Trial | None = None

    @property
    def gain_low(self) -> float:
        """Of one cause at least."""
        return max((one.gain_low for one in self.causes), default=0.0)

    @property
    def gain_high(self) -> float:
        """Of all of them."""
        return min(1.0, sum(one.gain_high for one in self.causes))

    @property
    def _order(self) -> tuple[int, float]:
        """What is certain to help, by how much; then what nobody tried, by what it could; then what does not help."""
        if self.tried is None or self.tried.inference is None:
            return 1, -self.gain_high
        return (0 if self.tried.inference.helps else 2), self.tried.inference.value


def actions(findings: Sequence[Finding], trials: Trials | None) -> list[Action]:
    """In the order in which they are worth a look."""
    singles = {one.remedies[0]: one for one in trials.rows if len(one.remedies) == 1} if trials is not None else {}
    found: dict[tuple[str | None, str], Action] = {}
    for finding in findings:
        name = chosen(finding.remedies, singles)
        trial = singles.get(name) if name is not None else None
        title = finding.remedy if name is None else trial.titles[0] if trial is not None else title_of(name)
        one = found.setdefault((name, title if name is None else ""), Action(title, name, tried=trial))
        one.causes.append(finding)
    return sorted(found.values(), key=lambda one: one._order)


def chosen(names: Sequence[str], singles: dict[str, Trial]) -> str | None:
    """Of a finding's remedies the one that helped most, else the first that was not tried, else the first."""
    measured = {name: one.inference for name in names if (one := singles.get(name)) and one.inference is not None}
    helping = [name for name, change in measured.items() if change.helps]
    if helping:
        return min(helping, key=lambda name: measured[name].value)
    untried = [name for name in names if name not in singles]
    return next(iter([*untried, *names]), None)


def together(trials: Trials | None) -> Trial | None:
    """The best combination, where it is better than each of its remedies."""
    if trials is None:
        return None
    best = trials.best_inexact or trials.best
    return best if best is not None and len(best.remedies) > 1 else None
