"""Calls of functions by stage."""

from __future__ import annotations

import polars as pl

from hwprof.analysis.python_calls import SCHEMA, python_calls
from hwprof.analysis.python_stacks import Looks
from hwprof.run.schema import TABLES

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
