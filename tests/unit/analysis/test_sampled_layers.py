"""What samples tell of a layer: its threads, with their absences and roles."""

from __future__ import annotations

import dataclasses

import polars as pl
import pytest

from hwprof.analysis import kernel_sums
from hwprof.analysis.owners import UNATTRIBUTED
from hwprof.analysis.sampled_layers import MUCH_UNSAMPLED, layer_rows
from hwprof.analysis.states import BARRIER, BUSY, WAITING
from tests.support.made_up_passes import times_of
from tests.support.made_up_threads import MAIN, MS, OTHER, WORKER, Stretch

LONG = 400 * MS
POOL: dict[int, list[Stretch]] = {
    MAIN: [(2 * MS, BUSY), (LONG - 2 * MS, "lock")],
    WORKER: [(5 * MS, WAITING), (LONG - 5 * MS, BARRIER)],
    OTHER: [(LONG // 2, BUSY), (LONG // 2, "lock")],
}
"""A model whose own thread does its work."""


def test_every_thread_of_a_layer_has_its_own_absences_and_the_role_that_the_run_knows() -> None:
    """The layer's sum is of those that work in it alone."""
    found = times_of(POOL, [(0, LONG)], asked=1)
    (layer,) = layer_rows(found.taken)
    off = {one["tid"]: one["off_cpu_ns"] for one in layer["threads"]}
    assert off == {MAIN: LONG - 2 * MS, WORKER: LONG - 5 * MS, OTHER: LONG // 2}
    assert layer["off_cpu_ns"] < sum(off.values())
    roles = {one["tid"]: one["role"] for one in layer["threads"]}
    assert roles == {MAIN: "calling", WORKER: "team", OTHER: "other"}
    assert roles == {one["tid"]: one["role"] for one in found.by_thread}


def test_samples_are_no_layers_where_nobody_knows_when_layers_ran() -> None:
    """They are the whole's all the same."""
    (layer,) = layer_rows(times_of(POOL, [(0, LONG)], asked=1).taken)
    found = times_of(POOL, [(0, LONG)], asked=1, laid_out=True)
    assert layer["path"] == "a" and "a" not in [row["path"] for row in layer_rows(found.taken)]
    assert found.taken.inside.height > 10 and set(found.taken.inside["layer"].cast(pl.String)) == {UNATTRIBUTED}


def test_without_switches_nobody_knows_of_absences() -> None:
    taken = times_of(POOL, [(0, LONG)], asked=1).taken
    (layer,) = layer_rows(dataclasses.replace(taken, switches=taken.switches.clear()))
    rows = layer["threads"]
    assert {(row["off_cpu_ns"], row["preempted_ns"]) for row in [layer, *rows]} == {(None, None)}
    (one, *_) = kernel_sums.threads([rows[0], rows[0]])
    assert (one["off_cpu_ns"], one["busy_ns"]) == (None, pytest.approx(2 * rows[0]["busy_ns"]))


def test_the_calling_threads_operators_are_of_its_own_samples_and_its_teams() -> None:
    """What a thread of the model's own runs meanwhile, nobody recorded."""
    threads: dict[int, list[Stretch]] = {
        MAIN: [(LONG, BUSY)],
        WORKER: [(5 * MS, WAITING), (LONG - 5 * MS, BUSY)],
        OTHER: [(LONG, BUSY)],
    }
    found = times_of(threads, [(0, LONG)], operators=[("aten::erf", 0, LONG)]).taken
    by_thread = dict(found.inside.group_by("tid").agg(pl.col("operator").cast(pl.String).unique()).iter_rows())
    assert by_thread == {MAIN: ["aten::erf"], WORKER: ["aten::erf"], OTHER: [None]}
    (layer,) = layer_rows(found)
    shares = {one["operator"]: one["share"] for one in layer["operators"]}
    assert shares == {"aten::erf": pytest.approx(2 / 3), None: pytest.approx(1 / 3)}
    assert found.others_share() == pytest.approx(1 / 3)


@pytest.mark.parametrize(("late_ns", "known"), [(0, True), (LONG // 4, False)])
def test_how_threads_share_work_is_not_known_of_threads_that_were_sampled_late(late_ns: int, known: bool) -> None:
    """A thread that begins with the layer's work has no sample for the first milliseconds."""
    threads: dict[int, list[Stretch]] = {MAIN: [(LONG, BUSY)], OTHER: [(LONG, BUSY)]}
    taken = times_of(threads, [(0, LONG)], asked=2).taken
    since_ns = taken.inside["time_ns"].min()
    assert isinstance(since_ns, int)
    born = pl.when(tid=OTHER).then(since_ns + 1).otherwise("begin_ns")
    before = (pl.col("tid") != OTHER) | (pl.col("time_ns") - pl.col("cpu_ns") >= since_ns + 1 + late_ns)
    new = dataclasses.replace(taken, inside=taken.inside.filter(before), lives=taken.lives.with_columns(begin_ns=born))
    (layer,) = layer_rows(new)
    assert (layer["efficiency"] is not None) is known
    assert (layer["imbalance"] is not None) is known
    assert (layer["unsampled_share"] >= MUCH_UNSAMPLED) is not known
