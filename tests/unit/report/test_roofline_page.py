"""``hwprof report --roofline``: the plot, the table below it, and the same as JSON."""

from __future__ import annotations

import io
import json
from pathlib import Path

import msgspec
import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from hwprof.cli import app
from hwprof.errors import HwprofError
from hwprof.report.document import builder
from hwprof.report.document.document import Document
from hwprof.report.document.hot_roofline import select
from hwprof.report.document.roofline import Roofline
from hwprof.report.text import hot_roofline
from hwprof.report.text.log_plot import LogPlot
from hwprof.report.text.page import Page
from tests.support import synthetic_variants as runs
from tests.support.document_parts import csv_frames, part, replaced
from tests.support.snapshots import assert_snapshot


@pytest.fixture
def document(tmp_path: Path) -> Document:
    return builder.build(runs.under_roofs(tmp_path))


def printed(document: Document, width: int, encoding: str = "utf-8", top: int = 15, **options: object) -> str:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding)
    console = Console(file=file, width=width, highlight=False, markup=False, emoji=False, **options)  # type: ignore[arg-type]
    hot_roofline.show(select(document, top), Page(document, console))
    file.flush()
    return raw.getvalue().decode(encoding)


@pytest.mark.parametrize(("width", "encoding"), [(80, "utf-8"), (120, "utf-8"), (80, "ascii")])
def test_snapshot(width: int, encoding: str, document: Document) -> None:
    lines = [line.rstrip() for line in printed(document, width, encoding).splitlines()]
    assert_snapshot(f"roofline-{width}{'-ascii' if encoding == 'ascii' else ''}", "\n".join(lines) + "\n")


def test_the_inference_has_one_rate(document: Document) -> None:
    """Counted where that was done: what arithmetic says of the same time is another one."""
    whole = part(document, Roofline).whole
    assert whole is not None and whole.gflops_from == "counted"
    lines = printed(document, 120).splitlines()
    row = next(line.split() for line in lines if line.split()[:1] == ["inference"])
    assert "210 GFLOP/s, 70% of this machine's GEMM peak" in lines[0] and row[3] == "210"


@pytest.mark.parametrize("width", [40, 61, 80, 120, 200])
def test_no_line_is_longer_than_the_width(width: int, document: Document) -> None:
    assert max(map(cell_len, printed(document, width).splitlines())) <= width


def test_colours_say_nothing_that_is_not_there_without_them(document: Document) -> None:
    coloured = printed(document, 100, force_terminal=True, color_system="standard")
    assert "\x1b[" in coloured
    assert Text.from_ansi(coloured).plain.split() == printed(document, 100).split()


def test_layers_of_the_table_are_marked_where_they_are(document: Document, monkeypatch: pytest.MonkeyPatch) -> None:
    marked: dict[str, tuple[float, float]] = {}

    class Recorded(LogPlot):
        def mark(self, x: float, y: float, character: str, style: str = "", *, move: bool = True) -> bool:
            marked[character] = (x, y)
            return super().mark(x, y, character, style, move=move)

    monkeypatch.setattr(hot_roofline, "LogPlot", Recorded)
    below = printed(document, 120).partition("Layers below the roofs")[2]
    paths = {line[0]: line.split()[1] for line in below.splitlines() if line[:1].isdigit()}
    rows = part(document, Roofline).rows
    assert paths == {str(number): one.path for number, one in enumerate(rows, start=1)}
    known = {one.path: (one.intensity["DRAM"], one.gflops) for one in rows}
    assert marked == {mark: known[path] for mark, path in paths.items()}


def test_further_layers_are_points(document: Document) -> None:
    few = printed(document, 120, top=1)
    assert few.count("∘") > printed(document, 120).count("∘") and "(1 of " in few
    assert "∘" not in printed(document, 120, encoding="ascii", top=1)


def test_of_a_layer_without_operations_there_is_a_row_and_no_mark(document: Document) -> None:
    known = part(document, Roofline)
    silent = msgspec.structs.replace(known.rows[0], gflops=None, intensity={})
    found = replaced(document, msgspec.structs.replace(known, rows=[silent, *known.rows[1:]]))
    text = printed(found, 120)
    assert "1 without operations or bytes" in text
    assert next(line for line in text.splitlines() if str(silent.path) in line).startswith("      ")


def test_without_any_place_there_is_the_table_alone(document: Document) -> None:
    known = part(document, Roofline)
    silent = [msgspec.structs.replace(one, gflops=None, intensity={}) for one in known.rows]
    text = printed(replaced(document, msgspec.structs.replace(known, rows=silent)), 100)
    assert "FLOP/byte of" not in text and "no layer has both operations and bytes" in text
    assert all(one.path in text for one in silent if one.path)


def test_a_layer_far_below_the_roofs_does_not_press_the_others_into_a_corner(document: Document) -> None:
    known = part(document, Roofline)
    slow = msgspec.structs.replace(known.rows[0], gflops=1e-9, intensity={"DRAM": 1e-9})
    found = replaced(document, msgspec.structs.replace(known, rows=[slow, *known.rows[1:]]))
    assert "1 far below the roofs" in printed(found, 120)


def test_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = runs.under_roofs(tmp_path)
    assert app.run(["report", str(run.path), "--roofline", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["level"] == "DRAM" and found["others"] == []
    rows = {one["path"]: one for one in found["roofline"]["rows"]}
    conv = rows["model.0.conv"]
    assert conv["intensity"]["DRAM"] == pytest.approx(conv["gflops"] / conv["gbytes"]["DRAM"])
    assert app.run(["report", str(run.path), "--roofline", "--format", "json", "--top", "1"]) == 0
    few = json.loads(capsys.readouterr().out)
    assert [len(few["roofline"]["rows"]), len(few["others"])] == [1, len(rows) - 1]


def test_bytes_that_the_processor_counted_are_measured(document: Document) -> None:
    found = part(document, Roofline)
    assert {one.bytes_from.get("DRAM") for one in found.rows} == {"measured"}
    frame = csv_frames(document)["roofline.csv"]
    assert {"time_ns", "share_ratio", "dram_flops_per_byte"} <= set(frame.columns)
    assert found.whole is not None and found.analytic_gflops is not None
    assert found.share_of_gemm == pytest.approx(found.analytic_gflops / 300.0)


def test_without_peaks_it_says_how_to_measure_them(tmp_path: Path) -> None:
    with pytest.raises(HwprofError) as raised:
        select(builder.build(runs.zen(tmp_path)), 5)
    assert raised.value.remedy == "hwprof peaks --threads 2"
