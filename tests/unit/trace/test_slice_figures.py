"""Counts and metrics of slices, as a reader of the trace finds them."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import polars as pl
from hypothesis import given

from hwprof.analysis.large_tables import numbered
from hwprof.run.process_events import WHOLE_PROCESS_TID
from hwprof.run.schema import conform
from hwprof.trace.slice_figures import NAMES, Known, SliceFigures
from hwprof.trace.slice_metrics import PLAIN, MetricOrigins
from tests.support import trace_decoding as decoding

MAIN, WORKER, OTHER = 10, 11, 12
SPAN = 7


def count(
    event: str, value: int, tid: int = MAIN, running_ns: int = 100, provenance: str = "measured", span: int = SPAN
) -> dict[str, Any]:
    return {
        "span": span, "tid": tid, "event": event, "value": value,
        "enabled_ns": 100, "running_ns": running_ns, "provenance": provenance,
    }  # fmt: skip


def found(
    counts: list[dict[str, Any]],
    derived: list[dict[str, Any]] | None = None,
    origins: MetricOrigins = PLAIN,
    spans: list[int] | None = None,
) -> list[dict[str, Any]]:
    """Of each span what a reader decodes."""
    rows = numbered(conform("counts", pl.DataFrame(counts or None)), "event", "provenance")
    metrics = pl.DataFrame(derived or None, schema=None if derived else {"span": pl.Int64})
    known = Known(rows.sort("span", maintain_order=True), metrics.sort("span"))
    file, sequence = decoding.sequence()
    numbers = spans or [SPAN]
    encoded = SliceFigures({MAIN, None}, {"span"}, origins).encoded(known, np.array(numbers), sequence.annotations)
    beginning = sequence.beginning("slice")
    sequence.write_encoded(range(len(encoded)), [beginning + further for further in encoded])
    return [event.annotations for event in decoding.events(file)]


def of(*counts: dict[str, Any]) -> dict[str, Any]:
    (facts,) = found(list(counts))
    return facts


def test_counts_are_summed_and_kept_apart_by_role_and_worker() -> None:
    facts = of(count("cycles", 10), count("cycles", 20, WORKER), count("cycles", 30, OTHER))
    assert facts["counts"] == {"cycles": 60}
    assert facts["main"] == {"cycles": 10}
    assert facts["workers"] == {"cycles": 50}
    assert facts["worker"] == {"cycles": {f"tid_{WORKER}": 20, f"tid_{OTHER}": 30}}
    assert facts["provenance"] == {"cycles": "measured"}
    assert "running_share" not in facts


def test_one_worker_is_the_workers() -> None:
    assert "worker" not in of(count("cycles", 10), count("cycles", 20, WORKER))


def test_workers_of_one_event_are_told_apart_in_all() -> None:
    """Also where another event had one of them."""
    facts = of(count("a", 1, WORKER), count("a", 2, OTHER), count("b", 3, OTHER))
    assert facts["worker"] == {"a": {"tid_11": 1, "tid_12": 2}, "b": {"tid_12": 3}}


def test_the_process_is_no_thread() -> None:
    facts = of(count("context-switches", 4, WHOLE_PROCESS_TID))
    assert facts["counts"] == {"context_switches": 4}
    assert "main" not in facts and "workers" not in facts


def test_running_share_is_told_where_the_kernel_multiplexed() -> None:
    facts = of(count("cycles", 10, running_ns=50), count("cycles", 10, WORKER), count("instructions", 5))
    assert facts["running_share"] == {"cycles": 0.75}
    assert "running_share" not in of(count("cycles", 1) | {"enabled_ns": 0, "running_ns": 0})


def test_mixed_provenance_is_told() -> None:
    facts = of(count("cycles", 1), count("a", 1), count("cycles", 1, WORKER, provenance="instrumented"))
    assert facts["provenance"] == {"cycles": "instrumented, measured", "a": "measured"}


def test_metrics_go_by_their_names_and_say_where_they_come_from() -> None:
    """What is made of another pass's counts names that pass; a metric does not take the place of another argument."""
    origins = MetricOrigins({"gflops": "modelled", "cpi": "counts of pass exact"}, frozenset({"cpi"}), "exact")
    derived: list[dict[str, Any]] = [
        {"span": 1, "cpi": 1.5, "gflops": 3.0, "counts": 9.0},
        {"span": 2, "cpi": None, "gflops": 3.0, "counts": None},
    ]
    both, alone, none = found([], derived, origins, [1, 2, 3])
    assert (both["cpi"], both["gflops"], both["counts_2"]) == (1.5, 3.0, 9.0)
    assert both["counts_pass"] == "exact"
    assert both["metric_provenance"] == {"gflops": "modelled", "cpi": "counts of pass exact"}
    assert alone == {"gflops": 3.0, "metric_provenance": {"gflops": "modelled"}} and none == {}


def test_all_names_are_taken() -> None:
    origins = MetricOrigins({"cpi": "counts of pass exact"}, frozenset({"cpi"}), "exact")
    counts = [count("a", 1, running_ns=50), count("a", 2, WORKER), count("a", 3, OTHER)]
    (facts,) = found(counts, [{"span": SPAN, "cpi": 1.5}], origins)
    assert facts.keys() - {"cpi"} == NAMES


ROWS = st.lists(
    st.builds(
        count,
        st.sampled_from(["a", "b-c", "d"]),
        st.integers(-(1 << 60), 1 << 60) | st.integers(0, 300),
        st.sampled_from([MAIN, WORKER, OTHER, WHOLE_PROCESS_TID]),
        span=st.integers(0, 4),
    ),
    max_size=30,
    unique_by=lambda row: (row["span"], row["event"], row["tid"]),
)


@given(ROWS, st.permutations(range(5)))
def test_each_slice_has_its_own_ones_whatever_their_order(rows: list[dict[str, Any]], spans: list[int]) -> None:
    def summed(span: int, *tids: int) -> dict[str, int]:
        sums: dict[str, int] = {}
        for row in rows:
            if row["span"] == span and row["tid"] in tids:
                name = row["event"].replace("-", "_")
                sums[name] = sums.get(name, 0) + row["value"]
        return sums

    for span, facts in zip(spans, found(rows, spans=spans), strict=True):
        assert facts.get("counts", {}) == summed(span, MAIN, WORKER, OTHER, WHOLE_PROCESS_TID)
        assert facts.get("main", {}) == summed(span, MAIN)
        assert facts.get("workers", {}) == summed(span, WORKER, OTHER)
