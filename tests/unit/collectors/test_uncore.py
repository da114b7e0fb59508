"""DRAM traffic of made-up servers: their sysfs trees, and a kernel that counts what the tests tell it to."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.uncore.collector import UncoreCollector
from collectors.uncore.controllers import READ, TOTAL, WRITE, Group, Part, Plan, dram_events, dram_recipes, make_plan
from collectors.uncore.traffic import Reading, TrafficLog
from hwprof.collector.contract import PassContext
from hwprof.hardware import perf_event
from hwprof.hardware.catalogue import Event, Microarchitecture, microarchitecture, microarchitectures
from hwprof.hardware.metrics import operands
from hwprof.hardware.perf_event import Attributes
from hwprof.hardware.pmu import Code
from hwprof.run.notes import NoteKind
from hwprof.run.schema import TABLES
from tests.support.reported import fields, texts

INTEL_FORMATS = {"event": "config:0-7", "umask": "config:8-15"}
UMC_FORMATS = {"event": "config:0-7", "rdwrmask": "config:8-9"}
DF_FORMATS = {"event": "config:0-7,32-35,59-60", "umask": "config:8-15"}
FIRST_TYPE = 20

# --- made-up machines


def plant_machine(root: Path, cpuinfo: str, sockets: dict[int, int], pmu: str = "cpu") -> Path:
    """What /proc and /sys say of a processor, its cores' PMU, and which socket each logical processor is on."""
    (root / "proc/sys/kernel").mkdir(parents=True)
    (root / "proc/cpuinfo").write_text(f"processor\t: 0\n{cpuinfo}\nflags\t\t: fpu lm\n")
    (root / "proc/sys/kernel/perf_event_paranoid").write_text("0\n")
    for cpu, socket in sockets.items():
        folder = root / f"sys/devices/system/cpu/cpu{cpu}/topology"
        folder.mkdir(parents=True)
        (folder / "physical_package_id").write_text(f"{socket}\n")
    plant_pmu(root, pmu, {"event": "config:0-7"}, None)
    return root


def plant_pmu(root: Path, name: str, formats: dict[str, str], cpumask: str | None, **events: str) -> int:
    """A PMU's folder; its type."""
    devices = root / "sys/bus/event_source/devices"
    folder = devices / name
    kind = FIRST_TYPE + (len(list(devices.iterdir())) if devices.exists() else 0)
    for part, files in (("format", formats), ("events", events)):
        (folder / part).mkdir(parents=True)
        for file, text in files.items():
            (folder / part / file).write_text(text + "\n")
    (folder / "type").write_text(f"{kind}\n")
    if cpumask is not None:
        (folder / "cpumask").write_text(cpumask + "\n")
    return kind


def intel(model: int) -> str:
    return f"vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: {model}\nmodel name\t: Xeon"


def amd(family: int, model: int) -> str:
    return f"vendor_id\t: AuthenticAMD\ncpu family\t: {family}\nmodel\t\t: {model}\nmodel name\t: EPYC"


def event(name: str, code: str, pmu: str = "uncore_imc") -> Event:
    return Event(name=name, meaning=name, code=code, pmu=pmu, scope="socket", unit="B", weight=64)


def known(name: str) -> Microarchitecture:
    """The catalogue's file of that name."""
    found = microarchitecture(name)
    assert found is not None
    return found


@pytest.fixture
def xeon(tmp_path: Path) -> Path:
    """Sapphire Rapids: two sockets with eight memory controllers each, and another unit of almost the same name."""
    plant_machine(tmp_path, intel(0x8F), {0: 0, 1: 0, 56: 1, 57: 1})
    for number in range(8):
        plant_pmu(tmp_path, f"uncore_imc_{number}", INTEL_FORMATS, "0,56")
    plant_pmu(tmp_path, "uncore_imc_free_running_0", INTEL_FORMATS, "0,56")
    return tmp_path


@pytest.fixture
def epyc(tmp_path: Path) -> Path:
    """Zen 4: one socket with twelve memory controllers."""
    plant_machine(tmp_path, amd(0x19, 0x11), {0: 0})
    for number in range(12):
        plant_pmu(tmp_path, f"amd_umc_{number}", UMC_FORMATS, "0")
    return tmp_path


