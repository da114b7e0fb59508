"""Every file of the event catalogue against the machine that it describes: a recorded or composed tree of its own."""

from __future__ import annotations

import tomllib
from pathlib import Path

import polars as pl
import pytest

from hwprof.hardware.catalogue import GENERIC, PAPI, Event, Microarchitecture, catalogue, microarchitectures
from hwprof.hardware.countable import Selection
from hwprof.hardware.machine import read_machine
from hwprof.hardware.metrics import GIVEN_OPERANDS, operands, recipes, vocabulary
from hwprof.hardware.packing import Budget, pack
from hwprof.hardware.pmu import Code, find
from hwprof.hardware.selection import select
from hwprof.run.manifest import CoreKind, Machine
from tests.support.recorded_machines import TREES, plant

HYBRIDS = {
    "intel-golden-cove": "intel-alder-lake",
    "intel-gracemont": "intel-alder-lake",
    "intel-redwood-cove": "intel-meteor-lake",
    "intel-crestmont": "intel-meteor-lake",
    "intel-lion-cove": "intel-arrow-lake",
    "intel-skymont": "intel-arrow-lake",
}
"""Kinds of core that share a machine; every other file's tree has the file's name."""

SECOND_SOURCES = Path(__file__).parents[2] / "fixtures/events/second_source"
NO_SECOND_SOURCE = "no second source"
FLOP_METRICS = "counted_"
BYTE_METRICS = "_gbytes"
UNITS = {"1", "FLOP", "B", "slots"}


class Planted:
    """A file's machine, laid out on disk."""

    def __init__(self, kind: Microarchitecture, root: Path) -> None:
        self.kind = kind
        self.root = plant(HYBRIDS.get(kind.id, kind.id), root)
        architecture = "aarch64" if kind.processor.vendor == "ARM" else "x86_64"
        self.machine: Machine = read_machine(self.root, architecture, has_core_pmu=True)

    @property
    def core(self) -> CoreKind:
        """The kind of core that the file was found for."""
        (core,) = [core for core in self.machine.cores if core.microarchitecture == self.kind.id]
        return core

    def encode(self, event: Event, terms: str) -> list[Code]:
        """The terms on every PMU that the event is counted on."""
        pmus = find(self.root, event.pmu or self.core.pmu or "")
        assert pmus, f"the tree has no PMU {event.pmu}"
        return [pmu.encode(terms) for pmu in pmus]

    def select(self, *names: str) -> Selection:
        """As if the process were kept to these cores."""
        return select(names or None, self.machine, self.root, self.core.cpus)


@pytest.fixture(params=microarchitectures(), ids=lambda kind: kind.id)
def planted(request: pytest.FixtureRequest, tmp_path: Path) -> Planted:
    return Planted(request.param, tmp_path)


def test_the_catalogue_has_the_processors_that_it_promises() -> None:
    promised = {
        *("intel-skylake-x", "intel-ice-lake-sp", "intel-sapphire-rapids", "intel-granite-rapids"),
        *("intel-sierra-forest", *HYBRIDS),
        *("amd-zen2", "amd-zen3", "amd-zen4", "amd-zen5"),
        *("arm-neoverse-n1", "arm-neoverse-v1", "arm-neoverse-n2", "arm-neoverse-v2"),
        "arm-neoverse-n2-r0p2",
    }
    assert {kind.id for kind in microarchitectures()} == promised


def test_a_processor_is_described_before_its_first_event() -> None:
    """Only so much of every file is read to find the one for this machine."""
    assert all(catalogue(kind.id).processor == kind.processor for kind in microarchitectures())


def test_every_file_that_there_is_loads() -> None:
    folder = Path(__file__).parents[3] / "hwprof/hardware/events"
    names = {path.stem for path in folder.glob("*.toml")}
    assert names == {GENERIC, PAPI} | {kind.id for kind in microarchitectures()}
    for name in names:
        assert catalogue(name).events


def test_only_this_file_is_found_on_its_machine(planted: Planted) -> None:
    tree = HYBRIDS.get(planted.kind.id, planted.kind.id)
    expected = {name for name in HYBRIDS if HYBRIDS[name] == tree} or {tree}
    assert {core.microarchitecture for core in planted.machine.cores} == expected


def test_names_are_unique_and_lower_case(planted: Planted) -> None:
    own = [name for event in planted.kind.catalogue.events for name in (event.name, *event.aliases)]
    assert len(own) == len(set(own))
    assert [name for name in own if name != name.lower() or '"' in name or "/" in name or "," in name] == []
    metrics = [recipe.name for recipe in planted.kind.catalogue.metric]
    assert len(metrics) == len(set(metrics))


