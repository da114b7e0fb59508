"""Counting whole processors with this machine's kernel; memory controllers only where it has some."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from collectors.uncore.collector import UncoreCollector
from collectors.uncore.controllers import READ, TOTAL, Group, Part, Plan, open_group
from collectors.uncore.traffic import TrafficLog
from hwprof.collector.contract import PassContext
from hwprof.hardware import machine, perf_event
from hwprof.hardware.pmu import Code, find
from tests.support.bounds import assert_every, disturbance
from tests.support.reported import fields
from tests.support.requirements import missing

pytestmark = pytest.mark.alone

CONFIG_CPU_CLOCK = 0
"""PERF_COUNT_SW_CPU_CLOCK: on a processor it counts nanoseconds, whatever runs there."""

NOBODY = 65534


def online() -> list[int]:
    return sorted(os.sched_getaffinity(0))


def every_processor(*codes: Code) -> Plan:
    """A controller a processor, with an event that adds 1 a count for each code."""
    parts = tuple(Part(code, 1.0, (f"code-{number}",)) for number, code in enumerate(codes))
    return Plan(tuple(Group("a PMU", cpu, parts) for cpu in online()))


READING_NS = 200_000
"""Of all processors, one after the other, by interrupting each."""


class Counting(NamedTuple):
    """What the kernel counted during something."""

    log: TrafficLog
    passed_ns: float  # by the log's own times
    off_ns: float  # by how much a processor's clock may be off: between two readings this process may have to wait


def counted(plan: Plan, during: Callable[[], None]) -> Counting:
    """The plan counted by the kernel during something."""
    try:
        counters = {group: open_group(group) for group in plan.groups}
    except PermissionError as error:
        missing(f"the right to count whole processors, root or kernel.perf_event_paranoid = 0 ({error})")
    for fds in counters.values():
        perf_event.enable_group(fds[0])
    log = TrafficLog(plan, lambda group: perf_event.read_group(counters[group][0], len(group.parts)))
    with disturbance() as disturbed:
        assert log.sample()
        during()
        assert log.sample()
    for fds in counters.values():
        perf_event.close_group(fds)
    times = log.series()["time_ns"]
    return Counting(log, float(times[-1] - times[0]), READING_NS + 1e9 * (disturbed.waited_s + disturbed.stolen_s))


def last(log: TrafficLog, name: str) -> float:
    return float(log.series().filter(name=name)["value"][-1])


def test_processors_are_counted_whatever_runs_on_them() -> None:
    """This process sleeps, but the clocks of all processors go on: their sum is the time times their number."""
    clocks = every_processor(Code(perf_event.TYPE_SOFTWARE, CONFIG_CPU_CLOCK))
    log, passed_ns, off_ns = counted(clocks, lambda: time.sleep(0.2))
    assert log.notes() == []
    assert last(log, "code-0") == pytest.approx(passed_ns * len(online()), abs=off_ns * len(online()))


def test_the_events_of_a_group_are_read_together() -> None:
    """A group of two equal clocks on each processor: members run as long as their leader."""
    clock = Code(perf_event.TYPE_SOFTWARE, CONFIG_CPU_CLOCK)
    log, _, _ = counted(every_processor(clock, clock), lambda: time.sleep(0.05))
    assert last(log, "code-1") == pytest.approx(last(log, "code-0"), rel=0.001)


def test_a_pmu_that_is_no_cores_is_found_in_sysfs_and_counted() -> None:
    """The time stamp counter as the msr PMU gives it: encoded by its format files, the same rate in two windows."""
    pmus = find(machine.ROOT, "msr")
    if not pmus or "tsc" not in pmus[0].events:
        missing("the kernel's msr PMU")
    plan = every_processor(pmus[0].encode("tsc"))
    rates, off = [], 0.0
    for pause_s in (0.1, 0.2):
        log, passed_ns, off_ns = counted(plan, lambda pause_s=pause_s: time.sleep(pause_s))  # type: ignore[misc]
        assert log.notes() == []
        rates.append(last(log, "code-0") / passed_ns / len(online()))
        off += off_ns / passed_ns
    assert rates[0] == pytest.approx(rates[1], rel=off)
    assert 0.5 < rates[0] < 6  # GHz


def test_a_whole_run_with_clocks_in_the_place_of_memory_controllers(tmp_path: Path) -> None:
    """The sysfs tree of a Zen 4 server whose controllers' type and fields make the kernel open the clock of each of
    this machine's processors: every count is a nanosecond, which the collector takes for 64 bytes."""
    plant_clocks(tmp_path)
    collector = UncoreCollector(tmp_path)
    available = collector.availability()
    if not available.ok:
        missing(f"the right to count whole processors, root or kernel.perf_event_paranoid = 0 ({available.reason})")
    with disturbance() as disturbed:
        collector.start(PassContext("measure", os.getpid(), os.getpid(), tmp_path, {}))
        time.sleep(0.3)
    collected = collector.stop()
    series = collected.tables["series"].filter(name=READ)
    assert_every(series["time_ns"].to_list(), fields(collected.detail)["period_ms"] / 1e3, disturbed)
    off_ns = READING_NS + 1e9 * (disturbed.waited_s + disturbed.stolen_s)
    passed_ns = series["time_ns"][-1] - series["time_ns"][0]
    assert series["value"].is_sorted()
    assert series["value"][-1] == pytest.approx(64 * passed_ns * len(online()), abs=64 * off_ns * len(online()))
    assert len(collected.notes) == 1  # what they are; nothing missing or multiplexed
    assert fields(collected.detail)["counters"] == 2 * len(online())
    assert 0 < fields(collected.detail)["reading_us"] < 10_000


