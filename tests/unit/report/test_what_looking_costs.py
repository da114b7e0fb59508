"""Pages of Python, lines and memory say what their figures are of, and what was paid for them."""

from __future__ import annotations

import io
from pathlib import Path

import msgspec
import pytest

from hwprof.report.document import builder
from hwprof.report.document.lines import Lines
from hwprof.report.document.memory import LayerMemory, Memory
from hwprof.report.document.python import Python, PythonFunction
from hwprof.report.document.slower import Slower
from hwprof.report.text import figures, lines, memory, python
from hwprof.report.text.console import make_console
from hwprof.report.text.page import Page
from hwprof.report.text.slower import took
from tests.support.synthetic_run import build

SLOWER = Slower(median=1.29, least=1.14, most=4.72)


@pytest.fixture
def page(tmp_path: Path) -> Page:
    return Page(builder.build(build(tmp_path)), make_console(120, io.StringIO()))


def test_iterations_that_were_faster_than_those_that_others_disturbed_tell_no_cost() -> None:
    assert took(SLOWER, figures.ASCII) == "they took x1.29 as long (x1.14 to x4.72)"
    assert took(msgspec.structs.replace(SLOWER, median=0.9), figures.ASCII).startswith("how much longer they took is")


def test_bytes_of_lines_are_of_all_iterations(page: Page) -> None:
    part = Lines(pass_="scalene", tool="Scalene 2", elapsed_s=2.0, samples=9, rows=[], iterations=5, slower=SLOWER)
    _, _, of, _ = lines.notes(part, [], page)
    assert of.startswith("samples and bytes: of all 5 iterations; they took ") and "main pass" in of
    assert len(lines.notes(msgspec.structs.replace(part, iterations=None), [], page)) == 3, "by an older version"


def test_functions_that_are_not_listed_have_their_share_said_and_looks_their_error(page: Page) -> None:
    part = Python(
        pass_="trace",
        rate_hz=100.0,
        few_looks=10,
        functions=[],
        few_samples=10,
        lines=[],
        missing_lines=None,
        framework_share=0.727,
        clock_error_ns=706_000,
        slower=SLOWER,
    )
    assert "not listed: torch's functions, 73% of the self time: hwprof report --all" in python.notes_on_functions(
        part, "inclusive", page.glyphs
    )
    assert not any("torch's" in note for note in python.notes_on_functions(part, "self", page.glyphs)), "they are there"
    other = PythonFunction(
        stage="inference",
        thread="other",
        function="run",
        file="net.py",
        origin="pipeline",
        looks=50.0,
        inclusive_looks=50.0,
        self_ns=1e6,
        inclusive_ns=1e6,
        share=0.1,
    )
    for known, said in ((True, False), (False, True)):
        of_threads = msgspec.structs.replace(part, functions=[other], ends_known=known)
        told = python.notes_on_functions(of_threads, "inclusive", page.glyphs)
        assert any("lasts too long" in note for note in told) is said
    (note,) = python.notes_on_looks(part, page)
    assert note.startswith("times of looks: ±0.706 ms; iterations of pass trace, with all that looks in it: they took")


def whole(fresh: float, faults: float) -> LayerMemory:
    return LayerMemory(
        path="inference",
        type=None,
        allocations=10.0,
        allocated_bytes=4.47e8,
        freed_bytes=4.4e8,
        kept_bytes=0.0,
        largest_bytes=1 << 20,
        peak_bytes=1 << 24,
        faults=faults,
        new_bytes=faults * 4096,
        fresh=fresh,
    )


@pytest.mark.parametrize(
    ("fresh", "anew", "process", "said"),
    [
        (0.05, [], None, None),
        (0.05, ["model.0.act"], None, "most in model.0.act: freed blocks go back to the kernel"),
        (0.5, [], 6_500.0, "an iteration (6,440 faults)"),
        (0.5, [], 24_600.0, "and 18,160 faults that no layer has (of threads that the model starts)"),
    ],
)
def test_new_pages_are_named_where_layers_get_them_anew_and_whose_nobody_knows(
    fresh: float, anew: list[str], process: float | None, said: str | None, page: Page
) -> None:
    part = Memory(
        pass_="trace",
        peak_rss_bytes=None,
        peak_pass=None,
        allocator="glibc",
        huge_pages=None,
        settings={},
        whole=whole(fresh, 6_440.0),
        rows=[],
        modules=[],
        anew=anew,
        process_faults=process,
    )
    told = memory.fresh(part, page)
    if said is None:
        assert not told
    else:
        assert said in told[0] and (process == 24_600.0 or "no layer has" not in told[0])
