"""``hwprof collect`` itself on a kernel with a PMU: a small model's instructions and cycles per layer."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from hwprof.run.directory import RunDirectory
from tests.pmu.machine import run_in_vm
from tests.support.command import hwprof_here

EVENTS = ("instructions", "cycles")
APART = 0.001
"""Of its instructions, that a layer may have more in one boot than in the other: 0.0005 has been seen."""
DETOUR = 250
"""Instructions that a layer of any size may have more, by one detour of the allocator: 187 have been seen, in three of
the five layers of one iteration."""


def collect(out: Path, *threads: int) -> dict[int, RunDirectory]:
    """One boot, a run for each number of threads. An ordinary user counts user code only, so that the kernel's
    interrupts do not count; address and hash randomisation are off, so that the same code runs in every boot."""
    command = ["setarch", "aarch64", "-R", "python3", "-m", "tests.pmu.guest.collect", *map(str, threads)]
    environment = {"PYTHONHASHSEED": "0"}
    done = run_in_vm(command, out=out, torch=True, user=True, paranoid=2, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return {number: RunDirectory.latest(out / str(number)) for number in threads}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[dict[int, RunDirectory]]:
    """The same run in two boots; in the first, another one with two threads after it."""
    return [collect(tmp_path_factory.mktemp("boot"), *threads) for threads in ((1, 2), (1,))]


@pytest.fixture(scope="module")
def boots(runs: list[dict[int, RunDirectory]]) -> list[RunDirectory]:
    return [run[1] for run in runs]


def leaf_counts(run: RunDirectory) -> pl.DataFrame:
    """instructions and cycles of every leaf call of the counted iterations: iteration, path, event, value by role."""
    leaves = run.read("layers").filter(pl.col("leaf")).select("path")
    spans = run.read("spans").filter(pl.col("kind") == "layer").join(leaves, on="path").select("span", "path")
    counts = run.read("counts").filter(pl.col("event").is_in(EVENTS)).join(spans, on="span")
    return counts.join(run.read("threads").select("tid", "role"), on="tid")


def test_cpi_is_what_the_emulation_makes_it(boots: list[RunDirectory]) -> None:
    rows = leaf_counts(boots[0]).pivot("event", index=["span", "tid", "path"], values="value")
    counted = [iteration for iteration in boots[0].manifest.passes[0].iterations if iteration.layers_counted]
    assert rows.height == 5 * len(counted) > 0
    assert (rows["cycles"] == 2 * rows["instructions"]).all()
    # a run can be read on another machine than the one that it was measured on
    document = json.loads(hwprof_here("report", str(boots[0].path), "--format", "json").stdout)
    cpi = [layer["metrics"]["cpi"] for layer in document["layers"]["rows"]]
    assert cpi == [pytest.approx(2.0, rel=1e-12)] * len(cpi)
    assert len(cpi) >= 5


def test_layers_and_unattributed_are_the_whole(boots: list[RunDirectory]) -> None:
    for run in boots:
        spans, counts = run.read("spans"), run.read("counts")
        stages = spans.filter((pl.col("path") == "inference") & (pl.col("kind") == "stage") & ~pl.col("warmup"))
        layers = leaf_counts(run).group_by("iteration", "event").agg(pl.col("value").sum())
        whole = (
            counts.filter(pl.col("event").is_in(EVENTS))
            .join(stages.select("span"), on="span")
            .group_by("iteration", "event")
            .agg(whole=pl.col("value").sum())
        )
        both = layers.join(whole, on=["iteration", "event"])
        assert both.height > 0
        assert (both["value"] <= both["whole"]).all()
        assert (both["value"] > 0.5 * both["whole"]).all(), "the layers are most of a forward"


def main_instructions(run: RunDirectory) -> pl.DataFrame:
    """Of every layer in every counted iteration, by the main thread."""
    rows = leaf_counts(run).filter((pl.col("event") == "instructions") & (pl.col("role") == "main"))
    return rows.select("iteration", "path", "value").sort("iteration", "path")


def test_two_boots_count_the_same_instructions(boots: list[RunDirectory]) -> None:
    """Almost to the last instruction, in every layer of every counted iteration: both boots have the same clock, random
    numbers, addresses and order of files. But disks, and with them interrupts, keep their own time, and so do the
    kernel's accounts of time, which are read between iterations and have not always as many digits."""
    first, second = (main_instructions(run) for run in boots)
    both = first.join(second, on=["iteration", "path"], suffix="_again", validate="1:1")
    assert both.height == first.height == second.height == 10
    apart = both.with_columns(apart=(pl.col("value") - pl.col("value_again")).abs())
    assert (apart["apart"] <= APART * apart["value"] + DETOUR).all(), apart


def test_two_threads_are_both_counted(runs: list[dict[int, RunDirectory]]) -> None:
    instructions = leaf_counts(runs[0][2]).filter(pl.col("event") == "instructions")
    counted = dict(instructions.group_by("role").agg(pl.col("value").sum()).iter_rows())
    assert counted["worker"] > 0.1 * counted["main"]