# --- a made-up kernel


@dataclass
class Kernel:
    """perf_event_open for processors: ``counts`` by (type, config, cpu), all times running unless ``share`` is less."""

    share: float = 1.0
    refused: Callable[[Attributes, int], int | None] = lambda attributes, cpu: None
    counts: dict[tuple[int, int, int], int] = field(default_factory=dict)
    groups: dict[int, list[tuple[int, int, int]]] = field(default_factory=dict)
    enabled: list[int] = field(default_factory=list)
    reads: int = 0

    def install(self, monkeypatch: pytest.MonkeyPatch) -> Kernel:
        monkeypatch.setattr(perf_event, "open_event", self.open_event)
        monkeypatch.setattr(perf_event, "enable_group", self.enabled.append)
        monkeypatch.setattr(perf_event, "read_group", self.read_group)
        return self

    def open_event(self, attributes: Attributes, tid: int = 0, group_fd: int = -1, cpu: int = -1) -> int:
        assert tid == -1 and cpu >= 0  # a whole processor's
        assert not attributes.exclude_kernel  # the drivers refuse events of sockets that exclude anything
        assert attributes.disabled == (group_fd < 0)  # members follow their leader
        if code := self.refused(attributes, cpu):
            raise OSError(code, os.strerror(code))
        fd = os.open(os.devnull, os.O_RDONLY)
        if group_fd < 0:
            self.groups[fd] = []  # of a descriptor that was closed and is given out again as well
        self.groups[fd if group_fd < 0 else group_fd].append((attributes.type, attributes.config, cpu))
        return fd

    def read_group(self, fd: int, events: int) -> Reading:
        assert fd in self.enabled and events == len(self.groups[fd])
        self.reads += 1
        time_ns = self.reads * 1_000_000
        return time_ns, int(time_ns * self.share), tuple(self.counts.get(key, 1000) for key in self.groups[fd])

    def count(self, config: int, cpu: int, lines: int) -> None:
        """Every controller whose counters are open there counts so many lines more."""
        for keys in self.groups.values():
            for key in keys:
                if key[1:] == (config, cpu):
                    self.counts[key] = self.counts.get(key, 1000) + lines


def run(root: Path, during: Callable[[], None]) -> tuple[dict[str, float], list[str]]:
    """The last value of every series of a run, and its notes."""
    collector = UncoreCollector(root)
    assert collector.availability().ok
    collector.start(PassContext("measure", 1, 1, root, {}))
    during()
    collected = collector.stop()
    series = collected.tables["series"]
    assert series.schema == TABLES["series"]
    assert set(series["unit"]) <= {"B"}
    first = series.group_by("name").first()
    assert set(first["value"]) <= {0.0}
    last = dict(series.group_by("name").last().select("name", "value").iter_rows())
    return last, texts(collected.notes)


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


# --- which counters


def test_every_controller_of_every_socket_is_counted_on_the_processor_that_stands_for_it(xeon: Path) -> None:
    plan = make_plan(xeon, dram_events(known("intel-sapphire-rapids").catalogue))
    assert [(group.pmu, group.cpu) for group in plan.groups] == [
        (f"uncore_imc_{number}", cpu) for number in range(8) for cpu in (0, 56)
    ]
    assert [(part.code.config, part.bytes_per_count, part.series) for part in plan.groups[1].parts] == [
        (0xCF05, 64, (READ, f"{READ}/socket-1")),
        (0xF005, 64, (WRITE, f"{WRITE}/socket-1")),
    ]
    assert plan.series == (
        READ, WRITE, f"{READ}/socket-0", f"{READ}/socket-1", f"{WRITE}/socket-0", f"{WRITE}/socket-1",
    )  # fmt: skip
    assert plan.missing == {}


