"""How the machine drifted, drawn over time."""

from __future__ import annotations

import io
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwprof.report.document.builder import build
from hwprof.report.document.document import Document
from hwprof.report.document.over_time import OverTime, PartOfTime
from hwprof.report.text import over_time
from hwprof.report.text.console import make_console
from hwprof.report.text.figures import ASCII, UNICODE
from hwprof.report.text.page import Page
from tests.support.synthetic_run import build as make


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Document:
    return build(make(tmp_path_factory.mktemp("run")))


def parts(times_ms: list[float], ghz: list[float | None], iterations: int = 1) -> OverTime:
    rows = [
        PartOfTime(begin_s=float(place), end_s=place + 1.0, iterations=iterations, disturbed=0,
                   min_ns=int(1e6 * took), median_ns=1e6 * took, max_ns=int(1e6 * took), ghz=core)
        for place, (took, core) in enumerate(zip(times_ms, ghz, strict=True))
    ]  # fmt: skip
    number = iterations * len(rows)
    return OverTime(pass_="measure", kind="bare", iterations=number, seconds=float(len(rows)), parts=rows)


def shown(document: Document, part: OverTime, width: int = 80) -> list[str]:
    file = io.StringIO()
    made = msgspec.structs.replace(document, parts={**document.parts, "over_time": part})
    over_time.show(Page(made, make_console(width, file)))
    return file.getvalue().splitlines()


@pytest.mark.parametrize("width", [80, 120])
def test_a_machine_that_slows_down_is_seen(document: Document, width: int) -> None:
    ghz: list[float | None] = [*[3.0] * 20, *[1.5] * 20]
    drawn = parts([100.0] * 20 + [200.0] * 20, ghz, 1500)
    lines = shown(document, drawn, width)
    assert max(map(len, lines)) <= width
    assert "Over time, pass measure: 60,000 bare iterations in 40.0 s" in lines
    (times,) = (line for line in lines if line.startswith("iteration ms"))
    assert "▁" * 20 + "█" * 20 in times and times.split()[-3:] == ["100", "150", "200"]
    (core,) = (line for line in lines if line.startswith("core GHz"))
    assert "█" * 20 + "▁" * 20 in core and core.split()[-3:] == ["1.50", "2.25", "3.00"]
    assert "the median of 1,500 iterations" in " ".join(lines[-2:])


def test_noise_looks_flat_and_what_is_not_known_is_blank(document: Document) -> None:
    lines = shown(document, parts([100.0, 101.0] * 5, [None, 3.0, *[None] * 8]))
    (times,) = (line for line in lines if line.startswith("iteration ms"))
    assert "▁" * 10 in times
    (core,) = (line for line in lines if line.startswith("core GHz"))
    assert core.split() == ["core", "GHz", "▁", "3.00", "3.00", "3.00"]


def test_a_core_that_was_not_probed_has_no_line(document: Document) -> None:
    assert not any(line.startswith("core") for line in shown(document, parts([1.0] * 9, [None] * 9)))


def test_of_few_iterations_nothing_is_drawn(document: Document) -> None:
    assert shown(document, parts([1.0] * 8, [None] * 8)) == []


@given(st.lists(st.one_of(st.none(), st.floats(0, 1e18)), max_size=50))
def test_a_character_each_from_the_least_to_the_most(values: list[float | None]) -> None:
    for glyphs in (UNICODE, ASCII):
        drawn = over_time.spark(values, glyphs)
        assert len(drawn) == len(values)
        known = [(value, mark) for value, mark in zip(values, drawn, strict=True) if value is not None]
        assert all(mark == " " for value, mark in zip(values, drawn, strict=True) if value is None)
        heights = [glyphs.heights.index(mark) for _, mark in sorted(known)]
        assert heights == sorted(heights) and (not heights or heights[0] == 0)


def test_it_is_a_table_of_the_run(document: Document, tmp_path: Path) -> None:
    from hwprof.report.csv.over_time import files

    part = document.part(OverTime)
    assert part is not None and sum(one.iterations for one in part.parts) == part.iterations
    (table,) = files(document).values()
    assert table.columns["median_ns"] == [one.median_ns for one in part.parts]
