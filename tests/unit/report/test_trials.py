"""What remedies brought, as a reader sees it."""

from __future__ import annotations

import io

import msgspec

from hwprof.report.text.console import make_console
from hwprof.report.text.trials import show
from hwprof.run.trials import Change, Trial, Trials, merged


def trial(*names: str, value: float = 0.0, half: float = 0.01, exact: bool = True) -> Trial:
    changed = Change(value=value, low=value - half, high=value + half)
    return Trial(remedies=list(names), titles=list(names), adopt=["type this"], inference=changed, exact=exact)


def trials(*rows: Trial, created: str = "a") -> Trials:
    return Trials(created=created, seconds=9.0, inference_ns=None, rows=list(rows))


def shown(found: Trials) -> str:
    file = io.StringIO()
    show(found, make_console(200, file))
    return file.getvalue()


def test_one_that_fails_now_and_then_shows_why_and_is_not_to_adopt() -> None:
    flaky = msgspec.structs.replace(trial("keep_memory", value=-0.3), reason="it ended with status 7")
    text = shown(trials(flaky))
    assert "fails, though it was measured: keep_memory: it ended with status 7" in text
    assert "type this" not in text and "faster" not in text and "nothing is certain to help" in text


def test_where_only_what_changes_results_helps_it_does_not_say_that_nothing_does() -> None:
    text = shown(trials(trial("bfloat16", value=-0.25, exact=False)))
    assert "faster, and results change: bfloat16" in text and "still" not in text
    assert "of what leaves results as they are, nothing is certain to help" in text
    assert "faster still" in shown(trials(trial("bfloat16", value=-0.25, exact=False), trial("x", value=-0.1)))


def test_rows_of_an_earlier_trial_are_told_apart() -> None:
    found = merged(trials(trial("x", value=-0.1)), trials(trial("y", value=-0.2), created="b"))
    assert "of an earlier trial, of which the rest that stands here is not: x\n" in shown(found)
    assert "earlier" not in shown(trials(trial("x")))
