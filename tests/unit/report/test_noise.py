"""A noisy run says so before everything else; what was left out is counted."""

from __future__ import annotations

from pathlib import Path

from hwprof.report.document import builder
from hwprof.report.document.document import Document
from hwprof.report.document.layers import Layer, Layers
from hwprof.report.document.noise import Noise
from hwprof.report.document.stages import Stages
from tests.support import synthetic_variants as runs
from tests.support.document_parts import part
from tests.support.sampled_report import printed
from tests.support.synthetic_run import build


def test_figures_are_those_of_a_quiet_run(tmp_path: Path) -> None:
    """Two of six timed iterations are four times as long."""
    quiet = builder.build(build(tmp_path / "quiet", iterations=12))
    busy = builder.build(runs.disturbed(tmp_path / "busy"))
    found = part(busy, Noise)
    assert (found.disturbed, found.timed, found.timed_left_out, found.spread) == (2, 4, 2, False)
    assert (part(quiet, Noise).disturbed, part(quiet, Noise).others) == (0, False)
    for name in ("model.0.conv", "model.2"):
        here, there = (layer(document, name).time for document in (busy, quiet))
        assert here is not None and there is not None
        assert abs(here.median_ns / there.median_ns - 1) < 0.05
        assert (here.repetitions, there.repetitions) == (4, 6)
    assert {row.call.repetitions for row in part(busy, Stages).rows if row.call} == {4}


def layer(document: Document, path: str) -> Layer:
    return next(row for row in part(document, Layers).rows if row.path == path)


def test_a_quiet_run_begins_with_the_run(tmp_path: Path) -> None:
    assert printed(builder.build(build(tmp_path)), 120).startswith("run ")


def test_a_noisy_run_says_so_first_and_what_to_do(tmp_path: Path) -> None:
    text = printed(builder.build(runs.disturbed(tmp_path)), 120)
    warning = text[: text.index("\nrun ")]
    assert "2 disturbed" in warning and "4 timed" in warning
    assert "--wait-quiet" in warning
    assert "4 of 6 timed iterations (2 disturbed)" in text


def test_where_all_are_disturbed_none_is_left_out(tmp_path: Path) -> None:
    built = builder.build(runs.disturbed(tmp_path, every=True))
    found = part(built, Noise)
    assert (found.disturbed, found.timed, found.timed_left_out, found.others) == (12, 6, 0, True)
    assert "12 of 12 iterations disturbed" in printed(built, 120)
