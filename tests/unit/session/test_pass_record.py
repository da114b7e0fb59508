"""A pass's record says how the pass ended, whatever cannot be written."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from hwprof.run.directory import RunDirectory
from hwprof.session.interruption import EndedBySignal
from hwprof.session.pass_record import PassError, recorded, save_if_possible
from hwprof.session.plan import PassPlan
from tests.support.synthetic_run import build

PLAN = PassPlan(name="again", iterations=1, warmup=0, in_process=(), external=())


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return build(tmp_path)


def _kept(run: RunDirectory) -> tuple[str, str | None]:
    record = RunDirectory.open(run.path).manifest.passes[-1]
    assert record.name == PLAN.name
    return record.status, record.reason


@pytest.mark.parametrize(
    ("how", "text"), [(errno.ENOSPC, "no space left on the device"), (errno.EROFS, "Read-only file system")]
)
def test_a_pass_whose_tables_are_written_stays_completed(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch, how: int, text: str
) -> None:
    def fail(self: RunDirectory) -> None:
        raise OSError(how, "Read-only file system" if how == errno.EROFS else "No space left on device")

    with pytest.raises(PassError, match=text) as caught, recorded(run, PLAN):
        assert _kept(run) == ("running", None)
        monkeypatch.setattr(RunDirectory, "save_manifest", fail)
    assert caught.value.foreseen
    assert _kept(run) == ("running", None)
    monkeypatch.undo()
    save_if_possible(run)
    assert _kept(run) == ("completed", None)


def test_an_interrupt_at_the_last_moment_does_not_cost_the_pass(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    save = RunDirectory.save_manifest

    def interrupted(self: RunDirectory) -> None:
        monkeypatch.setattr(RunDirectory, "save_manifest", save)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), recorded(run, PLAN):
        monkeypatch.setattr(RunDirectory, "save_manifest", interrupted)
    assert _kept(run) == ("completed", None)


@pytest.mark.parametrize(
    ("interrupt", "reason"), [(KeyboardInterrupt(), "interrupted by the user"), (EndedBySignal(15), "ended by SIGTERM")]
)
def test_what_interrupted_it_is_recorded(run: RunDirectory, interrupt: KeyboardInterrupt, reason: str) -> None:
    with pytest.raises(KeyboardInterrupt), recorded(run, PLAN):
        raise interrupt
    assert _kept(run) == ("interrupted", reason)


def test_a_defect_leaves_no_pass_running(run: RunDirectory) -> None:
    with pytest.raises(ZeroDivisionError), recorded(run, PLAN):
        _ = 1 / 0
    assert _kept(run) == ("failed", "ZeroDivisionError: division by zero")
