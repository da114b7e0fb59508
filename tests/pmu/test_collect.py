"""``hwprof collect`` itself on a kernel with a PMU: a small model's instructions and cycles per layer."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl
import pytest

from hwprof.run.directory import RunDirectory
from tests.pmu.machine import guest_wheels, run_in_vm

JOB = "tests.pmu.guest.collect"
EVENTS = ("instructions", "cycles")
MOST_BOOTS = 6
OTHER_PATH = 256
"""How far apart counts of two paths through a library may be: 0.02% of the layer that has most instructions."""


def collect(out: Path, threads: int) -> RunDirectory:
    """One boot. An ordinary user counts user code only, so that the kernel's interrupts do not count; address and hash
    randomisation are off, so that the same code runs in every boot."""
    command = ["setarch", "aarch64", "-R", "python3", "-m", JOB, "--threads", str(threads)]
    environment = {"PYTHONHASHSEED": "0"}
    done = run_in_vm(command, out=out, torch=True, user=True, paranoid=2, timeout_s=540, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return RunDirectory.latest(out / "results")


def collect_at_once(boots: Sequence[tuple[Path, int]]) -> list[RunDirectory]:
    """Several boots, two at a time."""
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda boot: collect(*boot), boots))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[RunDirectory]:
    """The same run in two boots, and one with two threads in a third."""
    guest_wheels()  # before two boots want them at once
    return collect_at_once(
        [(tmp_path_factory.mktemp(f"boot{number}"), threads) for number, threads in enumerate((1, 1, 2))]
    )


@pytest.fixture(scope="module")
def boots(runs: list[RunDirectory]) -> list[RunDirectory]:
    return runs[:2]


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
    command = [sys.executable, "-m", "hwprof", "report", str(boots[0].path), "--format", "json"]
    document = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    cpi = [layer["metrics"]["cpi"] for layer in document["layers"]]
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


def last_counted(run: RunDirectory) -> dict[tuple[str, str], int]:
    """(path, event) to value, main thread, last counted iteration: the interpreter has specialised by then."""
    rows = leaf_counts(run).filter((pl.col("role") == "main") & (pl.col("iteration") == pl.col("iteration").max()))
    return {(path, event): value for path, event, value in rows.select("path", "event", "value").rows()}


def test_two_boots_count_the_same_instructions(boots: list[RunDirectory], tmp_path: Path) -> None:
    """To the last instruction, in every layer. Libraries have paths that depend on where memory happens to lie, a few
    dozen instructions apart and the same for a process's whole life; so a layer that took another path in the second
    boot gets further ones to agree with, and no boot may be further off than that."""
    counted = [last_counted(run) for run in boots]

    def agreed(key: tuple[str, str]) -> bool:
        values = [boot[key] for boot in counted]
        return len(set(values)) < len(values)

    while not all(map(agreed, counted[0])) and len(counted) < MOST_BOOTS:
        further = [(tmp_path / str(len(counted) + number), 1) for number in range(2)]
        counted += [last_counted(run) for run in collect_at_once(further)]
    assert len(counted[0]) == 10
    assert all(boot.keys() == counted[0].keys() for boot in counted)
    for key in counted[0]:
        values = [boot[key] for boot in counted]
        assert agreed(key), (key, values)
        assert max(values) - min(values) <= OTHER_PATH, (key, values)


def test_two_threads_are_both_counted(runs: list[RunDirectory]) -> None:
    by_role = leaf_counts(runs[2]).filter(pl.col("event") == "instructions").group_by("role").agg(pl.col("value").sum())
    counted = dict(by_role.iter_rows())
    assert counted["worker"] > 0.1 * counted["main"]
