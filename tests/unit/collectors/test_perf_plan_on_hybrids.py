"""Which events are counted where there are two kinds of core, against a made-up kernel."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from collectors.perf.notes import plan_detail
from collectors.perf.plan import make_plan
from hwprof.hardware.countable import Selection
from tests.support.fake_perf import HYBRID, SOFTWARE, Kernel, countable, machine, made, selection
from tests.support.reported import fields


def both(names: Sequence[str] = ("cycles", "instructions")) -> Selection:
    """General events on both kinds of core."""
    events = [countable(name, str(kind.pmu), qualified=True) for kind in HYBRID for name in names]
    return selection(events, [tuple(event.name for event in events)])


def test_each_kind_of_core_is_tried_where_it_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = Kernel(cores=HYBRID)
    found = made(monkeypatch, fake, both())
    assert found.dropped == {}
    (only,) = found.sets
    assert [(part.pmu, [event.name for event in part.events]) for part in only.parts] == [
        (None, list(SOFTWARE)),
        ("cpu_core", ["cpu_core/cycles/", "cpu_core/instructions/"]),
        ("cpu_atom", ["cpu_atom/cycles/", "cpu_atom/instructions/"]),
    ]
    assert (found.turns(only), found.on_every_core(only)) == ((1, 2), True)
    assert fake.here == {0, 1, 2, 3}  # and back
    detail = fields(plan_detail(found))
    assert detail["sets"] == [
        [
            {"pmu": None, "events": list(SOFTWARE)},
            {
                "pmu": "cpu_core",
                "events": ["cpu_core/cycles/", "cpu_core/instructions/"],
                "general_counters": 2,
                "of": 4,
            },
            {
                "pmu": "cpu_atom",
                "events": ["cpu_atom/cycles/", "cpu_atom/instructions/"],
                "general_counters": 2,
                "of": 4,
            },
        ]
    ]


def test_a_dead_counter_of_one_kind_is_found_there(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = Kernel(cores=HYBRID)
    chosen = both(("cycles", "branches"))
    fake.install(monkeypatch, chosen)
    whole = fake.read_group

    def no_branches_on_atom(fd: int, events: int) -> tuple[int, int, tuple[int, ...]]:
        enabled, running, values = whole(fd, events)
        names = [event.name for event in fake.groups[fd]]
        return (
            enabled,
            running,
            tuple(0 if name == "cpu_atom/branches/" else value for name, value in zip(names, values, strict=True)),
        )

    monkeypatch.setattr("hwprof.hardware.perf_event.read_group", no_branches_on_atom)
    found = make_plan(chosen, machine(HYBRID), root=Path("/nonexistent"))
    assert "stays 0" in found.dropped["cpu_atom/branches/"].reason


def test_a_set_with_events_on_one_kind_only_knows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five events of the one kind fill two sets, and the other kind's only event is in the first."""
    events = [countable(f"r{number}", "cpu_core") for number in range(5)] + [countable("r9", "cpu_atom")]
    found = made(monkeypatch, Kernel(cores=HYBRID), selection(events, [(event.name,) for event in events]))
    assert [found.on_every_core(group) for group in found.sets] == [True, False]
    assert [found.turns(group) for group in found.sets] == [(1, 2), (1,)]


def test_a_run_that_keeps_to_one_kind_is_no_hybrid(monkeypatch: pytest.MonkeyPatch) -> None:
    """The selection has events of the kinds that may be used only."""
    chosen = selection([countable("cycles", "cpu_core")], [("cycles",)])
    found = made(monkeypatch, Kernel(cores=HYBRID, here=frozenset({0, 1})), chosen)
    assert [part.pmu for part in found.sets[0].parts] == ["cpu_core"]
    assert found.sets[0].names == ("cycles", *SOFTWARE)
    assert (found.turns(found.sets[0]), found.on_every_core(found.sets[0])) == ((), True)
