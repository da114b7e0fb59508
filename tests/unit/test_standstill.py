"""Whether a process that is waited for has done anything lately, by what /proc says of its threads."""

from __future__ import annotations

from pathlib import Path

import pytest

from hwprof import processes

LOOKS = 3


def thread(folder: Path, tid: int, *, state: str = "S", ticks: int = 0, name: str = "python") -> None:
    """As the kernel writes it (man 5 proc_pid_stat): 11 fields from the state to the ticks."""
    place = folder / "7" / "task" / str(tid)
    place.mkdir(parents=True, exist_ok=True)
    (place / "comm").write_text(f"{name}\n")
    (place / "stat").write_text(f"{tid} ({name}) {state} {'0 ' * 10}{ticks} 0 {'0 ' * 10}\n")


@pytest.fixture
def waited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> processes.Standstill:
    monkeypatch.setattr(processes, "Path", lambda _: tmp_path)
    thread(tmp_path, 7, ticks=5)
    thread(tmp_path, 8)
    return processes.Standstill(7, LOOKS)


def test_one_that_does_nothing_is_at_a_standstill_after_some_looks(waited: processes.Standstill) -> None:
    assert [waited.look() for _ in range(LOOKS + 2)] == [False] * LOOKS + [True, True]


@pytest.mark.parametrize("state", ["R", "D"])
def test_one_whose_thread_runs_or_waits_for_a_disk_is_not(
    waited: processes.Standstill, state: str, tmp_path: Path
) -> None:
    thread(tmp_path, 8, state=state)
    assert not any(waited.look() for _ in range(5 * LOOKS))


def test_one_that_had_processor_time_begins_anew(waited: processes.Standstill, tmp_path: Path) -> None:
    assert not any(waited.look() for _ in range(LOOKS))
    thread(tmp_path, 8, ticks=1)
    assert [waited.look() for _ in range(LOOKS + 1)] == [False] * LOOKS + [True]


def test_what_polars_allocator_tries_again_and_again_is_no_progress(
    waited: processes.Standstill, tmp_path: Path
) -> None:
    looks = []
    for ticks in range(LOOKS + 1):
        thread(tmp_path, 9, state="R", ticks=ticks, name=processes.ALLOCATORS)
        looks.append(waited.look())
    assert looks[-1]


def test_one_that_is_gone_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "Path", lambda _: tmp_path)
    gone = processes.Standstill(7, 1)
    assert not any(gone.look() for _ in range(3))
