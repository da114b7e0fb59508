"""What others did to an iteration, from the kernel's accounts at its two ends."""

from __future__ import annotations

import os
import time
from pathlib import Path

from hwprof.session import disturbance
from hwprof.session.disturbance import Reading, between, process_cpu_ns, waited_by_thread

NO_PROCESS = 1 << 23
"""Numbers end at 2^22 (PID_MAX_LIMIT)."""


def test_waits_are_summed_over_threads_and_a_new_one_counts_from_its_creation() -> None:
    before = Reading(1_000, 5, {"1": 100, "2": 200, "gone": 70}, 30)
    after = Reading(9_000, 8, {"1": 150, "2": 260, "new": 7}, 50)
    found = between(before, after)
    assert (found.elapsed_ns, found.preemptions, found.waited_ns, found.stolen_ns) == (8_000, 3, 50 + 60 + 7, 20)


def test_what_processes_of_hwprof_took_is_told_of_those_that_live_to_the_end() -> None:
    before = Reading(0, 0, {}, None, {11: 500, 12: 70})
    after = Reading(10, 2, {}, None, {11: 900, 13: 4})
    assert between(before, after).own_ns == 400


def test_the_cpu_time_of_a_process_is_told_by_its_number() -> None:
    least = time.process_time_ns()
    found = process_cpu_ns(os.getpid())
    assert found is not None
    assert least <= found <= time.process_time_ns()
    assert process_cpu_ns(NO_PROCESS) is None
    assert set(disturbance.read([os.getpid(), NO_PROCESS]).own_ns) == {os.getpid()}


def test_what_the_kernel_does_not_tell_is_not_known() -> None:
    found = between(Reading(0, 0, {}, None), Reading(10, 2, {}, None))
    assert (found.preemptions, found.waited_ns, found.stolen_ns) == (2, None, None)


def test_the_fewest_processors_that_an_iteration_might_use() -> None:
    both = Reading(0, 0, {}, None, processors=2), Reading(10, 0, {}, None, processors=1)
    assert between(*both).processors == between(*reversed(both)).processors == 1
    assert disturbance.read().processors == len(os.sched_getaffinity(0))


def test_the_second_field_of_schedstat_is_the_wait(tmp_path: Path) -> None:
    for tid, text in {"11": "900 40 3\n", "12": "5 6 7\n", "13": "", "14": "0 x 0\n"}.items():
        (tmp_path / tid).mkdir()
        (tmp_path / tid / "schedstat").write_text(text)
    (tmp_path / "15").mkdir()  # it has ended
    assert waited_by_thread(tmp_path) == {"11": 40, "12": 6}
    assert waited_by_thread(tmp_path / "none") == {}


def test_this_process_has_accounts() -> None:
    found = between(disturbance.read(), disturbance.read())
    assert found.elapsed_ns > 0
    assert found.preemptions >= 0
