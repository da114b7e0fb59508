"""Calls of functions by stage, and how much longer the iterations took in which they were counted."""

from __future__ import annotations

import msgspec
import polars as pl

from hwprof.analysis.python_calls import SCHEMA, Slower, python_calls, slower
from hwprof.analysis.python_stacks import Looks
from hwprof.run.schema import TABLES
from tests.support.small_tables import record, spans

LOOKS = Looks(profiler=["/lib/hwprof"], framework=["/lib/torch"])


def test_sums_are_of_one_iteration_and_shares_of_the_stage() -> None:
    rows = [
        ("inference", "f", "/net.py", 3, False, 6, 2, 600, 900),
        ("inference", "conv2d", "~", 0, False, 2, 2, 300, 300),
        ("inference", "hook", "/lib/hwprof/hooks.py", 9, None, 2, 2, 60, 60),
        ("inference", "clock", "~", 0, True, 4, 4, 40, 40),
        ("nms", "call", "/lib/torch/m.py", 1, False, 2, 2, 0, 0),
    ]
    names = [name for name in TABLES["python_calls"].names() if name != "pass"]
    table = pl.DataFrame(rows, schema=names, orient="row").with_columns(**{"pass": pl.lit("trace")})
    found = python_calls(table, LOOKS, 2)
    assert found.schema == SCHEMA
    assert found["origin"].to_list() == ["pipeline", "builtin", "profiler", "profiler", "framework"]
    first = found.row(0, named=True)
    assert (first["calls"], first["primitive_calls"], first["self_ns"], first["cumulative_ns"]) == (3, 1, 300, 450)
    assert found["share"].to_list() == [0.6, 0.3, 0.06, 0.04, None]


def test_what_counting_costs_is_told_by_its_own_iterations() -> None:
    timed = record([(0, False, None, False), (1, False, None, False)], [])
    counted = record([(0, True, None, False), (1, True, None, False), (2, True, None, False)], [])
    counted.iterations = [
        msgspec.structs.replace(one, alone_for="cprofile" if one.index else None) for one in counted.iterations
    ]
    lengths = [(0, None, 0, "iteration", "", 0, 100), (1, None, 1, "iteration", "", 200, 300)]
    own = [(0, None, 0, "iteration", "", 0, 900), (1, None, 1, "iteration", "", 0, 150)]
    own.append((2, None, 2, "iteration", "", 0, 250))
    assert slower(spans(own), counted, "cprofile", spans(lengths), timed) == Slower(2.0, 1.5, 2.5)
    assert slower(spans(own), counted, "another", spans(lengths), timed) is None
    assert slower(spans(own), counted, "cprofile", spans([]), timed) is None
