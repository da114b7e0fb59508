"""A bench's table, in each of its forms."""

from __future__ import annotations

import csv
import io
import os
import warnings
from itertools import combinations
from pathlib import Path

import msgspec
import pytest

from hwprof.bench import page, plot, table
from hwprof.bench.plot import drawing
from hwprof.bench.rows import rows_of
from hwprof.report.text.console import make_console
from tests.support.requirements import require_module
from tests.unit.bench.support import PEAKS, case, failed, result

EVIL = "x\x1b[31m<script>|$a$\n"

ROWS = rows_of(
    [
        result(case(), 40_000_000),
        result(case(variants=("channels_last", "bfloat16")), 10_000_000, others=0.5),
        result(case(batch=4), 200_000_000, macs=None),
        failed(case(variants=("int8",)), "no Linear\nlayers", "another"),
    ],
    None,
)


def shown(width: int) -> str:
    file = io.StringIO()
    table.show(ROWS, make_console(width, file))
    return file.getvalue()


@pytest.mark.parametrize("width", [40, 80, 120])
def test_it_fits(width: int) -> None:
    lines = shown(width).splitlines()
    assert max(map(len, lines[: lines.index(next(one for one in lines if one.startswith("not measured")))])) <= width


def test_it_has_what_tells_rows_apart_and_not_what_all_have() -> None:
    text = shown(120)
    header = text.splitlines()[0].split()
    assert {"model", "variant", "batch", "ms", "images/s", "agrees"} <= set(header)
    assert "size" not in header and "threads" not in header
    assert table.common(ROWS) == "size 640, threads 2"
    assert "channels_last+bfloat16" in text and "8/10 boxes" in text and "4.00" in text
    assert "no error of x eager" in " ".join(table.remarks(ROWS, 0.0))
    assert "not measured: yolov8n int8 b1: no Linear layers. Try: another" in text


def test_what_is_odd_is_said() -> None:
    processes = ([ns] * 2 for ns in (40_000_000, 10_000_000))
    cases = (case(), case(variants=("bfloat16",)))
    rows = rows_of([result(of, *those) for of, those in zip(cases, processes, strict=True)], PEAKS)
    assert table.remarks(rows, 0.05) == ["of peak and bound are known of FP32 alone"]
    (short, *_) = table.remarks(rows, 0.3)
    assert short.startswith("values of 2 cases are shorter than --min-time 0.3: the machine was busy")
    fast = rows_of([result(case(), 1_000_000)], PEAKS)
    assert table.remarks(fast, 0.0) == [
        "of peak above 100%: faster than PyTorch's own large FP32 product (hwprof peaks)"
    ]


def test_notes_of_a_variant_are_beside_its_row() -> None:
    one = result(case(variants=("torchscript",)), 5)
    assert one.model is not None
    one.model.notes.append("frozen\n\x1b[31m")
    rows = rows_of([one], None)
    file = io.StringIO()
    table.show(rows, make_console(100, file))
    for text in (file.getvalue(), table.markdown(rows, []), page.page(rows, "x", [], None)):
        assert "yolov8n torchscript 640 b1: frozen" in text
        assert "\x1b" not in text


@pytest.mark.parametrize(
    ("ratio", "error", "told"),
    [
        (1.2345, None, "1.23"),
        (1.2345, 0.004, "1.23"),
        (1.2345, 0.0251, "1.23 ±0.03"),
        (1.2345, 0.31, "1.2 ±0.3"),
        (42.35, 31.7, "42 ±32"),
        (710.7, 104.0, "711 ±104"),
        (0.0312, 0.0061, "0.031 ±0.006"),
    ],
)
def test_a_ratio_has_no_more_digits_than_its_error_leaves(ratio: float, error: float | None, told: str) -> None:
    row = msgspec.structs.replace(ROWS[1], times_as_fast=ratio, times_as_fast_error=error)
    file = io.StringIO()
    table.show([ROWS[0], row], make_console(160, file))
    assert f" {told} " in file.getvalue()


def test_what_is_the_same_of_many_cases_is_said_once() -> None:
    same = [failed(case(batch=number), "no\nway", "another") for number in range(1, 6)]
    rows = rows_of([*same, failed(case(variants=("int8",)), "no Linear")], None)
    assert table.failures(rows) == [
        "yolov8n eager b1, yolov8n eager b2 and 3 others: no way. Try: another",
        "yolov8n int8 b1: no Linear",
    ]
    for text in (table.markdown(rows, []), page.page(rows, "x", [], None)):
        assert text.count("no way") == 1


def test_nobody_counts_the_zeros_of_a_small_model() -> None:
    row = msgspec.structs.replace(ROWS[0], parameters=2, size_bytes=8, gflops=2e-9)
    file = io.StringIO()
    table.show([row], make_console(160, file))
    assert file.getvalue().count("<0.001") == 3 and "0.000" not in file.getvalue()


