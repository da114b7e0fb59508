"""Which zeros a note is written about: none of a usual run on any processor that the catalogue knows."""

from __future__ import annotations

import pytest

from collectors.shared.counting.notes import SILENT_NS, Total, enumerated, not_counted, silent_events
from hwprof.hardware.catalogue import Event, Microarchitecture, microarchitectures
from hwprof.hardware.metrics import facts, operands, vocabulary
from hwprof.run.notes import NoteKind
from hwprof.unavailable import Unavailable
from tests.support.reported import texts

RIGHTLY_ZERO = ("double", "half", "bf", "remote_cache", "smt_contention", "topdown-bad-spec")
"""What does not happen where one single-precision model has a machine with one socket to itself."""


def counted_by_default(kind: Microarchitecture) -> dict[str, Event]:
    """The events of the processor's own file behind the default metrics."""
    recipes, events = kind.catalogue.recipes, kind.catalogue.named()
    wanted = [recipes[metric.name] for metric in vocabulary() if metric.default and metric.name in recipes]
    names = [name for recipe in wanted for name in operands(f"{recipe.of} {recipe.per or ''}")]
    return {name: events[name] for name in names if name in events}


def run(events: dict[str, Event], zero: tuple[str, ...], running_ns: int = SILENT_NS) -> dict[str, Total]:
    return {
        name: Total(event, "cpu", int(not any(part in name for part in zero)), running_ns)
        for name, event in events.items()
    }


@pytest.mark.parametrize("kind", microarchitectures(), ids=lambda kind: str(kind.id))
def test_a_usual_run_raises_no_alarm(kind: Microarchitecture) -> None:
    events = counted_by_default(kind)
    assert events
    assert silent_events(run(events, RIGHTLY_ZERO)) == []


@pytest.mark.parametrize("kind", microarchitectures(), ids=lambda kind: str(kind.id))
def test_where_nothing_counts_every_event_is_named(kind: Microarchitecture) -> None:
    events = counted_by_default(kind)
    notes = texts(silent_events(run(events, ("",))))
    assert all(any(name in note for note in notes) for name in events)
    assert silent_events(run(events, ("",), SILENT_NS - 1)) == []


def test_one_kind_of_core_does_not_vouch_for_another() -> None:
    event = Event(name="fp_arith.all", meaning="m", code="event=0xc7,umask=0x01")
    totals = {
        "cpu_core/fp_arith.all/": Total(event, "cpu_core", 5, SILENT_NS),
        "cpu_atom/fp_arith.all/": Total(event, "cpu_atom", 0, SILENT_NS),
    }
    (note,) = silent_events(totals)
    assert (note.kind, note.subject) == (NoteKind.SUSPECT, "cpu_atom/fp_arith.all/")


def test_a_zero_of_the_operating_system_s_is_one() -> None:
    faults = Event(name="major-faults", meaning="m", kind="software")
    assert silent_events({"major-faults": Total(faults, None, 0, SILENT_NS)}) == []


def test_metrics_that_are_lost_are_named_and_events_of_none() -> None:
    why = Unavailable("no PMU", "give it one")
    cpi = facts()["cpi"].defined('"cycles" / "instructions"')
    workers = facts()["worker_share"].defined('"loads@workers" / "loads"')
    (note,) = not_counted(dict.fromkeys(["cycles", "my_event", "loads", "ipc"], why), [cpi, workers])
    assert (note.subject, note.text, note.remedy) == ("CPI, worker %, my_event, IPC", why.reason, why.remedy)


def test_of_many_names_the_first_are_told() -> None:
    assert enumerated(["a", "b", "c", "d", "e"]) == "a, b, c, d, e"
    assert enumerated(["a", "b", "c", "d", "e", "f"]) == "a, b, c, d and 2 more"
