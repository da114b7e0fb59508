"""Values over time in the report: whatever a third party's collector brings."""

from __future__ import annotations

import io
import math
from pathlib import Path

import msgspec
import pytest

from hwprof.report.document.builder import build, ranked
from hwprof.report.document.document import Document
from hwprof.report.document.series import Series, SeriesSummary
from hwprof.report.text import series
from hwprof.report.text.console import make_console
from hwprof.report.text.page import Page
from tests.support.synthetic_run import build as make


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Document:
    return build(make(tmp_path_factory.mktemp("run")))


def row(name: str, value: float = 1.5, unit: str = "1") -> SeriesSummary:
    return SeriesSummary(
        pass_="measure", series=name, unit=unit, readings=3, first=value, last=value, min=value, mean=value, max=value
    )


def shown(document: Document, rows: list[SeriesSummary], top: int, width: int) -> list[str]:
    parts = {**document.parts, "series": Series(main="measure", rows=rows)}
    file = io.StringIO()
    series.show(Page(ranked(msgspec.structs.replace(document, parts=parts), top, "time"), make_console(width, file)))
    return file.getvalue().splitlines()


@pytest.mark.parametrize(
    "odd",
    [row("x" * 100_000), row("x", 1e308), row("x", -1e308), row("x", 5e-324), row("x", unit="u" * 90), row("a b" * 40)],
)
@pytest.mark.parametrize("width", [80, 120])
def test_one_odd_series_takes_no_figures_from_the_others(document: Document, odd: SeriesSummary, width: int) -> None:
    lines = shown(document, [row("plain"), odd], 15, width)
    assert max(map(len, lines)) <= width
    header = next(line for line in lines if line.startswith("series"))
    assert header.split()[:5] == ["series", "unit", "mean", "min", "max"]
    (plain,) = (line for line in lines if line.startswith("plain"))
    assert plain.split().count("1.50") >= 3


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_what_is_no_number_is_a_dash(document: Document, value: float) -> None:
    (found,) = (line for line in shown(document, [row("odd", value), row("plain")], 15, 120) if line.startswith("odd"))
    assert set(found.split()[2:6]) <= {"–", "-"}


def test_of_many_series_those_at_the_top_are_shown_and_the_others_counted(document: Document, tmp_path: Path) -> None:
    lines = shown(document, [row(f"s{number:05}") for number in range(20_000)], 4, 100)
    assert [line.split()[0] for line in lines if line.startswith("s0")] == ["s00000", "s00001", "s00002", "s00003"]
    assert "19,996 further series" in lines[-1] and "--top 20000" in lines[-1]
    assert not any("further" in line for line in shown(document, [row("one")], 4, 100))
