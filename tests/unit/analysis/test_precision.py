"""How well layers' times are known is told by the one that is known worst."""

from __future__ import annotations

import polars as pl
import pytest

from hwprof.analysis.precision import FEWEST, known_worst


def layers(*rows: tuple[str, bool, float, int, float, float | None]) -> pl.DataFrame:
    schema = {
        "path": pl.String, "leaf": pl.Boolean, "share": pl.Float64, "iterations": pl.Int64,
        "time_median_ns": pl.Float64, "time_mad_ns": pl.Float64,
    }  # fmt: skip
    return pl.DataFrame(rows, schema=schema, orient="row")


def test_it_is_the_worst_of_the_layers_that_matter() -> None:
    found = known_worst(
        layers(
            ("a", True, 0.5, 14, 1e6, 1e4),
            ("b", True, 0.4, 14, 1e6, 3e4),
            ("small", True, 0.004, 14, 1e3, 5e2),
            ("unattributed", False, 0.05, 14, 1e5, 5e4),
            ("whole", False, 1.0, 14, 2e6, 1e6),
            ("seldom", True, 0.05, FEWEST - 1, 1e5, 5e4),
            ("none", True, 0.05, 14, 0.0, 0.0),
            ("once", True, 0.05, 14, 1e5, None),
        )
    )
    assert found is not None and found.layer == "b"
    # Student's t for 12 degrees of freedom, the widest that 13 have; a MAD is 1/1.4826 sigma, a median 1.2533 means
    assert found.error == pytest.approx(2.179 * 1.253314 * 1.482602 * 0.03 / 14**0.5)


def test_what_a_module_does_itself_is_to_be_known_too() -> None:
    """Of some models it is nearly all: their leaves are not called."""
    found = known_worst(layers(("a", True, 0.2, 14, 1e6, 1e4), ("block (own)", False, 0.8, 14, 4e6, 4e5)))
    assert found is not None and found.layer == "block (own)"


def test_of_few_iterations_it_is_not_known() -> None:
    assert known_worst(layers(("a", True, 1.0, FEWEST - 1, 1e6, 1e4))) is None
    assert known_worst(layers()) is None
