"""The own code of modules around layers: time, counts, samples and kernels, exact and nothing twice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwprof.analysis import instrumented
from hwprof.analysis.attribution import attribute
from hwprof.analysis.instrumented import KERNEL_KEYS, KERNELS_SCHEMA
from hwprof.analysis.instrumented_pass import _large
from hwprof.analysis.kernel_counts import KernelCounts
from hwprof.analysis.layer_types import layer_type_table
from hwprof.analysis.layers import layer_table, static_rows
from hwprof.analysis.owners import OWN, ROOT, ROOT_NAME, UNATTRIBUTED, WHOLE, own
from hwprof.analysis.samples import attribute_samples, coverage
from hwprof.hardware.metrics import independent
from hwprof.run.schema import TABLES
from tests.support.small_tables import MAIN, WORKER, counts, layers, record, spans

MODULES = layers(
    [
        (ROOT, "Net", False),
        ("block", "Block", False),
        ("block.conv", "Conv2d", True),
        ("block.act", "ReLU", True),
        ("head", "Linear", True),
    ]
)
LEAVES = MODULES.filter("leaf")["path"].to_list()
NONE_REPEATED = pl.DataFrame(schema=TABLES["repeated_spans"])


@dataclass
class Tree:
    """Spans of one iteration with the counts of both threads, written as calls are made."""

    spans: list[tuple[int, int | None, int, str, str, int, int]] = field(default_factory=list)
    counts: list[tuple[int, int, int, str, int]] = field(default_factory=list)
    now: int = 0
    done: tuple[int, int] = (0, 0)

    def work(self, time: int, main: int = 0, worker: int = 0) -> None:
        """Something is done by whoever is open."""
        self.now += time
        self.done = (self.done[0] + main, self.done[1] + worker)

    def call(self, kind: str, path: str, parent: int | None, *inside: object) -> int:
        """``inside``: triples for ``work``, and functions that call further modules."""
        number, begin, before = len(self.spans), self.now, self.done
        self.spans.append((number, parent, 0, kind, path, begin, begin))
        for step in inside:
            if callable(step):
                step(number)
            else:
                self.work(*step)  # type: ignore[misc]
        self.spans[number] = (number, parent, 0, kind, path, begin, self.now)
        amounts = [after - first for after, first in zip(self.done, before, strict=True)]
        self.counts += [(0, number, tid, "cycles", amount) for tid, amount in zip((MAIN, WORKER), amounts, strict=True)]
        return number


def example() -> Tree:
    """Each step does (ns, cycles of the main thread, of the worker)."""
    tree = Tree()
    conv = ("block.conv", (50, 500, 400))
    act = ("block.act", (20, 200, 100))

    def block(parent: int) -> None:
        tree.call(
            "layer", "block", parent, (3, 30, 1),
            lambda number: tree.call("layer", conv[0], number, conv[1]), (7, 70, 2),
            lambda number: tree.call("layer", act[0], number, act[1]), (1, 10, 0),
        )  # fmt: skip

    def model(parent: int) -> None:
        tree.call(
            "layer", ROOT, parent, (2, 20, 0), block, (4, 40, 0),
            lambda number: tree.call("layer", "head", number, (30, 300, 250)),
        )  # fmt: skip

    tree.call("stage", "inference", None, (5, 50, 5), model, (6, 60, 6))
    return tree


@pytest.fixture
def tree() -> Tree:
    return example()


RECORD = record([(0, False, 0, True)], [["cycles"]])


def test_every_modules_own_is_what_it_does_between_the_modules_that_it_calls(tree: Tree) -> None:
    found = attribute(spans(tree.spans), counts(tree.counts), MODULES, RECORD)
    assert dict(found.times.select("owner", "time_ns").iter_rows()) == {
        "block.conv": 50,
        "block.act": 20,
        "head": 30,
        own("block"): 3 + 7 + 1,
        own(ROOT): 2 + 4,
        UNATTRIBUTED: 5 + 6,
        WHOLE: 128,
    }
    assert {row[0]: row[1:] for row in found.counts.select("owner", "main", "workers").iter_rows()} == {
        "block.conv": (500, 400),
        "block.act": (200, 100),
        "head": (300, 250),
        own("block"): (110, 3),
        own(ROOT): (60, 0),
        UNATTRIBUTED: (110, 11),
        WHOLE: (1280, 764),
    }


WORK = st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
CALLS: st.SearchStrategy[list[object]] = st.deferred(
    lambda: st.lists(st.one_of(WORK, st.tuples(st.sampled_from(["block", *LEAVES]), CALLS)), max_size=4)
)


@given(CALLS)
def test_owners_are_the_whole_to_the_last_nanosecond_and_count(steps: list[object]) -> None:
    """However modules call one another, even themselves."""
    tree = Tree()

    def steps_of(given_steps: list[object]) -> list[object]:
        return [call_of(*step) if isinstance(step[0], str) else step for step in given_steps]  # type: ignore[index,misc]

    def call_of(path: str, inside: list[object]) -> object:
        return lambda parent: tree.call(
            "layer", path, parent, *(leaf_steps(path, inside) if path in LEAVES else steps_of(inside))
        )

    def leaf_steps(path: str, inside: list[object]) -> list[object]:
        """What it does itself, and calls of itself."""
        own_calls = [step for step in inside if isinstance(step, tuple) and step[0] == path]
        return [(1, 1, 1), *(call_of(*step) for step in own_calls), (2, 3, 4)]

    tree.call("stage", "inference", None, (1, 0, 0), lambda stage: tree.call("layer", ROOT, stage, *steps_of(steps)))
    found = attribute(spans(tree.spans), counts(tree.counts), MODULES, RECORD)
    parts = found.times.filter(pl.col("owner") != WHOLE)
    assert parts["time_ns"].min() is not None and (parts["time_ns"] >= 0).all()
    assert parts["time_ns"].sum() == tree.now
    sums = found.counts.filter(pl.col("owner") != WHOLE).select(pl.col("value", "main", "workers").sum()).row(0)
    assert sums == (sum(tree.done), *tree.done)


def test_a_module_that_waits_for_layers_on_other_threads_has_none_of_their_time() -> None:
    rows = spans(
        [
            (0, None, 0, "stage", "inference", 0, 100),
            (1, 0, 0, "layer", ROOT, 0, 100),
            (2, None, 0, "layer", "head", 10, 60),
            (3, None, 0, "layer", "block.conv", 20, 90),
        ]
    ).with_columns(tid=pl.Series([MAIN, MAIN, WORKER, WORKER + 1], dtype=pl.Int32))
    found = attribute(rows, counts([]), MODULES, RECORD)
    times = dict(found.times.select("owner", "time_ns").iter_rows())
    assert (times[own(ROOT)], times[UNATTRIBUTED]) == (10 + 10, 0)
    assert found.overlapping_calls == 1


def test_runs_that_did_not_watch_the_model_itself_have_leaves_only(tree: Tree) -> None:
    older = MODULES.filter(pl.col("path") != ROOT)
    found = attribute(spans(tree.spans), counts(tree.counts), older, RECORD)
    assert set(found.times["owner"]) == {*LEAVES, UNATTRIBUTED, WHOLE}
    assert found.times.filter(owner=UNATTRIBUTED)["time_ns"].to_list() == [28]


def test_own_code_is_a_row_with_its_products_and_of_its_type(tree: Tree) -> None:
    known = MODULES.with_columns(
        own_macs=pl.when(pl.col("path") == "block").then(700).when("leaf").then("macs").otherwise(0).cast(pl.Int64),
        macs=pl.when("leaf").then("macs").otherwise(9_999).cast(pl.Int64),
    )
    attribution = attribute(spans(tree.spans), counts(tree.counts), known, RECORD)
    rows = layer_table(known, attribution, independent(), 2).rows
    assert rows["owner"].to_list() == [own(ROOT), own("block"), *LEAVES, UNATTRIBUTED, WHOLE]
    assert dict(rows.select("owner", "macs").iter_rows()) == {
        own(ROOT): 0, own("block"): 700, **dict.fromkeys(LEAVES, 1000), UNATTRIBUTED: None, WHOLE: 3_700,
    }  # fmt: skip
    assert rows.filter(~pl.col("owner").is_in([WHOLE]))["share"].sum() == pytest.approx(1)
    types = layer_type_table(known, attribution, independent(), 2).rows
    assert dict(types.select("owner", "time_median_ns").iter_rows()) == {
        "Conv2d": 50, "ReLU": 20, "Linear": 30, f"Block{OWN}": 11, f"Net{OWN}": 6, UNATTRIBUTED: 11,
    }  # fmt: skip


def test_what_is_known_before_measuring_has_own_code_with_products_only() -> None:
    known = MODULES.with_columns(
        own_macs=pl.when(pl.col("path") == "block").then(700).when("leaf").then("macs").otherwise(0).cast(pl.Int64),
        macs=pl.when("leaf").then("macs").otherwise(9_999).cast(pl.Int64),
    )
    rows = static_rows(known)
    assert dict(rows.select("path", "macs").iter_rows()) == {own("block"): 700, **dict.fromkeys(LEAVES, 1000)}
    assert rows.columns == known.columns
    uncalled = known.with_columns(own_macs=pl.lit(None, pl.Int64), calls=pl.lit(0, pl.Int32))
    assert static_rows(uncalled)["path"].to_list() == LEAVES


def test_parameters_beside_those_of_the_modules_within_have_a_row() -> None:
    """As those of an attention that are no layer's; a list of modules is not in the table."""
    rows = [("", False, 100), ("layers.0", False, 60), ("layers.0.attn", False, 30), ("layers.0.attn.out", True, 10),
            ("layers.0.norm", True, 30), ("head", True, 40)]  # fmt: skip
    known = pl.DataFrame(
        [(path, leaf, parameters, 0, 0, 1) for path, leaf, parameters in rows],
        schema=["path", "leaf", "parameters", "macs", "own_macs", "calls"], orient="row",
    )  # fmt: skip
    found = static_rows(known)
    assert dict(found.select("path", "parameters").iter_rows()) == {
        own("layers.0.attn"): 20, "layers.0.attn.out": 10, "layers.0.norm": 30, "head": 40,
    }  # fmt: skip
    assert found["parameters"].sum() == 100 and found.columns == known.columns
    shared = known.with_columns(parameters=pl.when(pl.col("path") == "").then(70).otherwise("parameters"))
    assert ROOT_NAME not in "".join(static_rows(shared)["path"])


