"""Formulas are kept in run.json, which may say anything."""

from __future__ import annotations

import polars as pl
import pytest

from hwprof.analysis.formulas import MOST_FUNCTIONS, MOST_PARTS, expression

FRAME = pl.DataFrame({"a": [6.0], "cpu/event=0xc7,umask=0x80/u": [2.0]})


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ('"a" / 4', 1.5),
        ('1e-3 * ("a" - 2.5) + 0.5', 0.5035),
        ('NULLIF("a", 6)', None),
        ('COALESCE(NULLIF("a", 6), 1) / "cpu/event=0xc7,umask=0x80/u"', 0.5),
        ("NULL", None),
    ],
)
def test_arithmetic_has_a_value(formula: str, value: float | None) -> None:
    found = FRAME.select(expression(formula)).item()
    assert found == (pytest.approx(value) if value is not None else None)


@pytest.mark.parametrize(
    "formula",
    [
        "+".join(['"a"'] * 20_000),
        "+".join(["1"] * MOST_PARTS),
        "ABS(" * (MOST_FUNCTIONS + 1) + '"a"' + ")" * (MOST_FUNCTIONS + 1),
        '"a"' + " BETWEEN 1 AND 2" * 40,
        "CASE WHEN 1 > 2 THEN 3 END",
        "SUM(1)",
        "'" + "x" * 100 + "'",
        "1; 2",
    ],
    ids=lambda formula: formula[:12],
)
def test_what_is_no_arithmetic_of_bounded_size_is_never_given_to_polars(
    formula: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def given(_: str) -> None:
        raise AssertionError("it was given to polars, which may not survive it")

    monkeypatch.setattr(pl, "sql_expr", given)
    with pytest.raises(ValueError, match=r"arithmetic|none of|more than"):
        expression(formula)
