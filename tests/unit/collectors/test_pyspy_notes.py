"""What py-spy's failed looks, and frames that are left out, come to."""

from __future__ import annotations

import pytest

from collectors.pyspy import notes
from collectors.pyspy.notes import MOST_FAILED, WORTH_SAYING
from collectors.pyspy.stacks import Stacks
from collectors.pyspy.watcher import Looks, behind_s
from hwprof.collector.contract import NoteKind
from hwprof.errors import HwprofError


def test_a_look_sees_every_thread_and_fails_for_all_of_them() -> None:
    assert notes.failed_share(Looks(stacks=1200, failed=100), threads=3) == 0.2
    assert notes.failed_share(Looks(stacks=0, failed=7), threads=0) == 1.0
    assert notes.failed_share(Looks(stacks=0, failed=0), threads=0) == 0.0


def test_few_that_failed_are_told_and_many_are_refused() -> None:
    assert notes.of_looks(Looks(1000, 0), 0.0) == notes.of_looks(Looks(1000, 9), WORTH_SAYING - 0.001) == []
    (note,) = notes.of_looks(Looks(1000, 10), MOST_FAILED)
    assert note.kind is NoteKind.SUSPECT and note.remedy
    with pytest.raises(HwprofError) as refused:
        notes.of_looks(Looks(1000, 60), MOST_FAILED + 0.001)
    assert refused.value.remedy


def test_failed_looks_that_matter_less_than_chance_are_not_told() -> None:
    """The standard error of a half is 5% of 100 looks, 7.1% of 50."""
    assert notes.of_looks(Looks(1000, 4), 0.04) == notes.of_looks(Looks(500, 3), 0.06) == []
    assert len(notes.of_looks(Looks(10_000, 40), 0.04)) == 1


def test_it_is_told_that_nobody_says_how_many_failed() -> None:
    assert [note.kind for note in notes.of_looks(None, 0.0)] == [NoteKind.SUSPECT]


def test_a_pause_of_its_looks_is_told_by_the_latest_of_them() -> None:
    behind = b"py-spy> %ss behind in sampling, results may be inaccurate. Try reducing the sampling rate\n"
    assert behind_s(b"Samples: 594 Errors: 0") == 0.0
    late_s = behind_s(b"".join(behind % late for late in (b"1.00", b"61.08", b"1.5")))
    assert late_s == 61.08
    (note,) = notes.of_pauses(Looks(1000, 0, late_s))
    assert note.kind is NoteKind.SUSPECT and "61.08 s" in note.text and "--pyspy-rate" in (note.remedy or "")
    assert notes.of_pauses(Looks(1000, 0)) == notes.of_pauses(None) == []


@pytest.mark.parametrize("stacks", [Stacks(refused=1), Stacks(lines_unknown=1), Stacks(too_deep=1)])
def test_what_is_left_out_is_told(stacks: Stacks) -> None:
    assert [note.kind for note in notes.of_stacks(stacks)] == [NoteKind.INCOMPLETE]
    assert notes.of_stacks(Stacks()) == []
