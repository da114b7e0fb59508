"""What to do, on the first screen: by what it brought where it was tried, else by what its causes take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hwprof.report.document.findings import Action, Findings
from hwprof.report.text import figures
from hwprof.report.text.named_lines import DISTURBED, MARGIN, absent, by_few_samples, named, preempted
from hwprof.report.text.page import Page
from hwprof.report.text.trials import TOO_NOISY, change_text, say_lines, verdict, why_it
from hwprof.run.trials import Change, Trial, Trials
from hwprof.unavailable import explain

ACTIONS: Final = 4
VERDICTS: Final = ("not certain", "no gain", "slower")
"""Of what is not worth doing, each a line."""

FAILED: Final = 2
GAIN: Final = 18


def show(page: Page) -> None:
    """Some lines; one where there is nothing to do."""
    part = page.part(Findings)
    where, why = (page.document.absent.get(section) for section in ("time_budget", "findings"))
    if part is None and why is not None and why == where:
        named(page, "DO", "not available, for the same reason")
        return
    if part is None:
        absent(page, "DO", "findings")
        return
    if part.missing is not None:
        named(page, "DO", f"no findings: {explain(part.missing.reason, part.missing.remedy)}", whole=True)
    changes = [(one, change) for one in part.actions if (change := _change(one)) is not None]
    done = [one for one, change in changes if not change.helps and (change.in_vain or not one.rules)]
    worth_doing = [one for one in part.actions if one not in done]
    helpful = worth_doing[:ACTIONS]
    if not helpful and part.missing is None:
        named(page, "DO", nothing(part, page), whole=True)
    room = page.console.width - MARGIN - 4 - max((len(_gain(one, page)) for one in helpful), default=0)
    width = max(1, min(room, max((len(one.title) for one in helpful), default=0)))
    told_at: dict[str, int] = {}  # by evidence: several remedies of one cause repeat none of it
    for number, one in enumerate(helpful, 1):
        title = figures.shorten(one.title, width, page.glyphs.ellipsis, head=width - len(page.glyphs.ellipsis))
        _do(page, "" if number > 1 or part.missing is not None else "DO", f"{number} {title:<{width}}", one, told_at)
        told_at.setdefault(one.evidence, number)
    if len(worth_doing) > ACTIONS:
        named(page, "", f"{len(worth_doing) - ACTIONS} more: --findings")
    if part.together is not None and part.together.inference is not None:
        tried = f"tried {change_text(part.together.inference, page.glyphs)}"
        named(page, "", f"together: {' + '.join(part.together.titles)}: {tried}")
    for name in VERDICTS:
        told = [
            f"{one.title} {change_text(change, page.glyphs)}"
            for one, change in changes
            if one in done and verdict(change) == name
        ]
        if told:
            named(page, "", f"{name}: {', '.join(told)}")
    failed = [one for one in part.trials.rows if one.reason is not None] if part.trials is not None else []
    if failed:
        told = [f"{' + '.join(one.titles)}: {one.reason}" for one in failed[:FAILED]]
        named(page, "", f"not tried: {'; '.join(told)}")
    if part.trials is None and any(one.remedy is not None for one in helpful):
        named(page, "", "up to: what the cause takes at most; what remedies bring: hwprof try")
    best = _best(part.trials)
    if part.trials is not None and best is not None:
        changed = "" if best.keeps_results else ", results change"
        named(page, "ADOPT", f"{' + '.join(best.titles)}{changed}{why_it(part.trials, best)}", whole=True)
        say_lines(best, page.console)


def lines_to_adopt(page: Page) -> int:
    """How many lines what helped most has to type, with its name."""
    part = page.part(Findings)
    best = _best(part.trials) if part is not None else None
    return 1 + len(best.adopt) if best is not None else 0


def _best(trials: Trials | None) -> Trial | None:
    return trials.best or trials.best_inexact if trials is not None else None


def _do(page: Page, name: str, what: str, one: Action, told_at: Mapping[str, int]) -> None:
    """One thing to do, and why: behind it, where there is room for all of it, else below it."""
    line, why = f"{what}  {_gain(one, page):<{GAIN}}", _why(one, told_at.get(one.evidence))
    if page.console.width - MARGIN - len(line) >= len(why) + 2:
        named(page, name, f"{line}  {why}")
        return
    named(page, name, line.rstrip())
    named(page, "", f"  {why}", whole=True)


def nothing(part: Findings, page: Page) -> str:
    """Why there is nothing to do, as far as anybody knows."""
    if part.rows:
        tried = part.trials is not None and any(one.inference is not None for one in part.trials.rows)
        causes = ", ".join(row.rule.replace("_", " ") for row in part.rows[:ACTIONS])
        return f"no remedy {'helped' if tried else 'could be tried'} ({causes}: --findings)"
    if preempted(page) >= DISTURBED:
        others = f"others had the processor for {preempted(page):.0%} of the time"
        return explain(f"not known: {others}, and no rule found a cause in the rest", "collect with --wait-quiet")
    return f"no rule found a cause of lost time{by_few_samples(page)}"


def _change(one: Action) -> Change | None:
    return one.tried.inference if one.tried is not None else None


def _gain(one: Action, page: Page) -> str:
    change = _change(one)
    if change is not None:
        text, certain = change_text(change, page.glyphs), "" if change.helps else ", not certain"
        return f"tried: {text}" if text == TOO_NOISY else f"tried {text}{certain}"
    whole = "" if one.gain_of == page.document.whole else f" of {one.gain_of}"
    low, high = f"{one.gain_low:.0%}", f"{one.gain_high:.0%}"
    if one.gain_low > 0 and low != high:
        return f"{low} to {high}{whole}"
    return f"up to {one.gain_high:.0%}{whole}"


def _why(one: Action, same: int | None) -> str:
    """The causes by the names of their rules, with the figures of the largest; ``same``: where these stand already."""
    rules = ", ".join(rule.replace("_", " ") for rule in one.rules)
    evidence = one.evidence if same is None else f"as {same}"
    why = f"{rules}: {'the first ' if len(one.rules) > 1 else ''}{evidence}" if rules else ""
    changes = one.tried is not None and _change(one) is not None and not one.tried.keeps_results
    return f"results change; {why}" if changes else why
