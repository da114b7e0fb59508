from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from unittest import mock

import msgspec
import polars as pl
import pytest

from hwprof.analysis.metrics import (
    Operands,
    by_thread,
    definitions,
    evaluate,
    events_of,
    is_modelled,
    missing_operands,
    operands_of,
    over_kinds,
)
from hwprof.errors import HwprofError
from hwprof.hardware.catalogue import microarchitectures
from hwprof.hardware.metrics import independent, vocabulary
from hwprof.run.manifest import CoreKind, EventInfo, MetricDefinition, PassRecord
from tests.support.synthetic_processor import Processor, synthetic_machine

MACHINE = synthetic_machine()
DEFINITIONS = definitions(None, MACHINE)

CONSTANT: Mapping[str, Sequence[object]] = {
    "owner": ["a", "b"],
    "time": [2000.0, 1000.0],
    "macs": [40_000.0, 0.0],
    "bytes": [8000.0, 500.0],
    "threads": [2.0, 2.0],
}
COUNTED: Mapping[str, Sequence[float | None]] = {
    "counted-time": [2500.0, 1000.0],
    "cycles": [9000.0, 0.0],
    "instructions": [6000.0, 0.0],
    "instructions@workers": [1500.0, 0.0],
    "cache-misses": [100.0, None],
    "branch-misses": [12.0, 0.0],
    "task-clock": [4500.0, 800.0],
    "task-clock@main": [2400.0, 800.0],
    "task-clock@workers": [2100.0, 0.0],
    "page-faults": [3.0, 0.0],
}
EXPECTED = {
    "cpi": (1.5, None),
    "ipc": (2 / 3, None),
    "frequency": (2.0, 0.0),
    "cache_mpki": (100 * 1000 / 6000, None),
    "branch_mpki": (2.0, None),
    "gflops": (40.0, None),  # 80,000 FLOPs in 2 µs; a layer without MACs has no figure
    "gbytes": (4.0, 0.5),
    "intensity": (10.0, None),
    "cpus_used": (1.8, 0.8),
    "parallel_efficiency": (90.0, 40.0),
    "balance": (0.875, 0.0),
    "worker_instructions": (25.0, None),
    "page_faults": (3.0, 0.0),
}


def operands(**changes: Sequence[float | None]) -> Operands:
    """One counting iteration."""
    frame = pl.DataFrame({**CONSTANT, **COUNTED, **changes})
    return Operands(frame, frame.with_columns(iteration=1))


def metric(formula: str, name: str = "x") -> MetricDefinition:
    return MetricDefinition(name=name, title="X", unit="1", digits=1, formula=formula, meaning="made up")


def named(name: str) -> MetricDefinition:
    return next(found for found in DEFINITIONS if found.name == name)


@pytest.mark.parametrize("name", EXPECTED)
def test_hand_computed(name: str) -> None:
    found = evaluate(operands(), DEFINITIONS).frame[name].to_list()
    assert len(found) == 2
    for value, expected in zip(found, EXPECTED[name], strict=True):
        assert value is expected if expected is None else math.isclose(value, expected)


def test_a_metric_without_its_operand_is_null_and_says_which_one() -> None:
    without = Operands(operands().owners.drop("cycles"), operands().iterations.drop("cycles"))
    assert evaluate(without, [named("cpi")]).frame["cpi"].to_list() == [None, None]
    assert missing_operands(named("cpi"), without.owners.columns) == ("cycles",)
    assert missing_operands(named("cpi"), COUNTED) == ()


def test_one_thread_has_no_balance() -> None:
    assert evaluate(operands(threads=[1.0, 1.0]), DEFINITIONS).frame["balance"].to_list() == [None, None]


def test_operands_without_a_single_value_are_not_available() -> None:
    frame = pl.DataFrame({"owner": ["a"], "cycles": [None], "time": [1.0]})
    assert Operands(frame, frame).available == ("time",)


@pytest.mark.parametrize(
    "name",
    ["cpu_core/cycles/", "perf::TASK-CLOCK", "PAPI_TOT_CYC", "fp_arith.512b:u", "cpu/event=0xc7/"],
)
def test_operands_may_be_called_whatever_tools_call_events(name: str) -> None:
    formula = f'100 * ("{name}@workers") / ("{name}" + "threads")'
    values: dict[str, list[float | None]] = {name: [8.0, 3.0], f"{name}@workers": [5.0, None]}
    found = evaluate(operands(**values), [metric(formula)])
    assert found.frame["x"].to_list() == [50.0, None]
    assert operands_of(metric(formula)) == (f"{name}@workers", name, "threads")


