"""py-spy's clock by the marks that it met, where looks are late, marks are interrupted, and the clock drifts."""

from __future__ import annotations

import dataclasses
import random

import pytest

from collectors.pyspy.marks import FILE, LOOKS, NAME, PER_LOOK, Marks
from collectors.pyspy.stacks import Frame
from hwprof.collector import clocks
from hwprof.errors import HwprofError

MS = 1_000_000
LOOK_NS = 10 * MS
LENGTH_NS = LOOK_NS // PER_LOOK
BEGAN_NS = 1_234_567_890
"""When py-spy did, on CLOCK_MONOTONIC."""


class Machine:
    """py-spy looks every 10 ms at what runs, and stamps it on a clock of its own."""

    def __init__(self, drift: float = 0.0, interrupted: float = 0.0, seed: int = 0) -> None:
        self.marks = Marks(1_000_000_000 // LOOK_NS)
        self.frames: list[Frame] = []
        self._drift, self._interrupted = drift, interrupted
        self._random = random.Random(seed)

    def stamp_ns(self, at_ns: int) -> int:
        """In microseconds, as all of its stamps."""
        return round((at_ns - BEGAN_NS) * (1 + self._drift)) // 1000 * 1000

    def make(self, since_ns: int) -> None:
        """As ``Marks.make``, from then on."""
        now_ns = since_ns
        look_ns = since_ns + self._random.randrange(LOOK_NS)
        for _ in range(LOOKS * PER_LOOK):
            name = f"{NAME}_{len(self.marks.times_ns)}"
            end_ns = now_ns + LENGTH_NS + (25 * MS if self._random.random() < self._interrupted else 0)
            self.marks.times_ns[name] = (now_ns, end_ns)
            if look_ns < end_ns:
                stamp_ns = self.stamp_ns(look_ns)
                self.frames.append(Frame(1, 3, name, FILE, 1, stamp_ns, stamp_ns + 1000))
                look_ns += LOOK_NS * -(-(end_ns - look_ns) // LOOK_NS)
            now_ns = end_ns


@pytest.mark.parametrize("interrupted", [0.0, 0.2])
@pytest.mark.parametrize("drift", [0.0, 40e-6, -40e-6])
@pytest.mark.parametrize("seed", range(5))
def test_stamps_of_a_minute_are_converted_within_the_error_that_is_told(
    drift: float, interrupted: float, seed: int
) -> None:
    machine = Machine(drift, interrupted, seed)
    since_ns, minute_ns = BEGAN_NS + 300 * MS, 60_000 * MS
    machine.make(since_ns)
    machine.make(since_ns + minute_ns)
    met = machine.marks.met(machine.frames)
    clock = clocks.fit("py-spy", met)
    assert clock.error_ns <= 2 * LENGTH_NS + (0 if not interrupted else LENGTH_NS)
    for at_ns in (since_ns, since_ns + minute_ns // 2, since_ns + minute_ns):
        assert abs(clocks.to_monotonic(clock, machine.stamp_ns(at_ns)) - at_ns) <= clock.error_ns


def test_who_met_no_mark_at_the_end_had_ended_before() -> None:
    """Somebody interrupts py-spy in the middle: its file is whole, and ends there."""
    machine = Machine()
    machine.make(BEGAN_NS)
    half = len(machine.frames)
    machine.make(BEGAN_NS + 3_000 * MS)
    assert machine.marks.clock(machine.frames).drift == pytest.approx(0, abs=1e-3)
    with pytest.raises(HwprofError, match="no mark at the end of the pass"):
        machine.marks.clock(machine.frames[:half])


def test_marks_in_which_others_had_the_processor_are_left_out() -> None:
    machine = Machine(interrupted=0.2)
    machine.make(BEGAN_NS)
    met = machine.marks.met(machine.frames)
    assert LOOKS // 2 <= len(met) < len(machine.frames)
    assert {high - low for _, low, high in met} == {LENGTH_NS}


def test_where_all_were_interrupted_they_have_to_do() -> None:
    machine = Machine(interrupted=1.0)
    machine.make(BEGAN_NS)
    assert len(machine.marks.met(machine.frames)) == len(machine.frames) > 0


def test_other_functions_are_no_marks() -> None:
    assert Marks(100).met([Frame(1, 0, "work", "a.py", 1, 0, 1)]) == []


def test_marks_take_their_time_and_have_names_of_their_own() -> None:
    marks = Marks(10_000)
    marks.make()
    marks.make()
    times = list(marks.times_ns.values())
    assert len(times) == 2 * LOOKS * PER_LOOK
    assert all(end_ns - begin_ns >= 100_000 // PER_LOOK for begin_ns, end_ns in times)
    assert times == sorted(times)


def test_no_function_of_the_users_is_a_mark() -> None:
    marks, others = Marks(10_000), Marks(10_000)
    marks.make()
    others.make()
    assert not set(marks.times_ns) & set(others.times_ns)
    name = next(iter(marks.times_ns))
    assert marks.has(Frame(1, 0, name, FILE, 1, 0, 1))
    for frame in (Frame(1, 0, name, "a.py", 1, 0, 1), Frame(1, 0, f"{NAME}_0", FILE, 1, 0, 1)):
        assert not marks.has(frame)


def test_a_clock_that_the_marks_tell_is_given() -> None:
    machine = Machine(drift=40e-6)
    machine.make(BEGAN_NS)
    machine.make(BEGAN_NS + 5000 * MS)
    assert machine.marks.clock(machine.frames).error_ns <= LOOK_NS


@pytest.mark.parametrize("drift", [0.002, -0.002])
def test_a_clock_that_drifts_absurdly_is_refused(drift: float) -> None:
    machine = Machine(drift=drift)
    machine.make(BEGAN_NS)
    machine.make(BEGAN_NS + 60_000 * MS)
    with pytest.raises(HwprofError, match="ppm"):
        machine.marks.clock(machine.frames)


def late(frame: Frame) -> Frame:
    return dataclasses.replace(frame, begin_ns=frame.begin_ns + 50 * MS, end_ns=frame.end_ns + 50 * MS)


def test_looks_that_are_stamped_late_do_not_matter() -> None:
    machine = Machine()
    machine.make(BEGAN_NS)
    machine.frames[::3] = map(late, machine.frames[::3])
    assert machine.marks.clock(machine.frames).error_ns <= 2 * LENGTH_NS


def test_a_clock_known_no_closer_than_the_looks_lie_is_refused() -> None:
    machine = Machine(interrupted=1.0)
    machine.make(BEGAN_NS)
    with pytest.raises(HwprofError, match="no closer"):
        machine.marks.clock(machine.frames)


def test_without_marks_there_is_no_clock() -> None:
    with pytest.raises(HwprofError, match="none of the marks"):
        Marks(100).clock([])
