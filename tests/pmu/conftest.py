"""What the emulated machine found: a boot for each kind of machine, since booting is what takes the time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from hwprof.run.directory import RunDirectory
from tests.pmu.machine import run_in_vm

Results = dict[str, dict[str, Any]]
Runs = dict[int, RunDirectory]
"""By number of threads."""

KNOWN: Final = (
    "what_is_there",
    "known_loops",
    "threads_come_and_go",
    "many_events",
    "a_dead_event",
    "defaults",
    "what_the_pmu_lacks",
    "scarce_counters",
    "sampled_loops",
    "counted_and_sampled",
    "ordinary_samplers",
    "ordinary_user",
    "events",
)
PAPI: Final = ("papi_beside_perf", "papi_in_turn", "papi_at_levels")
WITHOUT_PMU: Final = ("what_is_there", "papi_available", "sample_a_little")


def run_jobs(out: Path, *jobs: str, **options: Any) -> Results:
    """What the jobs of ``tests.pmu.guest`` found in one boot, as root."""
    done = run_in_vm(["python3", "-m", "tests.pmu.guest", *jobs], out=out, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return {job: json.loads((out / f"{job}.json").read_text()) for job in jobs}


def collect(out: Path, *threads: int) -> Runs:
    """One boot, a run for each number of threads. An ordinary user counts user code only, so that the kernel's
    interrupts do not count; address and hash randomisation are off, so that the same code runs in every boot."""
    command = ["setarch", "aarch64", "-R", "python3", "-m", "tests.pmu.guest.collect", *map(str, threads)]
    environment = {"PYTHONHASHSEED": "0"}
    done = run_in_vm(command, out=out, torch=True, user=True, paranoid=2, timeout_s=540, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return {number: RunDirectory.latest(out / str(number)) for number in threads}


@pytest.fixture(scope="session")
def found(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A Neoverse N1, which the event catalogue knows."""
    return run_jobs(tmp_path_factory.mktemp("found"), *KNOWN, timeout_s=240)


@pytest.fixture(scope="session")
def found_by_papi(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A Cortex A57, whose PMU the emulator has and for which PAPI 7.0 knows presets."""
    return run_jobs(tmp_path_factory.mktemp("papi"), *PAPI, cpu="cortex-a57", paranoid=1)


@pytest.fixture(scope="session")
def found_without_pmu(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A Cortex A72, which PAPI 7.0 does not know, without a PMU."""
    return run_jobs(tmp_path_factory.mktemp("without"), *WITHOUT_PMU, cpu="cortex-a72,pmu=off", paranoid=1)


@pytest.fixture(scope="session")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """``hwprof collect`` on a Neoverse N1, with one thread and with two."""
    return collect(tmp_path_factory.mktemp("collected"), 1, 2)


@pytest.fixture(scope="session")
def collected_again(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """The same with one thread, in a boot of its own."""
    return collect(tmp_path_factory.mktemp("again"), 1)
