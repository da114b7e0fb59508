"""Iterations that others disturbed are left out where enough remain, and a noisy run is known as one."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import polars as pl
import pytest

from hwprof.analysis.attribution import TIMES_SCHEMA, Attribution, attribute
from hwprof.analysis.disturbed import ENOUGH, is_disturbed
from hwprof.analysis.iterations import select
from hwprof.analysis.noise import Noise, drift, noise, stolen_share
from hwprof.analysis.owners import WHOLE
from hwprof.run.manifest import Disturbance, IterationRecord, PassRecord
from hwprof.run.schema import empty
from tests.support import small_tables as example

MS = 1_000_000
CALM = Disturbance(elapsed_ns=40 * MS, preemptions=2, waited_ns=MS, stolen_ns=0)
BUSY = Disturbance(elapsed_ns=90 * MS, preemptions=9, waited_ns=45 * MS, stolen_ns=0)


def iteration(index: int, found: Disturbance | None, event_set: int | None = None) -> IterationRecord:
    """One that counts its layers where it has an event set."""
    return IterationRecord(index, False, event_set, event_set is not None, disturbance=found)


@pytest.mark.parametrize(
    ("found", "disturbed"),
    [
        (CALM, False),
        (BUSY, True),
        (Disturbance(40 * MS, 0, 30 * MS, 0), False),  # woken late many times, by nobody else
        (Disturbance(40 * MS, 0, 0, 10 * MS), False),  # one tick, of which most may be older
        (Disturbance(40 * MS, 0, 0, 20 * MS), True),
        (Disturbance(1000 * MS, 3, 49 * MS, 10 * MS), False),
        (Disturbance(1000 * MS, 3, 51 * MS, 10 * MS), True),
        (Disturbance(1000 * MS, 3, 80 * MS, 0, own_ns=31 * MS), False),  # what waited for hwprof's own is none
        (Disturbance(1000 * MS, 3, 82 * MS, 0, own_ns=31 * MS), True),
        (Disturbance(1000 * MS, 3, 10 * MS, 70 * MS, own_ns=40 * MS), True),  # it makes up for nobody's else
        (Disturbance(40 * MS, 3, None, None), False),
        (None, False),
    ],
)
def test_an_iteration_is_disturbed_by_its_own_evidence(found: Disturbance | None, disturbed: bool) -> None:
    assert is_disturbed(iteration(0, found)) is disturbed


def test_disturbed_ones_are_left_out_where_enough_others_remain() -> None:
    records = [iteration(index, BUSY if index in (1, 4) else CALM) for index in range(6)]
    found = select(records)
    assert (found.timed, found.left_out, found.all) == ((0, 2, 3, 5), (1, 4), (0, 2, 3, 5))
    everything = select(records, disturbed_too=True)
    assert (everything.timed, everything.left_out) == (tuple(range(6)), ())


@pytest.mark.parametrize(("others_ms", "among"), [(None, False), (0, True), (100, True), (150, False), (400, False)])
def test_threads_wait_for_one_another_where_others_had_no_processor(others_ms: int | None, among: bool) -> None:
    """Six iterations in which threads waited 45 ms each."""
    record = PassRecord(name="measure", iterations=[iteration(index, BUSY) for index in range(6)])
    record.others_ns = others_ms * MS if others_ms is not None else None
    found = noise(record, attribute(example.spans([]), empty("counts"), empty("layers"), record), 2, 2)
    assert found.among_themselves is among


def test_where_too_few_remain_all_are_kept() -> None:
    records = [iteration(index, CALM if index < ENOUGH - 1 else BUSY) for index in range(8)]
    assert select(records).timed == tuple(range(8))
    assert select(records).left_out == ()


def test_each_event_set_and_the_timed_ones_need_enough_of_their_own() -> None:
    timed = [iteration(index, CALM if index else BUSY) for index in range(4)]
    first = [iteration(10 + index, CALM if index else BUSY, 0) for index in range(4)]
    second = [iteration(20 + index, CALM if index else BUSY, 1) for index in range(2)]
    found = select([*timed, *first, *second])
    assert found.disturbed == (20,), "kept all the same"
    assert found.timed == (1, 2, 3)
    assert found.counted == (11, 12, 13, 20, 21)
    assert found.left_out == (0, 10)


def test_times_and_counts_are_of_those_that_remain() -> None:
    """A quiet run's layer takes 10 ms; beside others it takes 100 ms in half of the iterations."""
    spans: list[tuple[int, int | None, int, str, str, int, int]] = []
    records = []
    for index in range(8):
        begin, long = index * 1000 * MS, index % 2 == 1
        end = begin + (100 * MS if long else 10 * MS + index * 1000)
        spans.append((2 * index, None, index, "stage", "inference", begin, end))
        spans.append((2 * index + 1, 2 * index, index, "layer", "a", begin, end))
        records.append(iteration(index, BUSY if long else CALM))
    layers = example.layers([("a", "Conv2d", True)])
    found = attribute(example.spans(spans), empty("counts"), layers, PassRecord(name="measure", iterations=records))
    of_layer = found.times.filter(pl.col("owner") == "a")
    assert of_layer["iteration"].to_list() == [0, 2, 4, 6]
    median = of_layer["time_ns"].median()
    assert isinstance(median, float)
    assert median == pytest.approx(10 * MS, rel=0.05)