def test_samples_between_layers_are_the_innermost_modules(tree: Tree) -> None:
    times = [2, 6, 30, 61, 125]  # outside, the model, the convolution, the block after it, outside again
    taken = pl.DataFrame({"time_ns": times, "tid": [MAIN] * 5, "cpu_ns": [10] * 5})
    found = attribute_samples(taken, spans(tree.spans), MODULES)
    assert found["layer"].cast(pl.String).to_list() == [
        UNATTRIBUTED, own(ROOT), "block.conv", own("block"), UNATTRIBUTED,
    ]  # fmt: skip
    assert dict(coverage(found).select("where", "samples").iter_rows()) == {
        "layer": 1, "own code": 2, UNATTRIBUTED: 2,
    }  # fmt: skip


def kernels_of(tree: Tree, repeated: bool = False) -> KernelCounts:
    """Two kernels: all that was done, and a quarter of it. ``repeated``: of spans with the same rows one has them."""
    rows = [
        {
            "pass": "engine", "iteration": 0, "span": span, "tid": tid, "kernel": number, "event": "e.instructions",
            "value": value // (4 if number else 1), "provenance": "instrumented",
        }
        for _, span, tid, _, value in tree.counts
        for number in range(2)
    ]  # fmt: skip
    names = pl.DataFrame({"kernel": [0, 1], "domain": "torch", "library": "lib.so", "name": ["gemm", "add"]})
    table = pl.LazyFrame(rows, schema=TABLES["kernel_counts"])
    attribution = attribute(spans(tree.spans), counts(tree.counts), MODULES, RECORD)
    first: dict[object, int] = {}
    like = {number: number for number, *_ in tree.spans}
    if repeated:
        of_spans: dict[int, list[int]] = {}
        for _, span, _, _, value in tree.counts:
            of_spans.setdefault(span, []).append(value)
        like = {number: first.setdefault(tuple(of_spans[number]), number) for number in like}
    others = [("engine", 0, span, other) for span, other in like.items() if span != other]
    known = pl.DataFrame(others, schema=TABLES["repeated_spans"], orient="row")
    table = table.filter(~pl.col("span").is_in(known["span"].implode()))
    return KernelCounts(spans(tree.spans), table, known, names, MODULES, attribution, None)


