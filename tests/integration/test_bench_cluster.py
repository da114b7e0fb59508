"""A bench on a Ray cluster of two machines, which are processes here, of which one is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from hwprof.bench.store import Store
from tests.support.command import TESTS_MODELS, command_line, hwprof
from tests.support.processes import children_of
from tests.support.requirements import require_module

QUICK = ("--processes", "1", "--values", "2", "--min-time", "0.01")
MATRIX = (
    *("--models", "tests.support.models.remedies:factory", "--threads", "1,2"),
    *("--variants", "eager,active_wait,channels_last,bfloat16,flush_denormals,torchscript"),
)
CASES = 12


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    require_module("torch")
    require_module("pyperf")
    require_module("ray")
    from ray.cluster_utils import Cluster

    for name, value in TESTS_MODELS.items():  # where the machines' hwprof, and the model, are found
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    ends = signal.getsignal(signal.SIGTERM)
    made: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    try:
        yield made
    finally:
        made.shutdown()
        signal.signal(signal.SIGTERM, ends)  # Ray puts its own there


def test_every_case_is_there_once_though_a_machine_is_lost(cluster: Any, tmp_path: Path) -> None:
    first, second = (cluster.add_node(num_cpus=1, resources={"hwprof": 1}) for _ in range(2))
    assert first is not second
    process = subprocess.Popen(
        command_line(
            "bench", *MATRIX, *QUICK, "--on", cluster.address, "--width", "100", "--store", f"file://{tmp_path}/there"
        ),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    end_s = time.monotonic() + 240
    while len(list(tmp_path.glob("results/bench-*/cases/*/result.json"))) < 3:
        assert time.monotonic() < end_s and process.poll() is None, process.communicate()
        time.sleep(0.2)
    cluster.remove_node(second, allow_graceful=False)
    out, errors = process.communicate(timeout=400)
    assert process.returncode == 0, errors
    (folder,) = (tmp_path / "results").glob("bench-*")
    results = Store.open(folder).results()
    assert len(results) == len({one.key for one in results}) == CASES
    failed = [one.case.variant for one in results if one.failure is not None]
    assert sorted(set(failed)) == ["channels_last"], "which has nothing to change there"
    assert {one.machine for one in results if one.failure is None} == {os.uname().nodename}
    rows = pl.read_parquet(folder / "parquet" / "**" / "*.parquet", hive_partitioning=True)
    assert rows.height == CASES and set(rows["machine"]) == {os.uname().nodename}
    assert "active_wait" in out and (folder / "pyperf.json").exists() and not (folder / "ray.log").exists()
    (there,) = (tmp_path / "there").glob(f"{folder.name}-*")
    copy = Store.open(there)
    assert copy.results() == results and copy.machines() == Store.open(folder).machines()
    assert pl.read_parquet(copy.path / "parquet" / "**" / "*.parquet").height == CASES


def test_a_cluster_without_machines_says_how_to_have_them(cluster: Any, tmp_path: Path) -> None:
    done = hwprof("bench", *MATRIX, *QUICK, "--on", cluster.address, cwd=tmp_path)
    assert done.returncode == 1 and "has the resource hwprof" in done.stderr and "ray start" in done.stderr


@pytest.mark.parametrize(
    ("address", "code", "told"),
    [
        ("127.0.0.1:1", 1, "no Ray cluster at 127.0.0.1:1"),
        ("ray://127.0.0.1:1", 1, "no Ray cluster at ray://127.0.0.1:1"),
        ("here", 2, "--on here: no address"),
        ("x:99999999999", 2, "no address"),
        ("auto", 1, "no Ray cluster at auto"),
    ],
)
def test_where_no_cluster_is_a_line_says_so(tmp_path: Path, address: str, code: int, told: str) -> None:
    require_module("ray")
    done = hwprof("bench", *MATRIX, *QUICK, "--on", address, cwd=tmp_path, timeout_s=120)
    assert done.returncode == code and told in done.stderr and "Traceback" not in done.stderr
    assert not list(tmp_path.glob("results/bench-*"))


KILLS = """
import os, signal, torch
def kills():
    process = os.getpid()
    while b"ray::measure" not in open(f"/proc/{process}/cmdline", "rb").read():
        process = int(open(f"/proc/{process}/stat").read().rpartition(")")[2].split()[1])
    os.kill(process, signal.SIGKILL)
    signal.pause()
def plain():
    return torch.nn.Linear(3, 2)
"""


def test_a_case_that_ends_its_machines_worker_fails_alone(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text(KILLS)
    monkeypatch.chdir(tmp_path)
    cluster.add_node(num_cpus=1, resources={"hwprof": 1})
    models = ("--models", "mine:kills,mine:plain", "--input-shape", "1,3", "--no-peaks", "--threads", "1")
    done = hwprof("bench", *models, *QUICK, "--on", cluster.address, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (folder,) = (tmp_path / "results").glob("bench-*")
    kills, plain = Store.open(folder).results()
    assert kills.failure is not None and "was lost 3 times" in kills.failure.message and plain.failure is None


def test_a_cluster_that_goes_says_how_to_go_on(cluster: Any, tmp_path: Path) -> None:
    """Ray ends the process that it is in when its head does not come back; so a signal as good as stands for it."""
    cluster.add_node(num_cpus=1, resources={"hwprof": 1})
    process = subprocess.Popen(
        command_line("bench", *MATRIX, *QUICK, "--on", cluster.address),
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    end_s = time.monotonic() + 240
    while not list(tmp_path.glob("results/bench-*/cases/*/result.json")):
        assert time.monotonic() < end_s and process.poll() is None, process.communicate()
        time.sleep(0.2)
    (driver,) = children_of(process.pid)
    os.kill(driver, signal.SIGKILL)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1 and "the Ray cluster at" in errors and "hwprof bench --resume" in errors, errors
    assert "is gone: " in errors and "Traceback" not in errors
