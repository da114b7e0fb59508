"""Which remedies are tried how often, and what becomes of them; without processes."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hwprof.errors import HwprofError, UsageError
from hwprof.hardware import machine
from hwprof.remedies.catalogue import Ready, ready
from hwprof.run.trials import INTERRUPTED, TIME_OVER, Change, Trial, Trials
from hwprof.session.trials import campaign, generation
from hwprof.session.trials.contestant_process import ContestantProcess
from hwprof.session.trials.generation import (
    LEAST_COMPILE_S,
    LEAST_START_S,
    LEAST_TURN_S,
    WITHOUT,
    Contestant,
    Found,
    Name,
    Place,
    fit,
    limits,
    no_room,
)
from hwprof.session.trials.run_trials import LOCK_FILE, PREFIX, _check_folder, in_use, none_worked, remove_leftovers
from hwprof.workload.contest import Entry, Measured
from hwprof.workload.spec import WorkloadSpec

TIMES = {"active_wait": 80.0, "bind_threads": 130.0, "flush_denormals": 90.0, "channels_last": 70.0}


class Quiet:
    """Progress that nobody watches."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def phase(self, pass_name: str, text: str, total: int | None) -> None:
        """Kept."""
        self.texts.append(text)

    def reached(self, done: int, total: int) -> None: ...

    def step(self) -> None:
        """Nothing."""

    def tell(self, pass_name: str, text: str) -> None:
        """Nothing."""


class Machine:
    """Whose time a remedy changes by a factor of its own; ``wobble`` by process, as a share."""

    def __init__(self, wobble: float = 0.0, room: int = 99) -> None:
        self.started: list[list[Name]] = []
        self.wobble, self.room = wobble, room
        self.now_s = 0.0
        self.fails: Name | None = None
        self.ends_in: int | None = None
        self.ends_by: BaseException = KeyboardInterrupt()
        self.fails_in = 0

    def __call__(self, place: Place, contestants: Sequence[Contestant], number: int) -> Found:
        names = [one.name for one in contestants]
        if self.ends_in is not None and len(self.started) >= self.ends_in:
            raise self.ends_by
        place.report(f"round {number + 1}", None)
        self.now_s += 10.0
        found = Found(waiting=names[1 + self.room :])
        names = names[: 1 + self.room]
        self.started.append(names)
        for name in names:
            if name == self.fails and number >= self.fails_in:
                found.failed[name] = HwprofError("it died")
                continue
            factor = 1.0
            for remedy in name:
                factor *= TIMES[remedy] / 100
            ns = round(1e8 * factor * (1 + self.wobble * (len(self.started) % 3 - 1) * (name != WITHOUT)))
            found.turns[name] = [Measured([ns, ns], [2 * ns, 2 * ns], 1000)] * 2
        return found


def tried(machine: Machine, folder: Path, monkeypatch: pytest.MonkeyPatch, *names: str, limit_s: float = 1e9) -> Trials:
    monkeypatch.setattr(campaign, "carry_out", machine)
    spec = WorkloadSpec(model="a:b")
    return campaign.Campaign(spec, folder, Quiet(), limit_s, lambda: machine.now_s).carry_out(names)


def by_name(found: Trials) -> dict[str, Any]:
    return {"+".join(one.remedies): one for one in found.rows}


def test_those_that_help_are_tried_together_and_the_one_without_is_in_every_generation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine()
    found = tried(machine, tmp_path, monkeypatch, "active_wait", "bind_threads", "channels_last")
    rows = by_name(found)
    assert list(rows) == ["channels_last+active_wait", "channels_last", "active_wait", "bind_threads"]
    values = [rows[name].inference.value for name in rows]
    assert values == pytest.approx([0.7 * 0.8 - 1, -0.3, -0.2, 0.3])
    assert all(names[0] == WITHOUT for names in machine.started)
    assert [len(names) for names in machine.started] == [4, 4, 4, 2, 2, 2]
    assert found.best is found.rows[0] and found.inference_ns == 1e8 and found.ended is None
    assert rows["bind_threads"].iteration.value == pytest.approx(0.3) and rows["bind_threads"].calls == 12


def test_more_generations_where_processes_vary_until_the_time_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(wobble=0.2)
    found = tried(machine, tmp_path, monkeypatch, "flush_denormals", limit_s=100.0)
    assert found.ended == TIME_OVER
    assert len(machine.started) == 6, "60 of 100 s are for remedies one by one"
    assert by_name(found)["flush_denormals"].processes == 6


