"""What is analysed before the instrumented passes of a run have come to their end."""

from __future__ import annotations

from pathlib import Path

import msgspec

from hwprof.analysis.run_analysis import OF_TIMED_PASSES, RunAnalysis
from hwprof.report.document.builder import build
from hwprof.report.json.codec import encode
from hwprof.run.directory import RunDirectory
from hwprof.run.passes import MEASURE
from tests.support import synthetic_variants


def before_the_last(run: RunDirectory) -> RunDirectory:
    """As it was when the instrumented pass, its last one, had not ended."""
    assert run.manifest.passes[-1].times_from == MEASURE
    return RunDirectory(run.path, msgspec.structs.replace(run.manifest, passes=run.manifest.passes[:-1]))


def test_the_document_is_the_same(tmp_path: Path) -> None:
    run = synthetic_variants.kernels_under_roofs(tmp_path)
    ahead = RunAnalysis(before_the_last(run))
    ahead.look_ahead()
    assert ahead.counted is None, "which is known of the whole run only"
    assert encode(build(RunDirectory.open(run.path), ahead=ahead)) == encode(build(run))


def test_what_is_made_of_timed_passes_is_made_once(tmp_path: Path) -> None:
    run = synthetic_variants.kernels_under_roofs(tmp_path)
    ahead = RunAnalysis(before_the_last(run))
    ahead.look_ahead()
    measured, sampled = ahead.measured, ahead.sampled
    ahead.go_on_with(RunDirectory.open(run.path))
    assert measured is not None and ahead.measured is measured
    assert sampled is not None and ahead.sampled is sampled
    assert ahead.counted is not None


def test_nothing_is_kept_where_a_timed_pass_is_another_one_now(tmp_path: Path) -> None:
    run = synthetic_variants.kernels_under_roofs(tmp_path)
    ahead = RunAnalysis(before_the_last(run))
    ahead.look_ahead()
    changed = RunDirectory.open(run.path)
    changed.manifest.passes[0].threads = 64
    ahead.go_on_with(changed)
    assert not vars(ahead).keys() & set(OF_TIMED_PASSES) - {"modules"}
