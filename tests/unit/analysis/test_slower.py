"""How much longer iterations take in which somebody looks closely."""

from __future__ import annotations

from hwprof.analysis.slower import Slower, slower
from tests.support.small_tables import record, spans


def test_what_looking_costs_is_told_by_its_own_iterations() -> None:
    timed = record([(0, False, None, False), (1, False, None, False)], [])
    lengths = [(0, None, 0, "iteration", "", 0, 100), (1, None, 1, "iteration", "", 200, 300)]
    own = [(0, None, 0, "iteration", "", 0, 900), (1, None, 1, "iteration", "", 0, 150)]
    own.append((2, None, 2, "iteration", "", 0, 250))
    assert slower(spans(own), [1, 2], spans(lengths), timed) == Slower(2.0, 1.5, 2.5)
    assert slower(spans(own), [], spans(lengths), timed) is None
    assert slower(spans(own), [1, 2], spans([]), timed) is None