def test_one_that_fails_is_told_and_not_started_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine()
    machine.fails = ("bind_threads",)
    found = tried(machine, tmp_path, monkeypatch, "active_wait", "bind_threads")
    assert by_name(found)["bind_threads"].reason == "it died" and by_name(found)["bind_threads"].inference is None
    assert [("bind_threads",) in names for names in machine.started] == [True, False, False]


def test_those_that_the_memory_has_no_room_for_take_part_in_another_heat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(room=1)
    found = tried(machine, tmp_path, monkeypatch, "bind_threads", "active_wait")
    assert machine.started[:4] == [[(), ("bind_threads",)], [(), ("active_wait",)]] * 2
    assert {name: one.processes for name, one in by_name(found).items()} == {"bind_threads": 3, "active_wait": 3}


def test_ctrl_c_keeps_what_is_known_and_raises_where_nothing_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine()
    machine.ends_in = 2
    found = tried(machine, tmp_path, monkeypatch, "active_wait")
    assert found.ended == INTERRUPTED and found.rows[0].processes == 2
    machine = Machine()
    machine.ends_in = 1
    with pytest.raises(KeyboardInterrupt):
        tried(machine, tmp_path, monkeypatch, "active_wait")


@pytest.mark.parametrize("ends_in", [2, 3], ids=["one by one", "together"])
@pytest.mark.parametrize(
    ("ends_by", "why"),
    [
        (HwprofError("it is flaky"), "it is flaky"),
        (OSError(errno.ENOSPC, "No space left on device"), "temporary files"),
    ],
    ids=["failure", "full disk"],
)
def test_a_failure_of_the_workload_itself_keeps_what_is_known(
    ends_by: Exception, why: str, ends_in: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine()
    machine.ends_in, machine.ends_by = ends_in, ends_by
    monkeypatch.setattr(campaign, "carry_out", machine)
    here = campaign.Campaign(WorkloadSpec(model="a:b"), tmp_path, Quiet(), 1e9, lambda: machine.now_s)
    found = here.carry_out(["active_wait", "channels_last"])
    assert found.ended is not None and why in found.ended and why in str(here.failure)
    assert {name: one.processes for name, one in by_name(found).items() if "+" not in name} == dict.fromkeys(
        ("active_wait", "channels_last"), ends_in
    )
    machine = Machine()
    machine.ends_in, machine.ends_by = 1, ends_by
    with pytest.raises(type(ends_by)):
        tried(machine, tmp_path, monkeypatch, "active_wait")


def test_one_that_fails_now_and_then_is_told_and_not_recommended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine()
    machine.fails, machine.fails_in = ("channels_last",), 2
    found = tried(machine, tmp_path, monkeypatch, "active_wait", "channels_last")
    one = by_name(found)["channels_last"]
    assert one.inference.helps and one.reason == "it died" and not one.works
    assert list(by_name(found)) == ["channels_last", "active_wait"], "it is in no combination"
    assert found.best is not None and found.best.remedies == ["active_wait"] and found.best_inexact is None


def test_where_all_fail_the_first_ones_reason_is_told() -> None:
    failed = [Trial(remedies=[name], titles=[name], reason=f"{name} died") for name in ("a", "b")]
    worked = Trial(remedies=["c"], titles=["c"], inference=Change(value=0.0, low=0.0, high=0.0))
    now = Trials(created="", seconds=1.0, inference_ns=None, rows=failed)
    assert str(none_worked(now)) == "no remedy could be tried (1 more failed, too): a: a died"
    assert none_worked(msgspec.structs.replace(now, rows=[*failed, worked])) is None


def test_a_full_disk_is_told_with_its_folder(tmp_path: Path) -> None:
    found = no_room(tmp_path / "hwprof-try-1-x", HwprofError("No space left on device"))
    assert str(tmp_path) in found.message and found.remedy is not None and "TMPDIR" in found.remedy


@pytest.mark.parametrize("full_in", ["", "keep_memory"], ids=["without", "with a remedy"])
def test_a_full_disk_is_no_remedys_failure(full_in: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[str] = []

    class Full:
        pid = os.getpid()

        def __init__(self, entry: Entry, folder: Path, name: str, *_: object) -> None:
            self.name = name
            if name == (full_in or "without"):
                raise OSError(errno.ENOSPC, "No space left on device")

        def wait_until_ready(self, limit_s: float) -> None:
            """At once."""

        def kill(self) -> None:
            ended.append(self.name)

    monkeypatch.setattr(generation, "ContestantProcess", Full)
    place = Place(WorkloadSpec(model="a:b"), tmp_path, 0, lambda *_: None, lambda: None, lambda: 1.0)
    with pytest.raises(HwprofError, match=f"No space left on device .temporary files are in {tmp_path.parent}"):
        generation.carry_out(place, [Contestant(), contestant("active_wait"), contestant("keep_memory")], 0)
    assert ended == (["without", "active_wait"] if full_in else []), "no process is left"


def test_how_long_it_takes_at_least_is_told_as_soon_as_it_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine, quiet = Machine(), Quiet()
    monkeypatch.setattr(campaign, "carry_out", machine)
    campaign.Campaign(WorkloadSpec(model="a:b"), tmp_path, quiet, 3.0, lambda: machine.now_s).carry_out(["active_wait"])
    told = [f"round {number}, at least {least} s more: 3 processes of each" for number, least in ((2, 20), (3, 10))]
    assert quiet.texts == ["round 1", *told]
    machine, quiet = Machine(), Quiet()
    monkeypatch.setattr(campaign, "carry_out", machine)
    campaign.Campaign(WorkloadSpec(model="a:b"), tmp_path, quiet, 1e3, lambda: machine.now_s).carry_out(["active_wait"])
    assert quiet.texts == ["round 1", "round 2, 990 s left", "round 3, 980 s left"]


def test_how_many_fit_into_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "available_bytes", lambda: 10_000)
    monkeypatch.setattr(machine, "process_bytes", lambda pid, name: {1: 1000, 2: 9000, 3: 0}[pid])
    assert [fit(pid) for pid in (1, 2, 3)] == [6, 1, 1]


def test_a_folder_that_is_gone_is_told_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone, there = tmp_path / "gone", tmp_path / "there"
    for folder in (gone, there):
        folder.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(HwprofError, match=f"the current folder is not there any more. Try: cd {there}"):
        _check_folder(str(there))
    with pytest.raises(HwprofError, match=r"not there any more. Try: cd to one that is"):
        _check_folder(str(gone))
    monkeypatch.chdir(there)
    _check_folder(str(there))
    _check_folder("")
    with pytest.raises(UsageError, match=f"not there any more: {gone}. Try: hwprof collect --try"):
        _check_folder(str(gone))


def contestant(name: str) -> Contestant:
    found = ready(name)
    assert isinstance(found, Ready)
    return Contestant((found,))


def test_how_long_one_that_hangs_may_take() -> None:
    quick, compiled = [contestant("keep_memory")], [contestant("keep_memory"), contestant("compile")]
    assert limits(2.0, quick, 2, -5.0) == (LEAST_START_S, LEAST_TURN_S), "with --time 3 not five minutes"
    assert limits(2.0, compiled, 2, -5.0).start_s == LEAST_COMPILE_S > 120
    assert limits(50.0, quick, 2, -5.0) == (250.0, 250.0), "as slow as the one without is, and more"
    assert limits(50.0, compiled * 2, 2, -5.0).start_s == 500.0, "four on two cores"
    assert limits(2.0, quick, 2, 400.0) == (200.0, 200.0), "where there is time, it may be used"


def test_one_that_hangs_is_waited_for_since_it_was_started() -> None:
    process = object.__new__(ContestantProcess)
    process._hears, says = os.pipe()
    process._rest, process._began_s = b"", time.monotonic() - 60
    process._has_ended = lambda: False  # type: ignore[method-assign]
    try:
        with pytest.raises(HwprofError, match="was not ready within 40 s"):
            process.wait_until_ready(40)
    finally:
        os.close(says)
        os.close(process._hears)


def test_what_one_that_was_killed_left_is_taken_away(tmp_path: Path) -> None:
    """Whether it lives is no question of its number: in another container nobody has that."""
    dead, alive, users = (tmp_path / f"{PREFIX}{name}" for name in (f"{os.getpid()}-a", f"{2**22 + 1}-b", "2024-c"))
    victim = tmp_path / "victim"
    for folder in (dead, alive, users, victim):
        folder.mkdir()
        (folder / "without.npz").touch()
    for folder in (dead, victim):
        with in_use(folder):
            pass
        assert (folder / LOCK_FILE).exists()
    (tmp_path / f"{PREFIX}link").symlink_to("victim")
    with in_use(alive):
        remove_leftovers(tmp_path)
        assert (alive / "without.npz").exists()
    assert not dead.exists() and (users / "without.npz").exists() and (victim / "without.npz").exists()
    remove_leftovers(tmp_path)
    assert not alive.exists()