def found_in(times_ns: Sequence[int], disturbances: Sequence[Disturbance], stolen_ns: int | None = 0) -> Noise:
    """Of iterations that only timed their layers, on two processors and threads."""
    records = [iteration(index, one) for index, one in enumerate(disturbances)]
    record = PassRecord(name="measure", iterations=records, measured_ns=sum(times_ns), stolen_ns=stolen_ns)
    rows = [(WHOLE, index, False, 1, ns) for index, ns in enumerate(times_ns)]
    iterations = select(records)
    kept = pl.DataFrame(rows, schema=TIMES_SCHEMA, orient="row").filter(pl.col("iteration").is_in(list(iterations.all)))
    return noise(record, Attribution(kept, empty("counts"), iterations, "inference", 0), 2, 2)


def test_a_quiet_run_has_nothing_to_warn_of() -> None:
    found = found_in([40 * MS + (index % 3) * 1000 for index in range(12)], [CALM] * 12)
    assert not found.others and not found.spread and found.drift is None
    assert (found.disturbed, found.timed_left_out) == (0, 0)
    assert found.preempted_share == pytest.approx(1 / 80)
    assert found.median_over_min == pytest.approx(1.0, abs=0.001)


@pytest.mark.parametrize(
    ("times_ms", "slow", "spread"),
    [
        ([10] * 9 + [30] * 4, 4, True),  # two amounts of work, and the median is the smaller one's
        ([10] * 12 + [30], 1, False),  # an outlier
        ([10] * 5 + [30] * 8, 0, True),  # the median is the larger one's
        ([10, 11, 10, 11, 10], 0, False),
    ],
)
def test_a_model_of_two_amounts_of_work_varies_whichever_the_median_is_of(
    times_ms: list[int], slow: int, spread: bool
) -> None:
    found = found_in([ms * MS for ms in times_ms], [CALM] * len(times_ms))
    assert (found.slow, found.spread) == (slow, spread)


def test_a_process_that_lost_processors_meanwhile_was_not_disturbed_by_others() -> None:
    """As ``taskset`` does it: its own threads wait for one another."""
    free, narrow = (msgspec.structs.replace(one, processors=n) for one, n in ((CALM, 2), (BUSY, 1)))
    found = found_in([40 * MS] * 8 + [90 * MS] * 4, [free] * 8 + [narrow] * 4)
    assert (found.narrowed, found.least_processors, found.others) == (4, 1, True)
    assert found.mean_ns == pytest.approx((40 * 8 + 90 * 4) / 12 * MS), "those left out have taken their time, too"
    bound = found_in([40 * MS] * 12, [msgspec.structs.replace(CALM, processors=1)] * 12)
    assert (bound.narrowed, bound.least_processors, bound.others) == (0, None, False), "as OMP_PROC_BIND does it"
    assert found_in([40 * MS] * 12, [CALM] * 12).narrowed == 0, "an older version did not tell"


def test_what_others_took_is_a_share_of_all_threads_time() -> None:
    found = found_in([90 * MS] * 12, [BUSY] * 12, stolen_ns=216 * MS)
    assert found.preempted_share == pytest.approx(0.25)
    assert found.stolen_share == pytest.approx(0.1)
    assert found.others
    assert (found.disturbed, found.timed, found.timed_left_out) == (12, 12, 0)
    assert (found.disturbed_iterations, found.left_out_iterations) == (tuple(range(12)), ())