@given(st.sets(st.tuples(st.sampled_from([None, *LEAVES, own("block"), own(ROOT), UNATTRIBUTED]), st.booleans())))
def test_of_kernels_that_are_listed_all_is_told_in_their_layers(listed: set[tuple[str | None, bool]]) -> None:
    kernels = kernels_of(example())
    rows = [(layer, "gemm" if first else "add", "lib.so", "torch") for layer, first in listed]
    wanted = pl.DataFrame(rows, schema=dict.fromkeys(KERNEL_KEYS, pl.String), orient="row")
    whole = instrumented.as_text(pl.concat(kernels.parts(wanted))) if rows else pl.DataFrame(schema=KERNELS_SCHEMA)
    found = [instrumented.of_those(part, wanted) for part in kernels.of_listed(wanted)]
    order = [*KERNEL_KEYS, "event"]
    expected = whole.join(wanted, on=KERNEL_KEYS, how="semi", nulls_equal=True).sort(order)
    assert pl.concat(found).select(expected.columns).sort(order).equals(expected)


STEP = st.sampled_from([(5, 100, 7), (9, 50, 0)])


@given(st.lists(st.tuples(st.sampled_from(["block.conv", "block.act", "head"]), STEP), max_size=6), STEP, st.data())
def test_layers_that_did_the_very_same_have_what_each_has(
    calls: list[tuple[str, tuple[int, int, int]]], between: tuple[int, int, int], data: st.DataObject
) -> None:
    """Whether rows are written of each span or of one that stands for others; by whomever layers are called."""
    tree = Tree()
    around = data.draw(st.lists(st.sampled_from([ROOT, "block"]), min_size=len(calls), max_size=len(calls)))

    def leaf(path: str, step: tuple[int, int, int]) -> Callable[[int], object]:
        return lambda number: tree.call("layer", path, number, step)

    def block(inside: Callable[[int], object]) -> Callable[[int], object]:
        return lambda number: tree.call("layer", "block", number, between, inside)

    steps = [leaf(*one) if caller == ROOT else block(leaf(*one)) for one, caller in zip(calls, around, strict=True)]

    def model(number: int) -> int:
        return tree.call("layer", ROOT, number, between, *steps)

    tree.call("iteration", "0", None, lambda number: tree.call("stage", "inference", number, between, model))
    every, first = (kernels_of(tree, repeated) for repeated in (False, True))
    order = [*KERNEL_KEYS, "value"]
    found, expected = (instrumented.as_text(one.of_event("e.instructions")).sort(order) for one in (first, every))
    assert found.equals(expected)
    wanted = expected.select(KERNEL_KEYS)
    listed = [
        pl.concat(instrumented.of_those(part, wanted) for part in one.of_listed(wanted)).sort(*order)
        for one in (first, every)
    ]
    assert listed[0].equals(listed[1])