def test_what_others_took_is_said() -> None:
    told = "noisy: other programs used up to 50% of the processors during yolov8n channels_last+bfloat16 640 b1"
    assert table.noise(ROWS) == told
    both = [*ROWS, msgspec.structs.replace(ROWS[0], others_share=0.4, threads=2)]
    assert table.noise(both) == f"{told} and 1 other case"
    assert table.noise(ROWS[:1]) is None


def test_markdown_has_all_columns_and_rows() -> None:
    told, *lines = table.markdown(ROWS, ["on this machine"]).splitlines()
    assert told == "on this machine  " and lines.pop(0) == ""
    cells = [line.count(" | ") for line in lines[:5]]
    assert len(set(cells)) == 1 and lines[1].startswith("| ---")
    assert lines[-1].startswith("- not measured: yolov8n int8")


def test_csv_has_every_field(tmp_path: Path) -> None:
    table.csv_table(ROWS).write(tmp_path / "bench.csv")
    rows = list(csv.DictReader((tmp_path / "bench.csv").read_text().splitlines()))
    assert [row["variant"] for row in rows] == ["eager", "channels_last+bfloat16", "eager", "int8"]
    assert rows[1]["outputs.largest"] == "0.05" and rows[1]["boxes.matched"] == "8"
    assert rows[0]["forward_ns"] == "40000000" and rows[3]["forward_ns"] == ""
    table.csv_table(ROWS[:1]).write(tmp_path / "one.csv")
    header = (tmp_path / "bench.csv").read_text().splitlines()[0]
    assert (tmp_path / "one.csv").read_text().splitlines()[0] == header, "whatever is known"
    assert "outputs," not in header and "boxes," not in header


def test_names_from_outside_stay_text_in_every_form() -> None:
    rows = rows_of([result(case(model=EVIL), 5), result(case(model="b"), 5), failed(case(model=EVIL), EVIL)], None)
    file = io.StringIO()
    table.show(rows, make_console(100, file))
    written = page.page(rows, EVIL, [EVIL], None)
    for text in (file.getvalue(), table.markdown(rows, [EVIL]), written):
        assert "\x1b" not in text and not any(line.startswith("<script") for line in text.splitlines())
    assert "<script>" not in written and "&lt;script&gt;" in written
    require_module("matplotlib")
    found = drawing(rows)
    assert found is not None and "<script" not in found and "\x1b" not in found


def test_models_with_sizes_of_their_own_are_in_the_picture_too() -> None:
    require_module("matplotlib")
    own = [result(case(model="mine:model", threads=number), 5) for number in (1, 2)]
    rows = rows_of([*own, result(case(batch=2), 5), result(case(batch=4), 5)], None)
    assert rows[0].batch is None and rows[0].imgsz is None
    found = drawing(rows)
    assert found is not None and "mine:model" in found
    file = io.StringIO()
    table.show(rows, make_console(100, file))
    assert "mine:model" in file.getvalue() and "mine:model" in table.markdown(rows, [])


def test_the_picture_is_the_same_each_time_and_has_a_panel_for_what_grows() -> None:
    require_module("matplotlib")
    one, other = drawing(ROWS), drawing(ROWS)
    assert one == other and one is not None and "images/s" in one and "parameters, millions" in one
    assert drawing(ROWS[3:]) is None
    alone = drawing(ROWS[:1])
    assert alone is not None and "images/s" not in alone


def test_what_no_axis_by_decades_has_is_not_drawn() -> None:
    require_module("matplotlib")
    odd = [msgspec.structs.replace(ROWS[0], parameters=number) for number in (-5, 1_000, 1_000_000)]
    with warnings.catch_warnings(action="error"):
        assert drawing(odd) is not None
        assert drawing(odd[:1]) is not None


def test_the_library_of_pictures_keeps_its_files_in_the_cache_of_hwprof(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(plot.FOLDER, raising=False)
    with plot._own_folder():
        assert os.environ[plot.FOLDER] == str(tmp_path / "hwprof" / "matplotlib")
    assert plot.FOLDER not in os.environ, "what is measured keeps the user's"
    monkeypatch.setenv(plot.FOLDER, "mine")
    with plot._own_folder():
        assert os.environ[plot.FOLDER] == "mine"


def test_labels_of_points_that_are_near_stand_apart() -> None:
    require_module("matplotlib")
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    FigureCanvasSVG(figure)
    axes = figure.subplots()
    rows = [msgspec.structs.replace(ROWS[0], parameters=3_000_000, forward_ns=40_000_000 + n) for n in (0, 0, 9, 10**7)]
    labels = plot._latency(axes, rows)
    plot._apart(figure, labels)
    figure.draw_without_rendering()
    boxes = [one.get_window_extent() for one in labels]
    assert len(boxes) == 4
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