def test_waits_without_preemptions_are_nobodys_doing() -> None:
    """A thread that is woken waits for a moment: it is no part of what others took."""
    woken = Disturbance(elapsed_ns=MS, preemptions=0, waited_ns=MS // 2, stolen_ns=0)
    found = found_in([MS] * 12, [woken] * 12)
    assert (found.preempted_share, found.disturbed, found.others) == (0, 0, False)


def test_counted_iterations_are_left_out_by_themselves() -> None:
    """Timed and counted in turn: 1 of 6 timed and 2 of 6 counted ones are disturbed."""
    made = [iteration(index, BUSY if index in (1, 2, 3) else CALM, 0 if index % 2 else None) for index in range(12)]
    found = noise(PassRecord(name="measure", iterations=made), attributed(made), 2, 2)
    assert (found.timed, found.timed_left_out, found.counted, found.counted_left_out) == (5, 1, 4, 2)
    assert found.left_out_iterations == (1, 2, 3)
    counted = [one for one in made if one.layers_counted]
    found = noise(PassRecord(name="measure", iterations=counted), attributed(counted), 2, 2)
    assert (found.timed, found.timed_left_out, found.counted, found.counted_left_out) == (4, 2, 4, 2)


def attributed(records: Sequence[IterationRecord]) -> Attribution:
    """Without any time."""
    return Attribution(pl.DataFrame(schema=TIMES_SCHEMA), empty("counts"), select(records), "inference", 0)


def test_stolen_time_alone_makes_a_run_noisy() -> None:
    assert found_in([40 * MS] * 5, [replaced(CALM, waited_ns=0)] * 5, stolen_ns=24 * MS).others
    assert not found_in([40 * MS] * 5, [replaced(CALM, waited_ns=0)] * 5, stolen_ns=16 * MS).others


def replaced(found: Disturbance, waited_ns: int) -> Disturbance:
    return Disturbance(found.elapsed_ns, found.preemptions, waited_ns, found.stolen_ns)


def test_one_that_times_are_of_makes_a_run_noisy_however_many_threads_it_has() -> None:
    """A model of one thread where sixteen are asked for: a share of all of them is small."""
    records = [iteration(index, BUSY if index < 2 else CALM) for index in range(4)]
    record = PassRecord(name="measure", iterations=records)
    found = noise(record, attributed(records), 16, 16)
    assert found.preempted_share is not None and found.preempted_share < 0.05
    assert (found.timed, found.timed_disturbed, found.others) == (4, 2, True)
    left_out = [iteration(index, BUSY if index < 2 else CALM) for index in range(20)]
    found = noise(PassRecord(name="measure", iterations=left_out), attributed(left_out), 16, 16)
    assert (found.timed, found.timed_disturbed, found.others) == (18, 0, False)


def test_what_is_left_out_is_said_and_the_spread_is_that_of_the_rest() -> None:
    times = [300 * MS if index % 2 else 40 * MS for index in range(12)]
    found = found_in(times, [BUSY if index % 2 else CALM for index in range(12)])
    assert (found.disturbed, found.timed, found.timed_left_out) == (6, 6, 6)
    assert found.disturbed_iterations == found.left_out_iterations == (1, 3, 5, 7, 9, 11)
    assert not found.spread
    assert found_in(times, [CALM] * 12).spread


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        (list(range(100, 124, 2)), 119 / 103 - 1),
        (list(range(122, 98, -2)), 103 / 119 - 1),
        ([100, 130] * 6, None),
        ([100] * 12, None),
        ([100 + index / 10 for index in range(12)], None),  # too small
        ([100, 200, 300, 400], None),  # too few
    ],
)
def test_a_drift_is_a_trend_that_chance_does_not_give(times: list[int], expected: float | None) -> None:
    assert drift(times) == (None if expected is None else pytest.approx(expected))


def test_an_older_run_without_evidence_is_no_noisy_one() -> None:
    made = example.Example()
    assert all(one.disturbance is None for one in made.record.iterations)
    found = noise(made.record, attribute(made.spans, made.counts, made.layers, made.record), 2, 2)
    assert (found.preempted_share, found.stolen_share, found.disturbed, found.others) == (None, None, 0, False)


def test_stolen_time_is_a_share_of_the_threads_time_and_not_of_idle_processors() -> None:
    record = PassRecord(name="measure", iterations=[iteration(0, CALM)], measured_ns=100 * MS, stolen_ns=80 * MS)
    assert stolen_share(record, 4, 64) == pytest.approx(0.2)
    assert stolen_share(record, 8, 4) == pytest.approx(0.2)
    assert stolen_share(record, None, 8) == pytest.approx(0.1)
    assert stolen_share(record, 2, 0) == pytest.approx(0.8)  # a damaged run's machine has no processors
