"""What the comparisons of a quiet and a busy machine compare."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from scripts.benchmarks import tables
from scripts.cpi_under_load import cpi_of_layers, overlap


def layer(path: str, cpi: float | None, low: float | None = None, high: float | None = None) -> dict[str, Any]:
    return {"path": path, "cpi": cpi, "cpi_low": low, "cpi_high": high, "samples": 9}


@pytest.mark.parametrize(
    ("one", "other", "agree"),
    [((1.0, 2.0), (2.0, 3.0), True), ((1.0, 2.0), (2.1, 3.0), False), ((1.0, 5.0), (2.0, 3.0), True)],
)
def test_intervals_overlap_whichever_comes_first(
    one: tuple[float, float], other: tuple[float, float], agree: bool
) -> None:
    first, second = layer("a", 1.5, *one), layer("a", 2.5, *other)
    assert overlap(first, second) == overlap(second, first) == agree


def test_layers_without_a_figure_or_its_interval_are_not_compared() -> None:
    rows = [layer("a", None), layer("b", 1.0), layer("c", 1.0, 0.9, 1.1)]
    assert list(cpi_of_layers({"kernels": {"layers": rows}})) == ["c"]
    assert cpi_of_layers({"kernels": None}) == {}


def test_a_page_names_the_command_that_made_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of a script that is no benchmark, and of a package."""
    for module, named in (("scripts.zoo", "scripts.zoo"), ("scripts.benchmarks.__main__", "scripts.benchmarks")):
        monkeypatch.setitem(sys.modules, "__main__", SimpleNamespace(__spec__=SimpleNamespace(name=module)))
        monkeypatch.setattr(sys, "argv", ["ignored.py", "--model", "a b"])
        assert tables.made_with() == f"python -m {named} --model 'a b'"