def plant_clocks(root: Path) -> None:
    (root / "proc").mkdir()
    (root / "proc/cpuinfo").write_text(
        "processor: 0\nvendor_id: AuthenticAMD\ncpu family: 25\nmodel: 17\nflags: fpu lm\n"
    )
    for cpu in online():
        pmu = root / f"sys/bus/event_source/devices/amd_umc_{cpu}"
        (pmu / "format").mkdir(parents=True)
        (pmu / "type").write_text(f"{perf_event.TYPE_SOFTWARE}\n")
        (pmu / "cpumask").write_text(f"{cpu}\n")
        for field, bits in (("event", "config1:0-7"), ("rdwrmask", "config1:8-9")):
            (pmu / "format" / field).write_text(bits + "\n")  # config stays 0, which is the clock


def test_ordinary_users_are_refused_by_the_kernel_as_the_reason_says() -> None:
    level = perf_event.paranoid_level()
    if os.geteuid() != 0 or level is None or level < 1:
        missing("root, to become an ordinary user, and kernel.perf_event_paranoid above 0")
    code = as_nobody(
        lambda: perf_event.close_group(open_group(every_processor(Code(perf_event.TYPE_SOFTWARE, 0)).groups[0]))
    )
    assert code == errno.EACCES
    found = UncoreCollector()._why_refused(OSError(code, os.strerror(code)))
    assert found.reason is not None and f"kernel.perf_event_paranoid is {level}" in found.reason


def as_nobody(attempt: Callable[[], None]) -> int:
    """The errno that a child process without privileges gets; 0 for success."""
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            attempt()
        except OSError as error:
            os._exit(error.errno or 255)
        except BaseException:
            os._exit(255)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_traffic_is_measured_or_the_reason_is_given(tmp_path: Path) -> None:
    collector = UncoreCollector()
    available = collector.availability()
    if not available.ok:
        assert available.reason
        if machine.hypervisor() is not None and not available.reason.startswith("kernel.perf_event_paranoid"):
            assert "virtual machine" in available.reason and available.remedy
        return
    collector.start(PassContext("measure", os.getpid(), os.getpid(), tmp_path, {}))
    block = bytearray(256 << 20)
    for _ in range(2):
        block = bytearray(block)  # a read and a write of memory that no cache holds
    collected = collector.stop()
    series = collected.tables["series"]
    whole = series.filter(series["name"].is_in([READ, TOTAL]))["value"]
    assert whole[0] == 0 and whole.is_sorted()
    assert whole[-1] > len(block)
