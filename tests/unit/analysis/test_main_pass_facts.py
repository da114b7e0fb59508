"""What rules take from the main pass, of a run that was made up."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from hwprof.analysis.main_pass_facts import cost_of, layer_times, timed_faults
from hwprof.analysis.owners import WHOLE
from hwprof.analysis.run_analysis import RunAnalysis
from hwprof.run.manifest import Disturbance
from tests.support import synthetic_variants as runs


def test_layers_have_their_part_of_the_main_pass_s_inference(tmp_path: Path) -> None:
    analysis = RunAnalysis(runs.sampled(tmp_path))
    times = layer_times(analysis)
    assert times.pop(WHOLE) == pytest.approx(1.0)
    assert sum(times.values()) == pytest.approx(1.0) and times["model.1.cv1.conv"] == max(times.values())


def test_page_faults_are_those_of_timed_iterations(tmp_path: Path) -> None:
    run = runs.sampled(tmp_path)
    assert timed_faults(RunAnalysis(run)) is None, "an older version counted none"
    main = RunAnalysis(run).main
    assert main is not None
    records = [
        msgspec.structs.replace(
            one,
            disturbance=Disturbance(
                elapsed_ns=10**6, preemptions=0, waited_ns=0, stolen_ns=0,
                page_faults=9_000 if one.warmup or one.layers_counted else 30,
            ),
        )
        for one in main.iterations
    ]  # fmt: skip
    place = next(number for number, one in enumerate(run.manifest.passes) if one.name == main.name)
    run.manifest.passes[place] = msgspec.structs.replace(main, iterations=records)
    analysis = RunAnalysis(run)
    assert timed_faults(analysis) == 30
    run.manifest.peaks = None
    assert cost_of(0.0, analysis) == 0.0 and cost_of(30.0, analysis) is None, "nobody knows what one costs"