def test_what_a_file_refers_to_exists(planted: Planted) -> None:
    known = catalogue(GENERIC).named() | planted.kind.catalogue.named()
    names = {metric.name for metric in vocabulary()}
    for recipe in planted.kind.catalogue.metric:
        assert recipe.name in names
        for operand in (*operands(recipe.of), *operands(recipe.per or "")):
            assert operand in known or operand in GIVEN_OPERANDS, (recipe.name, operand)
    for event in planted.kind.catalogue.events:
        assert event.leader is None or event.leader in known, event.name
    assert [name for name in planted.kind.processor.fixed if name not in known] == []


def test_every_event_says_what_it_counts_and_where_that_was_read(planted: Planted) -> None:
    for event in planted.kind.catalogue.events:
        assert event.meaning and event.source and event.code, event.name
        assert event.unit in UNITS and (event.weight == 1 or event.unit in ("FLOP", "B")), event.name
        assert event.counters <= planted.kind.processor.general_counters, event.name
        assert all(0 <= number < 16 for number in event.only), event.name
        assert event.pmu is None or event.scope != "thread", f"{event.name}: no thread can be charged with it"


def second_source(name: str) -> dict[str, str]:
    """The codes of a catalogue file from elsewhere; of one that is based on another, its own may be none."""
    file = SECOND_SOURCES / f"{name}.toml"
    return dict(tomllib.loads(file.read_text())["codes"]) if file.is_file() else {}


def test_codes_agree_with_a_second_source(planted: Planted) -> None:
    """What perf's terms become on this machine, from two independent readings."""
    catalogue_file = planted.kind.catalogue
    events = {event.name: event for event in catalogue_file.events}
    codes = second_source(planted.kind.id)
    if catalogue_file.based_on is not None:
        codes |= {name: code for name, code in second_source(catalogue_file.based_on).items() if name in events}
    assert sorted(set(codes) - set(events)) == []
    for event in events.values():
        encoded = planted.encode(event, event.code or "")
        if event.name in codes:
            assert encoded == planted.encode(event, codes[event.name]), event.name
        else:
            assert NO_SECOND_SOURCE in (event.source or ""), event.name
    assert len(codes) >= 0.8 * len(events)


def test_no_two_events_have_the_same_code(planted: Planted) -> None:
    seen: dict[tuple[Code, ...], str] = {}
    for event in planted.kind.catalogue.events:
        other = seen.setdefault(tuple(planted.encode(event, event.code or "")), event.name)
        assert other == event.name


@pytest.mark.parametrize(("metrics", "unit"), [(FLOP_METRICS, "FLOP"), (BYTE_METRICS, "B")])
def test_metrics_weigh_events_as_the_events_say(planted: Planted, metrics: str, unit: str) -> None:
    """The formulas are linear: with one event at 1 and the others at 0 they give that event's coefficient."""
    events = {event.name: event for event in planted.kind.catalogue.events}
    for name, recipe in recipes(planted.kind).items():
        if metrics not in name:
            continue
        names = operands(recipe.of)
        assert recipe.scale == 1 and recipe.per in (None, '"counted-time"'), name
        for one in names:
            values = pl.DataFrame({other: [float(other == one)] for other in names})
            (coefficient,) = values.select(pl.sql_expr(recipe.of).cast(pl.Float64)).to_series()
            assert coefficient == events[one].weight, (name, one)
            assert events[one].unit == unit, (name, one)


def test_the_defaults_count_something_that_fits(planted: Planted) -> None:
    found = planted.select()
    hardware = [event for event in found.events if event.kind == "hardware"]
    assert len(hardware) >= 6
    assert {"cpi", "frequency", "branch_mpki"} <= {metric.name for metric in found.metrics}
    assert {event.name for event in found.events if event.kind == "software"} >= {"task-clock", "page-faults"}
    budget = Budget.of(planted.kind.processor, smt=planted.machine.physical_cores != planted.machine.logical_processors)
    packing = pack(found.events, found.bundles, {planted.core.pmu: budget})
    assert packing.torn == () and packing.oversized == ()
    assert {name for event_set in packing.sets for name in event_set.names} == {event.name for event in found.events}


def test_everything_can_be_asked_for(planted: Planted) -> None:
    everything = planted.select("all")
    assert {metric.name for metric in everything.metrics} >= set(planted.kind.catalogue.recipes)
    assert [name for name in everything.dropped if name in planted.kind.catalogue.named()] == []
    events = planted.select(*(event.name for event in planted.kind.catalogue.events))
    counted = {event.name for event in (*events.events, *events.uncore)}
    assert counted >= {event.name for event in planted.kind.catalogue.events}
    assert events.dropped == {}


def test_every_tree_is_of_a_processor_that_the_catalogue_knows(tmp_path: Path) -> None:
    for number, tree in enumerate(sorted(TREES.glob("*.txt"))):
        machine = read_machine(plant(tree.stem, tmp_path / str(number)), "aarch64", has_core_pmu=True)
        assert all(core.microarchitecture for core in machine.cores), tree.stem
