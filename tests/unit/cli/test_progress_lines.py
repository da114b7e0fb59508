"""What a log gets to read of a run: a line a phase, and not too many."""

from __future__ import annotations

from hwprof.cli.progress_lines import AGAIN_S, EVERY_S, ProgressLines


def test_a_phase_has_one_line_with_its_pass_until_it_lasts_long() -> None:
    lines = ProgressLines()
    assert lines.due(0.0) is None, "nothing has begun"
    lines.phase("measure", "importing torch", None)
    lines.phase("measure", "building the model", None)
    found = [lines.due(now) for now in (EVERY_S, 2 * EVERY_S, EVERY_S + AGAIN_S - 1, EVERY_S + AGAIN_S)]
    assert found == ["[measure] building the model", None, None, "[measure] building the model"]
    lines.phase("instrumented", "building the model", None)
    assert lines.due(EVERY_S + AGAIN_S + 1) == "[instrumented] building the model", "another pass"


def test_a_line_says_how_far_it_is() -> None:
    lines = ProgressLines()
    lines.phase("instrumented", "measuring (the pass takes about 40 s)", 800)
    for _ in range(120):
        lines.step()
    assert lines.due(EVERY_S) == "[instrumented] measuring (the pass takes about 40 s): 120 of 800"
    lines.phase("", "writing trace.pftrace", None)
    lines.reached(3, 7)
    assert lines.due(2 * EVERY_S) == "[run] writing trace.pftrace: 3 of 7"
