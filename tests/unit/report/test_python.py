"""The section on Python's functions."""

from __future__ import annotations

import io
from pathlib import Path

import msgspec
import polars as pl
import pytest
from rich.cells import cell_len
from rich.console import Console

from hwprof.errors import HwprofError
from hwprof.report.document import builder
from hwprof.report.document.document import Document
from hwprof.report.document.hot_python import select as hot_python
from hwprof.report.document.python import Python
from hwprof.report.text import hot_python as text_of_hot_python
from hwprof.report.text import python
from hwprof.report.text.page import Page
from hwprof.run.details import PythonStacksDetail, as_json
from hwprof.run.directory import RunDirectory, write_table
from hwprof.run.manifest import CollectorRecord
from hwprof.run.roles import Role
from tests.support import synthetic_samples
from tests.support.document_parts import csv_frames, part, replaced
from tests.support.synthetic_run import build

MAIN = 4200


def looked_at(root: Path, rate_hz: float | None = 100_000.0, *, sampled: bool = False) -> Document:
    return builder.build(looked_at_run(root, rate_hz, sampled=sampled))


def looked_at_run(root: Path, rate_hz: float | None = 100_000.0, *, sampled: bool = False) -> RunDirectory:
    """In every inference of the trace pass the model's thread is in ``forward``, and for half of it in ``attend``."""
    run = build(root)
    if sampled:
        synthetic_samples.add(run)
    inferences = run.read("spans").filter(path="inference", **{"pass": "trace"})
    rows = []
    for begin_ns, end_ns in inferences.select("begin_ns", "end_ns").iter_rows():
        half_ns = (begin_ns + end_ns) // 2
        rows += [
            (0, "Net.forward", "/src/net.py", 10, begin_ns, end_ns),
            (1, "attend", "/src/net.py", 40, begin_ns, half_ns),
        ]
    names = ["depth", "function", "file", "line", "begin_ns", "end_ns"]
    table = pl.DataFrame(rows, schema=names, orient="row").with_columns(
        pid=pl.lit(MAIN), tid=pl.lit(MAIN), **{"pass": pl.lit("trace")}
    )
    if rate_hz is not None:
        lag_ns = round(1e9 / rate_hz)
        table = table.with_columns(pl.col("begin_ns", "end_ns") + lag_ns)
        detail = as_json(PythonStacksDetail(rate_hz=rate_hz, frames=table.height))
        run.manifest.passes[1].collectors.append(CollectorRecord(name="pyspy", state="ran", detail=detail))
        run.save_manifest()
    write_table(run.path / "python_frames.parquet", "python_frames", table)
    return run


def printed(found: Document, width: int = 100) -> list[str]:
    page, text = on_paper(found, width)
    python.show(page)
    return text.getvalue().splitlines()


def on_paper(found: Document, width: int) -> tuple[Page, io.StringIO]:
    text = io.StringIO()
    return Page(found, Console(file=text, width=width, highlight=False, markup=False)), text


def test_functions_of_a_stage_by_self_time(tmp_path: Path) -> None:
    found = part(looked_at(tmp_path), Python)
    assert (found.pass_, found.rate_hz) == ("trace", 100_000)
    assert [(row.stage, row.thread, row.function) for row in found.functions] == [
        ("inference", "main", "Net.forward"),
        ("inference", "main", "attend"),
    ]
    forward, attend = found.functions
    assert forward.share == pytest.approx(0.5, abs=0.001) and attend.share == pytest.approx(0.5, abs=0.001)
    assert forward.inclusive_ns == pytest.approx(2 * forward.self_ns, rel=0.001)
    assert attend.inclusive_ns == attend.self_ns


@pytest.mark.parametrize("width", [80, 120])
def test_the_table(width: int, tmp_path: Path) -> None:
    lines = printed(looked_at(tmp_path), width)
    assert max(map(cell_len, lines)) <= width
    assert lines[1] == "Python functions by self time, pass trace (2 of 2)"
    row = next(line for line in lines if line.startswith("Net.forward")).split()
    assert row[1:4] == ["net.py", "inference", "main"] and row[5] == "50.0%"
    assert any("self time x 100000 Hz" in line for line in lines)


def test_what_was_met_by_chance_is_not_listed(tmp_path: Path) -> None:
    lines = printed(looked_at(tmp_path, rate_hz=1000.0))
    assert lines[2].strip() == "none was met 10 times. Try: a higher --pyspy-rate"
    assert not any("attend" in line for line in lines)


def test_where_nobody_says_how_often_all_are_shown(tmp_path: Path) -> None:
    found = looked_at(tmp_path, rate_hz=None)
    assert [row.looks for row in part(found, Python).functions] == [None, None]
    assert "(2 of 2)" in printed(found)[1]


def test_the_file_has_all(tmp_path: Path) -> None:
    frame = csv_frames(looked_at(tmp_path))["python_functions.csv"]
    assert frame.select("stage", "function", "file").rows() == [
        ("inference", "Net.forward", "/src/net.py"),
        ("inference", "attend", "/src/net.py"),
    ]
    assert frame["share_of_stage_ratio"].sum() == pytest.approx(1, abs=0.001)


def test_lines_have_the_kernels_of_the_samples_that_fell_into_them(tmp_path: Path) -> None:
    found = part(looked_at(tmp_path, sampled=True), Python)
    assert found.missing_lines is None
    lines = [(row.function, row.line) for row in found.lines]
    assert set(lines) <= {("attend", 40), ("Net.forward", 10), (None, None)} and ("Net.forward", 10) in lines
    assert [row.cpu_ns for row in found.lines] == sorted((row.cpu_ns for row in found.lines), reverse=True)
    for line in found.lines:
        assert sum(kernel.samples for kernel in line.kernels) == line.samples
        assert sum(kernel.share_of_line or 0 for kernel in line.kernels) == pytest.approx(1)
    assert "gomp_barrier_wait" not in {kernel.kernel for line in found.lines for kernel in line.kernels}


