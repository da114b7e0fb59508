"""What the emulated machine found: a boot for each kind of machine, since booting is what takes the time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.pmu.machine import TIMEOUT_S, Results, run_in_vm


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The first test that needs a boot waits for it, and for another one where it compares two."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.timeout(2 * TIMEOUT_S + 600))


def run_jobs(out: Path, *jobs: str, **options: Any) -> Results:
    """What the jobs of ``tests.pmu.guest`` found in one boot, as root."""
    done = run_in_vm(["python3", "-m", "tests.pmu.guest", *jobs], out=out, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return {job: json.loads((out / f"{job}.json").read_text()) for job in jobs}


@pytest.fixture(scope="session")
def found(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A Neoverse N1, which the event catalogue knows."""
    jobs = (
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
    return run_jobs(tmp_path_factory.mktemp("found"), *jobs)


@pytest.fixture(scope="session")
def found_by_papi(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A Cortex A57, whose PMU the emulator has and for which PAPI 7.0 knows presets."""
    jobs = ("papi_beside_perf", "papi_in_turn", "papi_at_levels")
    return run_jobs(tmp_path_factory.mktemp("papi"), *jobs, cpu="cortex-a57", paranoid=1)


@pytest.fixture(scope="session")
def found_without_pmu(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A Cortex A72, which PAPI 7.0 does not know, without a PMU."""
    jobs = ("what_is_there", "papi_available", "sample_a_little")
    return run_jobs(tmp_path_factory.mktemp("without"), *jobs, cpu="cortex-a72,pmu=off", paranoid=1)
