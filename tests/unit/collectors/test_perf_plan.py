"""Which events are counted, in which sets, against a made-up kernel that refuses, starves and ignores events."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from collectors.perf.notes import plan_detail, plan_notes
from collectors.perf.plan import Plan, make_plan
from collectors.shared.event_opening import NotAllowedError
from hwprof.hardware.catalogue import Event
from hwprof.hardware.countable import Countable
from hwprof.hardware.packing import Budget
from hwprof.hardware.pmu import Code
from hwprof.run.manifest import CoreKind, MetricDefinition
from hwprof.run.notes import NoteKind
from hwprof.unavailable import Unavailable
from tests.support.fake_perf import HARDWARE, SOFTWARE, Kernel, countable, machine, made, selection
from tests.support.reported import fields, texts


def sets(plan: Plan) -> list[list[str]]:
    """The hardware events of each set."""
    return [[event.name for event in group.events if event.kind == "hardware"] for group in plan.sets]


def test_a_whole_pmu_gives_two_sets_with_the_software_events_in_both(monkeypatch: pytest.MonkeyPatch) -> None:
    """The catalogue does not know this processor, so it is trusted with four counters."""
    found = made(monkeypatch, Kernel())
    assert [list(group.names) for group in found.sets] == [
        ["cycles", "instructions", "cache-references", "cache-misses", *SOFTWARE],
        ["cycles", "instructions", "branches", "branch-misses", *SOFTWARE],
    ]
    assert (found.dropped, found.notes, found.opening.kernel) == ({}, [], True)


def test_refused_ignored_and_starved_events_are_dropped_with_their_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = Kernel(
        refused={"cache-misses": errno.ENOENT, "branches": errno.EIO, "branch-misses": errno.EACCES},
        dead={"instructions"},
    )
    found = made(monkeypatch, fake, selection(bundles=[(name,) for name in HARDWARE]))
    assert {name: why.reason for name, why in found.dropped.items()} == {
        "cache-misses": "not offered by this machine's PMU (ENOENT)",
        "branches": "the kernel refuses it (Input/output error)",
        "branch-misses": "the kernel allows it to administrators only (EACCES)",
        "instructions": "opens but stays 0 where it must count: this processor, or its hypervisor, does not"
        " implement it",
    }
    assert found.dropped["branch-misses"].remedy == "sudo sysctl kernel.perf_event_paranoid=1"
    assert sets(found) == [["cycles", "cache-references"]]


def test_an_event_beyond_all_limits_is_no_event_of_this_pmu(monkeypatch: pytest.MonkeyPatch) -> None:
    found = made(monkeypatch, Kernel(refused={"cache-misses": errno.EINVAL}))
    assert found.dropped["cache-misses"].reason == "not offered by this machine's PMU (EINVAL)"


def test_what_only_a_failed_metric_wanted_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Misses without references tell nothing, so references cost no counter either, and share the reason."""
    found = made(monkeypatch, Kernel(refused={"cache-misses": errno.ENOENT}))
    assert found.dropped["cache-references"] is found.dropped["cache-misses"]
    assert sets(found) == [["cycles", "instructions", "branches", "branch-misses"]]
    (note,) = [note for note in plan_notes(found) if note.kind is NoteKind.NOT_AVAILABLE]
    assert note.subject == "cache-misses, cache-references"
    assert (note.text, note.remedy) == ("not offered by this machine's PMU (ENOENT)", "hwprof events shows what is")


def test_an_event_that_may_well_be_zero_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    assert made(monkeypatch, Kernel(dead={"cache-misses", "page-faults"})).dropped == {}


def holding_root(tmp_path: Path, *, watchdog: str = "0", other: str | None = None, hypervisor: bool = False) -> Path:
    """A /proc in which others have hardware counters."""
    (tmp_path / "proc/sys/kernel").mkdir(parents=True)
    (tmp_path / "proc/sys/kernel/nmi_watchdog").write_text(f"{watchdog}\n")
    flags = "fpu lm hypervisor" if hypervisor else "fpu lm"
    (tmp_path / "proc/cpuinfo").write_text(f"processor : 0\nflags : {flags}\n")
    if other is not None:
        (tmp_path / "proc/7/fd").mkdir(parents=True)
        (tmp_path / "proc/7/comm").write_text(f"{other}\n")
        (tmp_path / "proc/7/fd/3").symlink_to("anon_inode:[perf_event]")
    return tmp_path


