"""Whose a line is, and which modules' classes have it."""

from __future__ import annotations

import polars as pl

from hwprof.analysis.line_costs import SCHEMA, line_costs
from hwprof.analysis.python_stacks import Looks
from hwprof.run.schema import conform, empty

LOOKS = Looks(profiler=["/lib/hwprof"], framework=["/lib/torch"])


def lines(*rows: tuple[str, int, float]) -> pl.DataFrame:
    """File, line and share in native code."""
    table = pl.DataFrame(rows, schema=["file", "line", "native_share"], orient="row")
    others = {name: pl.lit(0) for name in ("python_share", "system_share", "core_utilization", "allocated_bytes")}
    zero = ("peak_bytes", "python_allocated_share", "copy_bytes_per_s")
    given = {"pass": pl.lit("scalene"), "samples": pl.lit(50), **others, **{name: pl.lit(0) for name in zero}}
    return conform("python_line_costs", table.with_columns(**given))


def code(*rows: tuple[str, str, int, int]) -> pl.DataFrame:
    names = ["path", "file", "first_line", "last_line"]
    table = pl.DataFrame(rows, schema=names, orient="row")
    return conform("module_code", table.with_columns(function=pl.lit("Block.forward")))


def test_a_line_is_of_all_modules_whose_class_has_it_and_of_no_other_file_s() -> None:
    found = line_costs(
        lines(("/net.py", 12, 0.5), ("/net.py", 14, 0.3), ("/other.py", 12, 0.1), ("/net.py", 99, 0.05)),
        LOOKS,
        code(("b", "/net.py", 10, 14), ("a", "/net.py", 10, 14), ("a", "/net.py", 12, 13), ("c", "/other.py", 1, 12)),
    )
    assert found.schema == SCHEMA
    assert found.select("line", "modules").rows() == [(12, ["b", "a"]), (14, ["b", "a"]), (12, ["c"]), (99, [])]


def test_lines_of_a_run_that_knows_no_code_are_there_all_the_same() -> None:
    found = line_costs(lines(("/lib/torch/x.py", 1, 0.1), ("/n.py", 2, 0.9)), LOOKS, empty("module_code"))
    assert found["origin"].to_list() == ["pipeline", "framework"] and found["modules"].to_list() == [[], []]


def test_few_samples_that_carry_much_are_known_no_better_than_by_their_number() -> None:
    """Of a long call of native code Scalene hears late, and once."""
    many = lines(("/n.py", 1, 0.5), ("/n.py", 2, 0.5)).with_columns(samples=pl.Series([393, 7], dtype=pl.Int64))
    widths = {
        row["line"]: row["share_high"] - row["share_low"]
        for row in line_costs(many, LOOKS, empty("module_code")).iter_rows(named=True)
    }
    assert widths[1] < 0.11 and widths[2] > 0.4