def test_sub_channels_are_counted_together_and_added_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Granite Rapids."""
    plant_machine(tmp_path, intel(0xAD), {0: 0, 56: 1})
    for number in range(12):
        plant_pmu(tmp_path, f"uncore_imc_{number}", INTEL_FORMATS, "0,56")
    kernel = Kernel().install(monkeypatch)

    def work() -> None:
        kernel.count(0xCF05, cpu=0, lines=1)
        kernel.count(0xCF06, cpu=0, lines=10)
        kernel.count(0xF006, cpu=56, lines=100)

    last, notes = run(tmp_path, work)
    assert len(kernel.enabled) == 24
    assert (last[READ], last[WRITE]) == (64 * 12 * 11, 64 * 12 * 100)
    assert (last[f"{WRITE}/socket-0"], last[f"{WRITE}/socket-1"]) == (0, 64 * 12 * 100)
    assert len(notes) == 1


def test_one_socket_has_no_series_of_its_own(epyc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel().install(monkeypatch)

    def work() -> None:
        kernel.count(0x10A, cpu=0, lines=5)
        kernel.count(0x20A, cpu=0, lines=3)

    last, notes = run(epyc, work)
    assert last == {READ: 64 * 12 * 5, WRITE: 64 * 12 * 3}
    assert len(notes) == 1 and "whole machine" in notes[0]


def test_controllers_numbered_through_both_sockets(tmp_path: Path) -> None:
    """AMD's way: each controller is on one socket only."""
    plant_machine(tmp_path, amd(0x19, 0x11), {0: 0, 96: 1})
    for number in range(24):
        plant_pmu(tmp_path, f"amd_umc_{number}", UMC_FORMATS, "0" if number < 12 else "96")
    plan = make_plan(tmp_path, dram_events(known("amd-zen4").catalogue))
    on = [part.series for group in plan.groups for part in group.parts]
    assert on.count((READ, f"{READ}/socket-0")) == on.count((WRITE, f"{WRITE}/socket-1")) == 12
    assert len(plan.groups) == 24


