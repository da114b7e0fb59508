"""What remedies brought, as a reader sees it."""

from __future__ import annotations

import io

import msgspec

from hwprof.report.document.findings import Finding, Findings
from hwprof.report.text.console import make_console
from hwprof.report.text.figures import ASCII
from hwprof.report.text.findings import _tried
from hwprof.report.text.trials import change_text, show
from hwprof.run.trials import Change, Trial, Trials, merged


def trial(*names: str, value: float = 0.0, half: float = 0.01, exact: bool = True) -> Trial:
    changed = Change(value=value, low=value - half, high=value + half)
    return Trial(remedies=list(names), titles=list(names), adopt=["type this"], inference=changed, exact=exact)


def trials(*rows: Trial, created: str = "a") -> Trials:
    return Trials(created=created, seconds=9.0, inference_ns=None, rows=list(rows))


def shown(found: Trials, run: str | None = None) -> str:
    file = io.StringIO()
    show(found, make_console(200, file), run)
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


def test_nobody_is_sent_to_try_what_cannot_be_tried() -> None:
    by_hand = Finding(
        rule="nms",
        title="",
        evidence="",
        meaning="",
        remedy="by hand",
        gain_low=0.0,
        gain_high=0.1,
        layers=[],
        stage=None,
        gain_of="inference",
    )
    assert _tried(Findings(rows=[by_hand])) == ""
    assert "hwprof try" in _tried(Findings(rows=[msgspec.structs.replace(by_hand, remedies=["compile"])]))
    assert "see below" in _tried(Findings(rows=[by_hand], trials=trials(trial("x"))))


def test_what_ended_early_is_tried_again_by_a_command_that_can_be_typed() -> None:
    rows = [trial("threads=1"), trial("compile"), trial("compile", "threads=1"), trial("magic; rm")]
    found = msgspec.structs.replace(trials(*rows), ended="the time was over")
    again = "hwprof try results/a --remedies threads=1,compile --time 20"
    assert f"narrow: the time was over. Try: {again}" in shown(found, "results/a")
    failed = msgspec.structs.replace(found, ended="the workload failed")
    assert "narrow: the workload failed\n" in shown(failed, "results/a")


def test_an_interval_that_says_nothing_is_no_figure() -> None:
    noisy = Change(value=-0.77, low=-1.0, high=834.33)
    assert change_text(noisy, ASCII) == "not known: too noisy"
    assert change_text(Change(value=-0.73, low=-0.96, high=0.93), ASCII) == "-73% (-96 to +93)"
    assert change_text(Change(value=19.0, low=17.0, high=21.0), ASCII) == "+1900% (+1700 to +2100)"


def test_what_failed_after_an_earlier_success_says_now() -> None:
    failed = Trial(remedies=["x"], titles=["x"], reason="it died")
    text = shown(merged(trials(trial("x", value=-0.1)), trials(failed, created="b")))
    assert "fails now, though it was measured: x: it died" in text and "type this" not in text
