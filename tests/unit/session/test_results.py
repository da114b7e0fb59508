"""All that a collector hands over is kept, wherever it sits."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest

from hwprof.collector import registry
from hwprof.collector.contract import Collected, Detail, PassContext
from hwprof.run.details import SamplingDetail
from hwprof.run.manifest import ClockRecord, CollectorRecord, EventInfo, MetricDefinition, PassRecord
from hwprof.run.notes import Note, NoteKind
from hwprof.run.process_events import PROCESS_CPU_TIME
from hwprof.run.roles import Role
from hwprof.run.schema import NULLABLE, TABLES
from hwprof.session.external import ExternalCollectors
from hwprof.session.failure import alone
from hwprof.session.in_process import RunningCollectors
from hwprof.session.launcher import Launching
from hwprof.session.plan import CollectorPlan, PassPlan
from hwprof.session.results import PassResults, place
from tests.support.fake_collectors import Bystander


class Mine(Detail, kw_only=True, tag="mine"):
    answer: int


PLANNED = CollectorPlan("full", {"period": 5}, Role.OTHER)
SPANS = pl.DataFrame(
    {"kind": ["iteration"], "iteration": [4], "warmup": [False], "begin_ns": [100], "end_ns": [200], "span": [0]}
)


def everything() -> Collected:
    return Collected(
        tables={
            "series": pl.DataFrame({"time_ns": [1], "name": ["mine"], "unit": ["1"], "value": [2.0]}),
            "spans": pl.DataFrame({"kind": ["op", "op"], "path": ["in", "out"], "pid": [1, 1], "tid": [1, 1],
                                   "begin_ns": [150, 300], "end_ns": [160, 310]}),
        },
        notes=[Note(NoteKind.SCOPE, "of everything")],
        detail=Mine(answer=42),
        events=[EventInfo(name="mine", meaning="", unit="1", kind="software")],
        metrics=[MetricDefinition(name="mine", title="m", unit="", digits=1, formula='"mine"', meaning="")],
        clocks=[ClockRecord(name="mine", offset_ns=1, drift=0.0, at_ns=0, error_ns=0)],
    )  # fmt: skip


class Full(Bystander):
    def start(self, context: PassContext) -> None: ...

    def stop(self) -> Collected:
        return everything()

    def collect_results(self, raw: Path, pid: int) -> Collected:
        return everything()


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "create", lambda name: Full())


def handed_over(place: str, folder: Path) -> tuple[CollectorPlan, Collected]:
    """What comes out of a place's own class, by the way that it takes there."""
    nowhere = PassPlan(name="trace", iterations=1, warmup=0, in_process=(), external=())
    plan = msgspec.structs.replace(nowhere, **{place: (PLANNED,)})
    if place == "external":
        ((planned, collected),) = ExternalCollectors(plan, folder, 1).stop()
        return planned, collected
    if place == "launcher":
        records = [CollectorRecord(name="full", state="ran")]
        ((planned, collected),) = Launching(plan, folder).collect_results(1, records)
        assert records == []
        return planned, collected
    running = RunningCollectors()
    running.running, running.plans = {"full": Full()}, {"full": PLANNED}
    return PLANNED, running.stop()["full"]


def _collected(results: PassResults) -> dict[str, pl.DataFrame]:
    return {name: rows.collect() for name, rows in results.tables().items()}


@pytest.mark.parametrize("place", ["in_process", "external", "launcher"])
def test_nothing_is_dropped(place: str, tmp_path: Path) -> None:
    record = PassRecord(name="trace")
    results = PassResults(record, lambda: SPANS)
    results.keep(*handed_over(place, tmp_path))
    (kept,) = record.collectors
    assert (kept.name, kept.state, kept.options) == ("full", "ran", {"period": 5})
    assert kept.detail == {"kind": "mine", "answer": 42} and kept.detail_as(Mine) == Mine(answer=42)
    assert [note.kind for note in kept.notes] == [NoteKind.SCOPE]
    assert [event.name for event in record.events] == ["mine"]
    assert [metric.name for metric in record.metrics] == ["mine"]
    assert [clock.name for clock in record.clocks] == ["mine"]
    tables = _collected(results)
    assert tables["series"].select("pass", "name", "value").rows() == [("trace", "mine", 2.0)]
    assert tables["spans"].select("span", "iteration", "path").rows() == [(1, 4, "in"), (2, -1, "out")]


@pytest.mark.parametrize("table", ["spans", "counts", "of nobody"])
def test_of_a_table_without_rows_nobody_asks_what_it_is(table: str) -> None:
    record = PassRecord(name="trace")
    results = PassResults(record, lambda: SPANS)
    results.keep(PLANNED, Collected(tables={table: pl.DataFrame()}), [{table: pl.DataFrame()}])
    assert record.collectors and results.tables() == {}


def test_rows_that_were_kept_are_held_once() -> None:
    collected = Collected(tables={"spans": everything().tables["spans"]})
    results = PassResults(PassRecord(name="trace"), lambda: SPANS)
    results.keep(PLANNED, collected)
    assert collected.tables == {} and _collected(results)["spans"].height == 2


def test_spans_of_several_collectors_are_numbered_on() -> None:
    results = PassResults(PassRecord(name="trace"), lambda: SPANS)
    for _ in range(2):
        results.keep(PLANNED, Collected(tables={"spans": everything().tables["spans"]}))
    assert _collected(results)["spans"]["span"].to_list() == [1, 2, 3, 4]