def test_reads_and_writes_that_the_processor_does_not_tell_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Zen 3: eight channels on the four counters of one PMU, so two groups that take turns."""
    plant_machine(tmp_path, amd(0x19, 0x01), {0: 0})
    plant_pmu(tmp_path, "amd_df", DF_FORMATS, "0")
    kernel = Kernel(share=0.5).install(monkeypatch)
    last, notes = run(tmp_path, lambda: kernel.count(0x3807, cpu=0, lines=100))
    assert [len(keys) for keys in list(kernel.groups.values())[-2:]] == [4, 4]
    assert last == {TOTAL: 64 * 100 * 2}
    assert any("multiplexed: 2 of 2 groups" in note and "50%" in note for note in notes)


def test_an_event_of_the_driver_has_the_drivers_scale(tmp_path: Path) -> None:
    plant_machine(tmp_path, intel(151), {0: 0})
    driver = {"data_read": "event=0xff,umask=0x20", "data_read.scale": "6.103515625e-5", "data_read.unit": "MiB"}
    plant_pmu(tmp_path, "uncore_imc_free_running_0", INTEL_FORMATS, "0", **driver)
    plant_pmu(tmp_path, "uncore_imc_free_running_1", INTEL_FORMATS, "0", data_read="event=0xff,umask=0x20")
    plan = make_plan(tmp_path, {READ: [event("data_read", "data_read", "uncore_imc_free_running")]})
    first, second = (group.parts[0] for group in plan.groups)
    assert (first.code.config, first.bytes_per_count) == (0x20FF, 64)
    assert second.bytes_per_count == 64  # no unit there: the catalogue's weight


def test_without_a_topology_sockets_are_not_told_apart(xeon: Path) -> None:
    (xeon / "sys/devices/system/cpu/cpu56/topology/physical_package_id").unlink()
    assert make_plan(xeon, dram_events(known("intel-sapphire-rapids").catalogue)).series == (READ, WRITE)


@pytest.mark.parametrize("kind", microarchitectures(), ids=lambda kind: str(kind.id))
def test_the_catalogues_weights_are_its_recipes_coefficients(kind: Microarchitecture) -> None:
    """Bytes a count, by which the readings are multiplied, and bytes per nanosecond, which the metric says."""
    for recipe in dram_recipes(kind.catalogue).values():
        names = operands(recipe.of)
        for name in names:
            formula = recipe.of
            for other in names:
                formula = formula.replace(f'"{other}"', "1" if other == name else "0")
            named = kind.catalogue.named()[name]
            assert recipe.scale * eval(formula) == named.weight
            assert (named.scope, recipe.per) == ("socket", '"counted-time"')
            assert named.unit == "B"


# --- from readings to bytes

LINES = Part(Code(20, 5), 64.0, (READ, f"{READ}/socket-0"))
OTHER_LINES = Part(Code(20, 5), 64.0, (READ, f"{READ}/socket-1"))
NEAR, FAR = Group("uncore_imc_0", 0, (LINES,)), Group("uncore_imc_0", 56, (OTHER_LINES,))
ALWAYS = [(1_000, 1_000), (2_000, 2_000), (3_000, 3_000), (4_000, 4_000)]


def log_of(readings: dict[Group, Iterable[Reading | OSError]], clock: Iterable[int] | None = None) -> TrafficLog:
    by_group = {group: iter(readings) for group, readings in readings.items()}

    def read(group: Group) -> Reading:
        reading = next(by_group[group])
        if isinstance(reading, OSError):
            raise reading
        return reading

    ticks = iter(range(0, 10**9, 10) if clock is None else clock)
    return TrafficLog(Plan(tuple(readings)), read, lambda: next(ticks))


def readings(times: list[tuple[int, int]], *values: int) -> list[Reading | OSError]:
    return [(enabled, running, (value,)) for (enabled, running), value in zip(times, values, strict=True)]


def values(log: TrafficLog, name: str = READ) -> list[float]:
    return log.series().filter(name=name)["value"].to_list()


def test_a_sum_has_the_time_in_the_middle_of_its_readings() -> None:
    log = log_of(
        {NEAR: readings(ALWAYS[:2], 7, 9), FAR: readings(ALWAYS[:2], 1000, 1001)}, clock=[1_000, 1_040, 9_000, 9_100]
    )
    assert [log.sample() for _ in range(2)] == [True, True]
    assert log.series().drop("pass").rows() == [
        (1_020, READ, "B", 0.0),
        (1_020, f"{READ}/socket-0", "B", 0.0),
        (1_020, f"{READ}/socket-1", "B", 0.0),
        (9_050, READ, "B", 192.0),
        (9_050, f"{READ}/socket-0", "B", 128.0),
        (9_050, f"{READ}/socket-1", "B", 64.0),
    ]
    assert log.reading_us() == 0.07
    assert log.notes() == []


def test_what_a_counter_missed_is_filled_in_when_it_runs_again() -> None:
    times = [(1_000, 1_000), (2_000, 1_500), (3_000, 1_500), (4_000, 2_000)]
    log = log_of({NEAR: readings(times, 0, 10, 10, 20)})
    for _ in times:
        log.sample()
    assert values(log) == [0, 64 * 10 * 2, 64 * 10 * 2, 64 * (20 + 40)]
    assert texts(log.notes()) == [
        "the kernel multiplexed: 1 of 1 groups of counters ran for 33% of the time;"
        " what they missed is filled in at the same rate"
    ]


def test_a_counter_that_never_ran_makes_no_figure() -> None:
    never = [(1_000, 0), (2_000, 0)]
    log = log_of({NEAR: readings(ALWAYS[:2], 0, 5), FAR: readings(never, 0, 0)})
    log.sample()
    log.sample()
    assert set(log.series()["name"]) == {f"{READ}/socket-0"}
    assert texts(log.notes()) == [
        f"{READ}, {READ}/socket-1 not available: uncore_imc_0 on processor 56 never counted",
    ]


def test_a_counter_that_goes_back_adds_nothing_and_is_told() -> None:
    log = log_of({NEAR: readings(ALWAYS, 100, 90, 95, 96)})
    for _ in ALWAYS:
        log.sample()
    assert values(log) == [0, 0, 64 * 5, 64 * 6]
    assert texts(log.notes()) == ["uncore_imc_0 on processor 0: went backwards 1 times, which adds nothing"]


def test_a_sum_ends_where_one_of_its_counters_does() -> None:
    gone = OSError(errno.ENODEV, "No such device")
    log = log_of(
        {NEAR: [*readings(ALWAYS[:3], 0, 1, 2), gone], FAR: [*readings(ALWAYS[:2], 0, 1), gone, gone]},
    )
    assert [log.sample() for _ in ALWAYS] == [True, True, True, False]
    assert values(log) == [0, 128]
    assert values(log, f"{READ}/socket-0") == [0, 64, 128]
    assert values(log, f"{READ}/socket-1") == [0, 64]
    assert [(note.kind, note.subject) for note in log.notes()] == [
        (NoteKind.INCOMPLETE, f"{READ}, {READ}/socket-1"),
        (NoteKind.INCOMPLETE, f"{READ}/socket-0"),
    ]


@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(1, 10**8), st.integers(1, 10**8)), min_size=1, max_size=30))
def test_traffic_at_a_constant_rate_is_found_whole_whatever_runs(steps: list[tuple[int, int, int]]) -> None:
    """Each step: lines counted per ns of running, ns running, ns waiting while as much flows uncounted."""
    enabled = running = value = 0
    true_lines = 0
    points: list[Reading | OSError] = [(0, 0, (0,))]
    for rate, ran_ns, waited_ns in steps:
        enabled, running, value = enabled + ran_ns + waited_ns, running + ran_ns, value + rate * ran_ns
        true_lines += rate * (ran_ns + waited_ns)
        points.append((enabled, running, (value,)))
    log = log_of({NEAR: points})
    for _ in points:
        log.sample()
    assert values(log)[-1] == pytest.approx(64.0 * true_lines, rel=1e-9)
    assert pl.Series(values(log)).is_sorted()


# --- a run


def test_a_run_reads_all_and_gives_every_descriptor_back(xeon: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel().install(monkeypatch)
    before = open_descriptors()

    def work() -> None:
        assert open_descriptors() == before + 32
        kernel.count(0xCF05, cpu=0, lines=1000)
        kernel.count(0xCF05, cpu=56, lines=500)

    last, _ = run(xeon, work)
    assert open_descriptors() == before
    assert last[READ] == last[f"{READ}/socket-0"] + last[f"{READ}/socket-1"] == 64 * 8 * 1500
    assert last[WRITE] == 0


def test_a_channel_that_cannot_be_opened_makes_the_sum_none(xeon: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = int((xeon / "sys/bus/event_source/devices/uncore_imc_3/type").read_text())
    busy = Kernel(refused=lambda event, cpu: errno.EBUSY if (event.type, cpu) == (kind, 56) else None)
    busy.install(monkeypatch)
    before = open_descriptors()
    last, notes = run(xeon, lambda: busy.count(0xF005, cpu=0, lines=1))
    assert last == {f"{READ}/socket-0": 0, f"{WRITE}/socket-0": 64 * 8}
    assert notes[1:] == [
        f"{READ}, {READ}/socket-1, {WRITE}, {WRITE}/socket-1 not available:"
        " uncore_imc_3 on processor 56 cannot be opened (Device or resource busy)"
    ]
    assert open_descriptors() == before


def test_a_member_that_cannot_be_opened_leaves_nothing_open(xeon: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Kernel(refused=lambda event, cpu: errno.EMFILE if event.config == 0xF005 else None).install(monkeypatch)
    before = open_descriptors()
    found = UncoreCollector(xeon).availability()
    assert open_descriptors() == before
    assert (found.ok, found.remedy) == (False, "raise the limit: ulimit -n 65536")


@pytest.mark.parametrize(("reading_ms", "period_ms"), [(0.05, 10), (0.1, 10), (0.3, 30), (2.5, 250)])
def test_many_controllers_are_read_less_often(
    epyc: Path, monkeypatch: pytest.MonkeyPatch, reading_ms: float, period_ms: float
) -> None:
    """Reading takes at most a hundredth of one processor."""
    Kernel().install(monkeypatch)
    monkeypatch.setattr(TrafficLog, "reading_us", lambda log: 1e3 * reading_ms)
    collector = UncoreCollector(epyc)
    collector.start(PassContext("measure", 1, 1, epyc, {}))
    assert fields(collector.stop().detail)["period_ms"] == period_ms


def test_stop_without_start(tmp_path: Path) -> None:
    assert UncoreCollector(tmp_path).stop().tables == {}


# --- why not


def test_available(epyc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Kernel().install(monkeypatch)
    found = UncoreCollector(epyc).availability()
    assert found.ok and found.notes == ()
    assert fields(found.detail)["series"] == [READ, WRITE]
    assert len(fields(found.detail)["pmus"]) == 12


def test_an_ordinary_user_may_not(epyc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (epyc / "proc/sys/kernel/perf_event_paranoid").write_text("2\n")
    Kernel(refused=lambda event, cpu: errno.EACCES).install(monkeypatch)
    found = UncoreCollector(epyc).availability()
    assert found.reason == "kernel.perf_event_paranoid is 2: ordinary users may not count what all programs do"
    assert found.remedy == "sudo sysctl kernel.perf_event_paranoid=0 (or give hwprof CAP_PERFMON)"


def test_a_container_may_not(epyc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (epyc / ".dockerenv").touch()
    Kernel(refused=lambda event, cpu: errno.EPERM).install(monkeypatch)
    found = UncoreCollector(epyc).availability()
    assert found.remedy is not None and "--cap-add PERFMON" in found.remedy


def test_a_virtual_machine_shows_none(tmp_path: Path) -> None:
    plant_machine(tmp_path, amd(0x19, 0x11), {0: 0})
    (tmp_path / "proc/cpuinfo").write_text("processor\t: 0\n" + amd(0x19, 0x11) + "\nflags\t\t: fpu lm hypervisor\n")
    found = UncoreCollector(tmp_path).availability()
    assert found.reason == "a virtual machine does not show the memory controllers' counters"
    assert found.remedy == "measure DRAM traffic on the machine itself"


@pytest.mark.parametrize(("family", "model"), [(0x19, 0x11), (0x19, 0x01)])
def test_no_driver(tmp_path: Path, family: int, model: int) -> None:
    plant_machine(tmp_path, amd(family, model), {0: 0})
    found = UncoreCollector(tmp_path).availability()
    assert found.reason is not None and found.reason.startswith("the kernel shows no PMU called amd_")
    assert found.remedy is not None and "sudo modprobe amd_uncore" in found.remedy


def test_a_processor_that_the_catalogue_does_not_know(tmp_path: Path) -> None:
    plant_machine(tmp_path, intel(1), {0: 0})
    found = UncoreCollector(tmp_path).availability()
    assert found.reason == "the event catalogue does not know this processor (Xeon)"


def test_a_processor_without_such_events(tmp_path: Path) -> None:
    plant_machine(tmp_path, "CPU implementer\t: 0x41\nCPU part\t: 0xd0c", {0: 0}, pmu="armv8_pmuv3_0")
    found = UncoreCollector(tmp_path).availability()
    assert found.reason == "the event catalogue has no memory controllers' events of Arm Neoverse N1"


def test_a_driver_that_lacks_a_term_of_the_event(tmp_path: Path) -> None:
    plant_machine(tmp_path, amd(0x19, 0x11), {0: 0})
    plant_pmu(tmp_path, "amd_umc_0", {"event": "config:0-7"}, "0")
    found = UncoreCollector(tmp_path).availability()
    assert found.reason == "the PMU amd_umc_0 has no term 'rdwrmask'"


def test_a_sum_without_one_of_its_terms_is_none(epyc: Path) -> None:
    reads, elsewhere, writes = (
        event("reads", "event=0x0a,rdwrmask=0x1", "amd_umc"),
        event("reads of another unit", "event=1", "amd_df"),
        event("writes", "event=0x0a,rdwrmask=0x2", "amd_umc"),
    )
    plan = make_plan(epyc, {READ: [reads, elsewhere], WRITE: [writes]})
    assert plan.series == (WRITE,)
    assert {name: why.reason for name, why in plan.missing.items()} == {READ: "the kernel shows no PMU called amd_df"}
