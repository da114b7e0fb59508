"""What to do first: the remedies of findings, several causes of one remedy together, those that were tried by what they
brought."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
        """Of all of them; what two of them count once."""
        rules = {one.rule for one in self.causes}
        twice = sum(gain for one in self.causes for rule, gain in one.shared.items() if rule in rules)
        return min(1.0, sum(one.gain_high for one in self.causes) - twice)

    @property
    def _order(self) -> tuple[int, float]:
        """What is certain to help, by how much; then what is not certain to, by what it brought, among what nobody
        tried, by what that could bring at most; then what others were in the way of, of which nobody knows what it
        brought; then what does not help."""
        found = self.tried.inference if self.tried is not None else None
        if found is None:
            return 1, -self.gain_high
        if found.too_noisy:
            return 2, -self.gain_high
        return (0 if found.helps else 3 if found.in_vain else 1), found.value


def actions(findings: Sequence[Finding], trials: Trials | None) -> list[Action]:
    """In the order in which they are worth a look: of a finding each of its remedies that was tried, else the first of
    which nobody knows that it fails."""
    singles = {one.remedies[0]: one for one in trials.rows if len(one.remedies) == 1} if trials is not None else {}
    found: dict[str, Action] = {}
    for finding in findings:
        for name in _shown(finding, singles):
            trial = singles.get(name)
            title = trial.titles[0] if trial is not None else title_of(name)
            found.setdefault(name, Action(title, name, tried=trial)).causes.append(finding)
        by_hand = finding.remedy if not finding.remedies else _by_hand(finding, singles)
        if by_hand is not None:
            found.setdefault(by_hand, Action(by_hand, None)).causes.append(finding)
    for name, trial in singles.items():
        if trial.works and name not in found:  # asked for by name
            found[name] = Action(trial.titles[0], name, tried=trial)
    return sorted(found.values(), key=lambda one: one._order)


def _shown(finding: Finding, singles: Mapping[str, Trial]) -> list[str]:
    """Of its remedies those of which something is known; of several unknown ones the first says enough."""
    tried = [name for name in finding.remedies if (one := singles.get(name)) is not None and one.works]
    unknown = [name for name in finding.remedies if (one := singles.get(name)) is None or one.reason is None]
    return tried or unknown[:1]


def _by_hand(finding: Finding, singles: Mapping[str, Trial]) -> str | None:
    """What is left to do of a finding, where what was tried of its remedies did not help or could not be tried."""
    tried = [singles[name] for name in finding.remedies if name in singles]
    helped = any(one.inference is not None and not one.inference.in_vain for one in tried)
    return finding.by_hand if tried and not helped else None


def together(trials: Trials | None) -> Trial | None:
    """The best combination, where it is better than each of its remedies."""
    if trials is None:
        return None
    best = trials.best or trials.best_inexact
    return best if best is not None and len(best.remedies) > 1 else None