@pytest.mark.parametrize(("begin_ns", "iteration"), [(99, -1), (100, 4), (199, 4), (200, -1)])
def test_an_iteration_has_its_begin_and_not_its_end(begin_ns: int, iteration: int) -> None:
    found = place(pl.DataFrame({"begin_ns": [begin_ns]}), SPANS, 7)
    assert found.select("begin_ns", "iteration", "warmup", "span").rows() == [(begin_ns, iteration, False, 7)]


def test_rows_that_fit_no_table_cost_their_collector_everything_and_nobody_else_anything() -> None:
    record = PassRecord(name="trace")
    results = PassResults(record, lambda: SPANS)
    wrong = everything()
    wrong.tables["series"] = wrong.tables["series"].rename({"value": "amount"})
    with pytest.raises(pl.exceptions.SchemaError):
        results.keep(PLANNED, wrong)
    assert (record.collectors, record.events, results.tables()) == ([], [], {})


def _series(name: str) -> Collected:
    return Collected(tables={"series": pl.DataFrame({"time_ns": [1], "name": [name], "unit": ["1"], "value": [2.0]})})


def _counts(event: str) -> Collected:
    row = {"iteration": 0, "span": 0, "tid": 1, "event": event, "value": 1, "enabled_ns": 1, "running_ns": 1}
    return Collected(tables={"counts": pl.DataFrame([row | {"provenance": "measured"}])})


@pytest.mark.parametrize(
    "later",
    [
        _series("mine"),
        _series("of-worker"),
        _counts("mine"),
        _counts(PROCESS_CPU_TIME),
        Collected(events=[EventInfo(name="of-worker", meaning="", unit="1", kind="software")]),
    ],
)
def test_a_name_that_another_collector_has_costs_the_later_one_its_data(later: Collected) -> None:
    """Who looks for the first one's rows would get both."""
    before = EventInfo(name="of-worker", meaning="", unit="1", kind="software")
    record, records = PassRecord(name="trace", events=[before]), list[CollectorRecord]()
    results = PassResults(record, lambda: SPANS, lambda: {"of-worker"})
    results.keep(PLANNED, everything())
    known = _collected(results)
    with alone(CollectorPlan("later"), records):
        results.keep(CollectorPlan("later"), later)
    assert [(failed.name, failed.state) for failed in records] == [("later", "failed")]
    assert _collected(results)["series"].equals(known["series"]) and set(_collected(results)) == set(known)
    for fitting in (_series("its own"), _counts("its-own")):
        results.keep(CollectorPlan("later"), fitting)


def _wrong(**changed: Any) -> Collected:
    return replace(everything(), **changed)


NESTED: Any = []
for _ in range(5000):
    NESTED = [NESTED]


class Loose(Detail, kw_only=True, tag="loose"):
    of_any_kind: Any


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        "abc",
        _wrong(notes=["abc", None, 5]),
        _wrong(notes=[Note("text", "scope")]),  # type: ignore[arg-type]
        _wrong(notes=None),
        _wrong(notes=[Note(NoteKind.SCOPE, "\udcff")]),
        _wrong(events=["x"]),
        _wrong(metrics=["y"]),
        _wrong(clocks=[None]),
        _wrong(clocks=[ClockRecord("mine", 1.5, 0.0, 0, 0)]),  # type: ignore[arg-type]
        _wrong(clocks=[ClockRecord("mine", 1, float("nan"), 0, 0)]),
        _wrong(detail=Loose(of_any_kind="\udcff")),
        _wrong(detail=Loose(of_any_kind=object())),
        _wrong(detail=Loose(of_any_kind=NESTED)),
        _wrong(detail=SamplingDetail(event="cycles", frequency_hz="often", kernel=True)),  # type: ignore[arg-type]
        _wrong(tables=["series"]),
        _wrong(tables={"../series": pl.DataFrame({"time_ns": [1]})}),
        _wrong(tables={"samples": pl.DataFrame({"time_ns": [1, 2]})}),
        _wrong(tables={"series": pl.DataFrame({"time_ns": [1], "name": [None], "unit": ["1"], "value": [2.0]})}),
    ],
)
def test_what_its_reader_would_refuse_costs_its_collector_everything_and_nobody_else_anything(wrong: Any) -> None:
    record, records = PassRecord(name="trace"), list[CollectorRecord]()
    results = PassResults(record, lambda: SPANS)
    with alone(PLANNED, records):
        results.keep(PLANNED, wrong)
    assert [failed.state for failed in records] == ["failed"]
    assert msgspec.json.decode(msgspec.json.encode(records), type=list[CollectorRecord]) == records
    assert (record, results.tables()) == (PassRecord(name="trace"), {})


def test_columns_that_may_be_null_are_columns() -> None:
    assert all(columns < set(TABLES[table]) for table, columns in NULLABLE.items())


def test_further_rows_are_kept_as_they_are_made_and_with_nothing_else_of_a_failed_collector(tmp_path: Path) -> None:
    record, records = PassRecord(name="trace"), list[CollectorRecord]()
    results = PassResults(record, lambda: SPANS, folder=tmp_path)

    made = list[weakref.ref[pl.DataFrame]]()

    def further(fails: bool) -> Iterator[dict[str, pl.DataFrame]]:
        for name in ("one", "two"):
            tables = _series(name).tables
            made.append(weakref.ref(tables["series"]))
            yield tables
            del tables
            assert sum(one() is not None for one in made[:-1]) == 0, "the one before is held no more"
        if fails:
            raise OSError("no more")

    with alone(PLANNED, records):
        results.keep(PLANNED, everything(), further(fails=True))
    assert [failed.state for failed in records] == ["failed"] and results.tables() == {}
    results.keep(PLANNED, everything(), further(fails=False))
    assert _collected(results)["series"]["name"].to_list() == ["mine", "one", "two"]