def test_kernels_of_own_code_are_those_that_no_called_module_ran(tree: Tree) -> None:
    found = instrumented.as_text(kernels_of(tree).of_event("e.instructions"))
    gemm = dict(found.filter(kernel="gemm").select("layer", "value").iter_rows())
    assert gemm == {
        None: 2044, "block.conv": 900, "block.act": 300, "head": 550, own("block"): 113, own(ROOT): 60,
        UNATTRIBUTED: 121,
    }  # fmt: skip


def test_what_counts_is_no_kernel_and_in_no_share(tree: Tree) -> None:
    """Its instructions are in no count of a layer."""
    rows = [
        {
            "pass": "engine", "iteration": 0, "span": span, "tid": tid, "kernel": number, "event": "e.instructions",
            "value": value // (1 + number), "provenance": "instrumented",
        }
        for _, span, tid, _, value in tree.counts
        for number in range(2)
    ]  # fmt: skip
    names = pl.DataFrame({"kernel": [0, 1], "domain": ["torch", "own"], "library": ["a.so", "agent.so"], "name": "f"})
    table = pl.LazyFrame(rows, schema=TABLES["kernel_counts"])
    attribution = attribute(spans(tree.spans), counts(tree.counts), MODULES, RECORD)
    found = KernelCounts(spans(tree.spans), table, NONE_REPEATED, names, MODULES, attribution, None).of_event(
        "e.instructions"
    )
    assert set(instrumented.as_text(found)["domain"]) == {"torch"}
    assert set(_large(found)["share"]) == {1.0}


def test_a_root_without_a_name_is_called_the_root() -> None:
    assert own(ROOT) == f"{ROOT_NAME}{OWN}"


def varying() -> tuple[pl.DataFrame, pl.DataFrame]:
    """Three iterations; only the second calls ``head``."""
    rows: list[tuple[int, int | None, int, str, str, int, int]] = []
    amounts = []
    for index in range(3):
        at, first = 1000 * index, 4 * index
        rows += [
            (first, None, index, "stage", "inference", at, at + 100),
            (first + 1, first, index, "layer", ROOT, at, at + 90),
            (first + 2, first + 1, index, "layer", "block.conv", at + 5, at + 40),
        ]
        called = index == 1
        if called:
            rows.append((first + 3, first + 1, index, "layer", "head", at + 41, at + 80))
        amounts += [(index, first + span, MAIN, "cycles", 500) for span in range(3 + called)]
    return spans(rows), counts(amounts)


def test_where_iterations_differ_in_work_the_whole_has_no_figures_across_them() -> None:
    """MACs of the one and the time of the other would make a rate that no processor has."""
    turns = record([(index, False, 0, True) for index in range(3)], [["cycles"]])
    known = MODULES.with_columns(own_macs=pl.when("leaf").then("macs").otherwise(0).cast(pl.Int64))
    attribution = attribute(*varying(), known, turns)
    table = layer_table(known, attribution, independent(), 2)
    assert table.irregular == ("head",)
    macs = dict(table.rows.select("owner", "macs").iter_rows())
    rates = dict(table.metrics.select("owner", "gflops").iter_rows())
    assert (macs[WHOLE], rates[WHOLE]) == (None, None)
    assert macs["head"] == 1000 and rates["head"] > 0
    types = layer_type_table(known, attribution, independent(), 2)
    found = dict(types.metrics.select("owner", "gflops").iter_rows())
    assert found["Linear"] is None and found["Conv2d"] > 0
