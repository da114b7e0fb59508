from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import polars as pl

from hwprof.run.manifest import Disturbance
from hwprof.trace.initial_view import parameters
from tests.support import synthetic_run, synthetic_samples


def pinned(chosen: dict[str, str], name: str) -> bool:
    """Whether any of the commands pins a track of this name."""
    return any(re.search(one["args"][0], name) for one in json.loads(chosen["startupCommands"]))


def test_pins_the_measured_pass_and_shows_its_first_measured_iteration(tmp_path: Path) -> None:
    """That is the first one after warm-up, whether its layers were counted or not."""
    run = synthetic_run.build(tmp_path)
    record = run.manifest.passes[0]
    record.iterations = [msgspec.structs.replace(one, layers_counted=one.index == 3) for one in record.iterations]
    chosen = parameters(run)
    commands = json.loads(chosen["startupCommands"])
    assert {one["id"] for one in commands} == {"dev.perfetto.PinTracksByRegex"}, (
        "what is pinned is not unfolded as well"
    )
    matching = {
        "iterations (measure)",
        "stages (measure)",
        "layers (measure)",
        "CPUs busy (measure)",
        "power/package-0 (measure)",
        "memory/rss (measure)",
    }
    others = {"layers (trace)", "memory/pss (measure)", "layers (measure) 2"}
    assert {name for name in matching | others if pinned(chosen, name)} == matching
    clock = run.manifest.clock
    whole = (
        run.read("spans").filter((pl.col("pass") == "measure") & (pl.col("path") == "iteration 1")).row(0, named=True)
    )
    begin_ns, end_ns = (int(chosen[key]) - clock.boottime_ns + clock.monotonic_ns for key in ("visStart", "visEnd"))
    assert begin_ns < whole["begin_ns"] < whole["end_ns"] < end_ns
    assert end_ns - begin_ns < 1.1 * (whole["end_ns"] - whole["begin_ns"])


def test_a_disturbed_iteration_is_not_the_first_that_is_seen(tmp_path: Path) -> None:
    run = synthetic_run.build(tmp_path)
    record = run.manifest.passes[0]
    others = Disturbance(elapsed_ns=1_000_000, stolen_ns=0, waited_ns=900_000, preemptions=9)

    def shown(disturbed: set[int]) -> set[int]:
        """The iterations whose stages lie in view."""
        record.iterations = [
            msgspec.structs.replace(one, disturbance=others if one.index in disturbed else None)
            for one in record.iterations
        ]
        chosen, clock = parameters(run), run.manifest.clock
        begin_ns, end_ns = (int(chosen[key]) - clock.boottime_ns + clock.monotonic_ns for key in ("visStart", "visEnd"))
        inside = (pl.col("begin_ns") > begin_ns) & (pl.col("end_ns") < end_ns) & (pl.col("kind") == "stage")
        return set(run.read("spans").filter(inside, **{"pass": "measure"})["iteration"])

    assert shown(set()) == {1}
    assert shown({1}) == {2}
    assert shown({1, 2, 3}) == {1}


def test_a_sampled_pass_is_shown_with_what_its_threads_ran(tmp_path: Path) -> None:
    """Layers and kernels below them are of one pass; the threads that worked most are pinned."""
    run = synthetic_run.build(tmp_path)
    synthetic_samples.add(run)
    chosen = parameters(run)
    matching = {"stages (trace)", "layers (trace)", "kernels (trace)", "kernels of omp-1 4201 (trace)"}
    matching |= {"operators of python 4200 (trace)", "Python functions (trace)", "finding 1: team waits (trace)"}
    others = {
        "layers (measure)",
        "kernels of omp-1 42010 (trace)",
        "kernels of omp-1 4200 (trace)",
        "operators (trace)",
        "finding 1: team waits (measure)",
        "finding 4: dispatch (trace)",
    }
    assert {name for name in matching | others if pinned(chosen, name)} == matching
    samples = pl.read_parquet(run.path / "samples.parquet").filter(tid=synthetic_samples.WORKER)
    many = [samples.with_columns(tid=pl.lit(5000 + number, pl.Int32)).head(2 + number) for number in range(8)]
    pl.concat([samples, *many]).write_parquet(run.path / "samples.parquet")
    pin = next(one["args"][0] for one in json.loads(parameters(run)["startupCommands"]) if "kernels" in one["args"][0])
    assert re.findall(r"of \.\* (\d+)", pin) == ["4201", "5007", "5006"]


def test_a_sampled_measure_pass_comes_before_others(tmp_path: Path) -> None:
    run = synthetic_run.build(tmp_path)
    synthetic_samples.add(run)
    samples = pl.read_parquet(run.path / "samples.parquet")
    both = [samples.with_columns(pl.lit(name).alias("pass")) for name in ("trace", "measure")]
    pl.concat(both).write_parquet(run.path / "samples.parquet")
    assert r"\\(measure\\)" in parameters(run)["startupCommands"]


def test_other_passes_serve_where_there_is_no_measure(tmp_path: Path) -> None:
    run = synthetic_run.build(tmp_path)
    run.manifest.passes = [record for record in run.manifest.passes if record.name == "trace"]
    assert r"\\(trace\\)" in parameters(run)["startupCommands"]
    run.manifest.passes[0].iterations = []
    assert set(parameters(run)) == {"startupCommands"}
    run.manifest.passes = []
    assert parameters(run) == {}