@pytest.mark.parametrize(
    ("watchdog", "other", "hypervisor", "reason"),
    [
        ("1", None, False, "the NMI watchdog may hold one. Try: sudo sysctl kernel.nmi_watchdog=0"),
        ("0", "vtune", False, "vtune (pid 7) may hold them. Try: stop other profilers"),
        (
            "1",
            "perf",
            True,
            "perf (pid 7) may hold them, the NMI watchdog may hold one"
            ". Try: stop other profilers; sudo sysctl kernel.nmi_watchdog=0",
        ),
        ("0", None, True, "another program holds them, or the hypervisor shows fewer than the processor has"),
        ("0", None, False, "another program holds them. Try: stop other profilers: sudo lsof"),
    ],
)
def test_scarce_counters_make_smaller_sets_and_one_note(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, watchdog: str, other: str | None, hypervisor: bool, reason: str
) -> None:
    root = holding_root(tmp_path, watchdog=watchdog, other=other, hypervisor=hypervisor)
    found = made(monkeypatch, Kernel(free=3), root=root)
    assert sets(found) == [
        ["cycles", "instructions"],
        ["cycles", "cache-references", "cache-misses"],
        ["cycles", "branches", "branch-misses"],
    ]
    assert found.budgets == {"cpu": Budget(3)}
    (note,) = texts(found.notes)
    assert note.startswith("3 of 4 general counters are free, so events are counted in smaller sets: ")
    assert reason in note


def test_beside_a_sampler_no_set_takes_turns_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sampler has one general counter and those that cycles and instructions usually have."""
    fake = Kernel(counters=8, undisturbed=3, held={"cycles", "instructions"})
    own = [countable(name, fixed=True) for name in HARDWARE[:2]]
    chosen = selection([*own, *HARDWARE[2:]])
    fake.install(monkeypatch, chosen)
    found = make_plan(chosen, machine(), held_by="sampler", root=Path("/nonexistent"))
    assert sets(found) == [
        ["cycles", "instructions"],
        ["cycles", "cache-references", "cache-misses"],
        ["cycles", "branches", "branch-misses"],
    ]
    assert found.budgets == {"cpu": Budget(3, frozenset({"cycles", "instructions"}))}
    assert texts(found.notes) == [
        "3 of 4 general counters are free (the own counters of cycles, instructions not), so events are counted in"
        " smaller sets: the sampler has the others in this pass. Try: --no-sampler"
    ]


def test_where_every_counter_is_shared_in_turns_so_be_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every value is kept with how long it was counted for."""
    found = made(monkeypatch, Kernel(undisturbed=0))
    assert found.dropped == {}
    assert len(found.sets) == 2