def test_lines_are_of_the_pass_that_was_looked_at_also_where_another_has_more_samples(tmp_path: Path) -> None:
    """As with ``--sample-passes measure,trace --pyspy-blocking``: the slower pass has fewer iterations."""
    run = looked_at_run(tmp_path, sampled=True)
    samples = run.read("samples")
    measured = run.read("spans").filter(path="inference", **{"pass": "measure"})
    begin_ns, end_ns = measured["begin_ns"][2], measured["end_ns"][2]  # a timed one
    moments = pl.Series(range(begin_ns, end_ns, (end_ns - begin_ns) // (2 * samples.height)))
    others = samples.head(1).select(pl.all().repeat_by(moments.len()).explode())
    others = others.with_columns(time_ns=moments, **{"pass": pl.lit("measure")})
    write_table(run.path / "samples.parquet", "samples", pl.concat([samples, others]))
    kernels = run.read("kernels")
    of_both = pl.concat([kernels, kernels.with_columns(pl.lit("measure").alias("pass"))])
    write_table(run.path / "kernels.parquet", "kernels", of_both)
    found = part(builder.build(RunDirectory.open(run.path)), Python)
    assert found.missing_lines is None and ("Net.forward", 10) in [(row.function, row.line) for row in found.lines]
    assert sum(row.samples for row in found.lines) <= samples.height


@pytest.mark.parametrize("width", [80, 120])
def test_the_table_of_lines_and_the_page_of_them(width: int, tmp_path: Path) -> None:
    found = looked_at(tmp_path, sampled=True)
    lines = printed(found, width)
    assert max(map(cell_len, lines)) <= width
    assert any(line.startswith("Python lines by CPU time, pass trace") for line in lines)
    assert any(line.split()[:2] == ["net.py:10", "Net.forward"] for line in lines)
    page, text = on_paper(found, width)
    text_of_hot_python.show(hot_python(found, 5), page)
    lines = text.getvalue().splitlines()
    assert max(map(cell_len, lines)) <= width
    row = next(number for number, line in enumerate(lines) if line.startswith("net.py:10"))
    assert lines[row + 1].split()[:2] == ["jit_conv_fwd", "jit"]
    assert any("by inclusive time" in line for line in lines)


def test_the_page_has_so_many_lines_and_functions_of_a_stage(tmp_path: Path) -> None:
    found = hot_python(looked_at(tmp_path, sampled=True), 1)
    assert len(found.python.lines) == 1
    assert [row.function for row in found.python.functions] == ["Net.forward"]
    with pytest.raises(HwprofError, match="nobody looked at Python's stacks"):
        hot_python(builder.build(build(tmp_path / "other")), 1)


def test_what_is_listed_by_inclusive_time_has_the_looks_of_that_time(tmp_path: Path) -> None:
    """A function that only calls others has none of its own."""
    found = looked_at(tmp_path)
    known = part(found, Python)
    caller = msgspec.structs.replace(known.functions[0], looks=0.2, inclusive_looks=4321.0)
    found = replaced(found, msgspec.structs.replace(known, functions=[caller, *known.functions[1:]]))
    page, text = on_paper(found, 120)
    text_of_hot_python.show(hot_python(found, 5), page)
    (row,) = [line for line in text.getvalue().splitlines() if line.startswith("Net.forward")]
    assert row.split()[-1] == "4,321"
    assert not any(line.startswith("Net.forward") for line in printed(found)), "it is left out by its own"


def test_without_samples_there_are_no_lines_and_the_reason(tmp_path: Path) -> None:
    found = looked_at(tmp_path)
    missing = part(found, Python).missing_lines
    assert missing is not None and missing.remedy == "--sample-passes trace"
    assert any("no CPU time by Python line: no samples were taken in the pass trace" in row for row in printed(found))
    assert "python_lines.csv" not in csv_frames(found)


def test_the_file_of_lines_has_their_kernels(tmp_path: Path) -> None:
    found = looked_at(tmp_path, sampled=True)
    frame = csv_frames(found)["python_lines.csv"]
    of_lines, of_kernels = frame.filter(pl.col("kernel").is_null()), frame.drop_nulls("kernel")
    assert of_lines["cpu_time_ns"].to_list() == [row.cpu_ns for row in part(found, Python).lines]
    assert of_kernels["cpu_time_ns"].sum() == pytest.approx(of_lines["cpu_time_ns"].sum())
    assert of_lines["share_of_line_ratio"].null_count() == of_lines.height
    assert of_kernels["share_ratio"].null_count() == of_kernels.height


def test_without_looks_there_is_no_section(tmp_path: Path) -> None:
    found = builder.build(build(tmp_path))
    assert found.part(Python) is None and printed(found) == []
    assert found.absent["python"].remedy == "hwprof collect --pyspy-passes trace"
    assert "python_functions.csv" not in csv_frames(found)


def test_who_looked_in_vain_says_why(tmp_path: Path) -> None:
    """To be told to do what one has done helps nobody."""
    run = build(tmp_path)
    failed = CollectorRecord(name="pyspy", state="failed", role=Role.PYTHON, reason="it hung", remedy="wait longer")
    run.manifest.passes[1].collectors.append(failed)
    run.save_manifest()
    why = builder.build(run).absent["python"]
    assert (why.reason, why.remedy) == ("pyspy failed: it hung", "wait longer")