def test_a_formula_is_checked_once_however_often_it_is_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    parse = mock.Mock(side_effect=pl.sql_expr)
    monkeypatch.setattr(pl, "sql_expr", parse)
    once = metric('"cycles" / ("instructions" + 123456)')
    first, second = (evaluate(operands(), [once]).frame["x"].to_list() for _ in range(2))
    assert first == second == [9000 / 129_456, 0.0]
    assert parse.mock_calls == [mock.call(once.formula)]


@pytest.mark.parametrize("formula", ['"cycles" / (', "owner", "time", "'a'", '(SELECT 1) + "cycles"'])
def test_what_is_no_formula_of_its_operands_is_refused_when_it_is_read(formula: str) -> None:
    """Also where the frame happens to have such a column, and before anything is evaluated."""
    with pytest.raises(HwprofError, match="formula of the metric x in run"):
        definitions(PassRecord(name="measure", metrics=[metric(formula)]), MACHINE)


def test_a_metric_by_thread() -> None:
    main, workers = by_thread(named("cpi"))
    assert (main.name, workers.name) == ("cpi@main", "cpi@workers")
    parts = {"cycles@main": [6.0, 0.0], "instructions@main": [3.0, 0.0], "cycles@workers": [5.0, 0.0]}
    found = evaluate(operands(**parts, **{"instructions@workers": [1.0, 0.0]}), [main, workers]).frame
    assert found.select("cpi@main", "cpi@workers").rows() == [(2.0, 5.0), (None, None)]


@pytest.mark.parametrize("name", ["balance", "gflops", "parallel_efficiency", "uncore_dram_gbytes"])
def test_what_no_thread_has_a_part_of_is_not_told_by_thread(name: str) -> None:
    assert by_thread(named(name)) == ()


def test_on_hybrids_the_kinds_of_core_are_summed() -> None:
    names = ["cpu_core/instructions/", "cpu_atom/instructions/", "task-clock"]
    found = over_kinds(named("worker_instructions"), names)
    values = {"cpu_core/instructions/": 90.0, "cpu_atom/instructions/": 10.0}
    values |= {"cpu_core/instructions/@workers": 30.0, "cpu_atom/instructions/@workers": 10.0}
    columns = {name: [value, value] for name, value in values.items()}
    assert evaluate(operands(**columns), [found]).frame["worker_instructions"].to_list() == [40.0, 40.0]
    assert over_kinds(named("balance"), names) is named("balance")


def test_the_pass_s_own_definitions_come_first_and_none_is_told_twice() -> None:
    own = msgspec.structs.replace(named("cpi"), formula='"PAPI_TOT_CYC" / "PAPI_TOT_INS"')
    record = PassRecord(name="measure", metrics=[named("cpi"), own])
    assert [found.formula for found in definitions(record, MACHINE) if found.name == "cpi"] == [named("cpi").formula]
    record.events = [EventInfo(name, "", "1", "hardware") for name in events_of(own)]
    assert [found.formula for found in definitions(record, MACHINE) if found.name == "cpi"] == [own.formula]


def test_core_metrics_are_there_on_every_machine() -> None:
    core = {name.name for name in vocabulary() if name.core}
    unknown = msgspec.structs.replace(MACHINE, cores=(CoreKind("cpu", None, (0,)),))
    for found in (DEFINITIONS, definitions(PassRecord(name="measure"), unknown)):
        assert core <= {metric.name for metric in found if metric.core}
    assert evaluate(operands(), [named("llc_mpki")]).frame["llc_mpki"].to_list() == [None, None]


def test_without_definitions_the_processor_s_own_are_taken() -> None:
    known = Processor("amd-zen4")
    found = {metric.name: metric for metric in definitions(None, known.machine)}
    assert "l2_cache_req_stat.ic_dc_miss_in_l2" in found["l2_mpki"].formula


@pytest.mark.parametrize("processor", [known.id for known in microarchitectures()])
def test_every_processor_s_metrics_can_be_evaluated(processor: str) -> None:
    """With every event counted once; only what divides by a difference may be without a value."""
    known = Processor(processor)
    names = {name for metric in known.metrics for name in operands_of(metric)}
    columns = {name: [float(2 + number), 3.0] for number, name in enumerate(sorted(names - {"threads"}))}
    found = evaluate(operands(**columns), known.metrics)
    assert not found.across_iterations
    values = found.frame.drop("owner").row(0, named=True)
    assert {name for name, value in values.items() if value is None} == set()


def test_definitions_are_sound() -> None:
    names = [metric.name for metric in DEFINITIONS]
    assert len(set(names)) == len(names)
    for found in independent():
        assert operands_of(found), found.name
        assert found.meaning and found.unit and found.group, found.name
    assert events_of(named("balance")) == ("task-clock",)
    assert events_of(named("uncore_dram_gbytes")) == ()
    assert {found.name for found in DEFINITIONS if is_modelled(found)} == {"gflops", "gbytes", "intensity"}