def test_events_that_exclude_each_other_are_parted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counters are free, but these two need the same one, which nobody knew."""
    conflict = frozenset({"branches", "branch-misses"})
    found = made(monkeypatch, Kernel(conflicts=[conflict]))
    assert {name for names in sets(found) for name in names} == set(HARDWARE)
    assert not any(conflict <= set(names) for names in sets(found))
    (note,) = found.notes
    assert (note.kind, note.subject) == (NoteKind.METHOD, "cycles, instructions, branches, branch-misses")


def test_a_group_whose_leader_cannot_be_parted_from_it_is_dropped_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    slots = Countable("slots", Event(name="slots", meaning="", counters=0), Code(4, 0x400), "", "cpu", fixed=True)
    led = Event(name="topdown-retiring", meaning="", counters=0, leader="slots")
    retiring = Countable("topdown-retiring", led, Code(4, 0x8000), "", "cpu", fixed=True)
    chosen = selection(["cycles", slots, retiring], [("slots", "topdown-retiring"), ("cycles",)])
    found = made(monkeypatch, Kernel(conflicts=[frozenset({"slots", "topdown-retiring"})]), chosen)
    assert sets(found) == [["cycles"]]
    assert set(found.dropped) == {"slots", "topdown-retiring"}
    assert "never gets a hardware counter together with others" in found.dropped["slots"].reason


def test_a_metric_too_large_for_the_counters_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    formula = " + ".join(f'"{name}"' for name in HARDWARE)
    metrics = [
        MetricDefinition(name="everything", title="e", unit="1", digits=0, formula=formula, meaning="m"),
        MetricDefinition(name="cpi", title="c", unit="1", digits=0, formula='"cycles" / "instructions"', meaning="m"),
        MetricDefinition(name="dram", title="d", unit="1", digits=0, formula='"uncore" / "time"', meaning="m"),
    ]
    found = made(monkeypatch, Kernel(), selection(bundles=[HARDWARE], metrics=metrics))
    assert sorted({name for names in sets(found) for name in names}) == sorted(HARDWARE)
    assert texts(found.notes) == [
        "everything: no set has counters for all the events, so they come from different iterations"
    ]


def test_an_event_of_more_counters_than_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = Countable("wide", Event(name="wide", meaning="", counters=5), Code(4, 3), "", "cpu")
    found = made(monkeypatch, Kernel(), selection([wide, "cycles"], [("wide",), ("cycles",)]))
    assert "takes 5 of the PMU's counters at once" in found.dropped["wide"].reason
    assert sets(found) == [["cycles"]]


def test_without_hardware_there_is_one_set_of_software_events(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = Kernel(counters=0, refused=dict.fromkeys(HARDWARE, errno.ENOENT))
    found = made(monkeypatch, fake)
    assert [list(group.names) for group in found.sets] == [list(SOFTWARE)]
    detail = fields(plan_detail(found))
    assert (detail["hardware"], detail["software"]) == ([], list(SOFTWARE))
    assert set(detail["unavailable"]) == set(HARDWARE)
    (note,) = [note for note in plan_notes(found) if note.kind is NoteKind.NOT_AVAILABLE]  # one reason for all six
    assert "no driver for this processor's PMU" in note.text


def test_what_the_selection_could_not_find_is_the_missing_pmus_fault_too(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = Kernel(counters=0, refused=dict.fromkeys(HARDWARE, errno.ENOENT), cores=[CoreKind(None, None, (0,))])
    chosen = selection()
    chosen.dropped["l2_misses"] = Unavailable("the kernel shows no PMU called cpu", "hwprof doctor")
    chosen.dropped["dram"] = Unavailable("the kernel shows no PMU called uncore_imc", "sudo modprobe intel_uncore")
    found = made(monkeypatch, fake, chosen)
    assert found.dropped["l2_misses"] == found.dropped["cycles"]
    assert found.dropped["dram"].remedy == "sudo modprobe intel_uncore"


def test_a_pmu_that_never_has_a_free_counter(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = made(monkeypatch, Kernel(free=0), root=holding_root(tmp_path, watchdog="1"))
    assert [list(group.names) for group in found.sets] == [list(SOFTWARE)]
    assert set(found.dropped) == set(HARDWARE)
    for why in found.dropped.values():
        assert why.reason == "opens but never gets a hardware counter: the NMI watchdog may hold one"
        assert why.remedy == "sudo sysctl kernel.nmi_watchdog=0"


def test_user_only_drops_what_happens_in_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = Kernel(kernel_allowed=False)
    found = made(monkeypatch, fake, selection([*HARDWARE, countable("r1", exclude_user=True)]))
    assert set(found.dropped) == {"context-switches", "cpu-migrations", "r1"}
    assert "what happens in the kernel" in found.dropped["r1"].reason
    assert found.dropped["context-switches"].remedy == "sudo sysctl kernel.perf_event_paranoid=1"
    assert not found.opening.kernel
    assert all(attributes.exclude_kernel for attributes in fake.opened)
    assert any("user code only" in note and "sudo sysctl" in note for note in texts(plan_notes(found)))


@pytest.mark.parametrize(
    ("asked", "allowed", "counted"), [(None, True, True), (False, True, False), (True, False, False)]
)
def test_counting_the_kernel(monkeypatch: pytest.MonkeyPatch, asked: bool | None, allowed: bool, counted: bool) -> None:
    opening = made(monkeypatch, Kernel(kernel_allowed=allowed), kernel=asked).opening
    assert opening.kernel is counted
    assert opening.attributes(countable("cycles"), leader=True).exclude_kernel is not counted
    assert opening.attributes(countable("task-clock"), leader=False).exclude_kernel is not allowed


def test_modifiers_say_more_than_the_option(monkeypatch: pytest.MonkeyPatch) -> None:
    opening = made(monkeypatch, Kernel(), kernel=None).opening
    user = opening.attributes(countable("cycles", exclude_kernel=True), leader=True)
    assert (user.exclude_user, user.exclude_kernel) == (False, True)
    opening = made(monkeypatch, Kernel(), kernel=False).opening
    kernel = opening.attributes(countable("cycles", exclude_user=True), leader=True)
    assert (kernel.exclude_user, kernel.exclude_kernel) == (True, False)


def test_every_word_of_the_code_reaches_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    opening = made(monkeypatch, Kernel()).opening
    event = Countable("x", Event(name="x", meaning=""), Code(4, 1, 2, 3), "", "cpu")
    asked = opening.attributes(event, leader=True)
    assert (asked.type, asked.config, asked.config1, asked.config2) == (4, 1, 2, 3)


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize("free", [0, 1, 3])
def test_no_descriptor_is_left_open(monkeypatch: pytest.MonkeyPatch, free: int) -> None:
    before = open_descriptors()
    made(monkeypatch, Kernel(refused={"branches": errno.ENOENT}, free=free))
    assert open_descriptors() == before


@pytest.mark.parametrize("code", [errno.EPERM, errno.ENOSYS])
def test_nothing_allowed_is_its_own_error(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    with pytest.raises(NotAllowedError) as caught:
        made(monkeypatch, Kernel(everything_fails=code))
    assert caught.value.errno == code
    assert os.strerror(code) in str(caught.value)
