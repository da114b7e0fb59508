"""A metric's formula as polars computes it: arithmetic of bounded size, and nothing else that SQL could say.

Formulas are kept in ``run.json``, which may say anything. polars takes minutes for an expression of thousands of parts,
and dies where it is deeper than its stack; ``NULLIF`` and ``BETWEEN`` put their operand in twice.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

import polars as pl

from hwprof.hardware.metrics import operands

FUNCTIONS: Final = frozenset({"ABS", "COALESCE", "GREATEST", "LEAST", "NULL", "NULLIF"})
"""What a formula may name beside its operands."""

MOST_PARTS: Final = 1000
"""Names, numbers and signs of a formula; the catalogue's longest, over two kinds of core, has 109."""

MOST_FUNCTIONS: Final = 4
"""Within one another; the catalogue's have one."""

_PART: Final = re.compile(r'\s*(?:"[^"]+"|\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|[-+*/(),]|(?P<function>[A-Za-z]+))\s*')


@cache
def expression(formula: str) -> pl.Expr:
    """The formula's value as Float64, made of its operands and of nothing else.

    Raises ``ValueError`` and ``polars.exceptions.PolarsError`` (or ``PanicException``) where it is no such formula.
    """
    _check(formula)
    value = pl.sql_expr(formula).cast(pl.Float64)
    pl.LazyFrame(schema=dict.fromkeys(operands(formula), pl.Float64)).select(value).collect_schema()
    return value


def _check(formula: str) -> None:
    place = parts = functions = 0
    while place < len(formula):
        part = _PART.match(formula, place)
        if part is None:
            raise ValueError("it is no arithmetic over operands")
        place, parts = part.end(), parts + 1
        if name := part["function"]:
            functions += 1
            if name.upper() not in FUNCTIONS:
                raise ValueError(f"{name} is none of {', '.join(sorted(FUNCTIONS))}")
        if parts > MOST_PARTS or functions > MOST_FUNCTIONS:
            raise ValueError(f"it has more than {MOST_PARTS} parts, or {MOST_FUNCTIONS} functions")
