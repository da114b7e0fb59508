"""Below modules' own code stand the operators in it."""

from __future__ import annotations

import io
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from hwprof.analysis.owners import own
from hwprof.report.document import builder
from hwprof.report.document.document import Document
from hwprof.report.document.layers import Layers
from hwprof.report.document.one_layer import one_layer as one_layer_of
from hwprof.report.document.operators import LayerOperator, Operators
from hwprof.report.text import layer_rows, layers, one_layer
from hwprof.report.text.page import Page
from tests.support.document_parts import csv_frames, part, replaced
from tests.support.synthetic_run import build

OWN = own("model.1.attn")

OPERATORS = [
    ("aten::scaled_dot_product_attention", 2.0, 0.62),
    (None, None, 0.2),
    ("aten::add", 1.0, 0.1),
    ("aten::cat", 1.0, 0.07),
    ("aten::mul", 1.0, 0.01),
]


def document(root: Path, operators: list[tuple[str | None, float | None, float]]) -> Document:
    """The hottest row is a module's own code."""
    built = builder.build(build(root), 3)
    found, known = part(built, Layers), part(built, Operators)
    hottest = built.hottest.layers[0]
    rows = [msgspec.structs.replace(row, path=OWN, own=True) if row.path == hottest else row for row in found.rows]
    of_own = [
        LayerOperator(layer=OWN, operator=name, calls=calls, time_ns=share * 1e6, share=share)
        for name, calls, share in operators
    ]
    changed = replaced(built, msgspec.structs.replace(found, rows=rows))
    changed = replaced(changed, msgspec.structs.replace(known, by_layer=[*known.by_layer, *of_own]))
    shown = msgspec.structs.replace(built.hottest, layers=[OWN, *built.hottest.layers[1:]])
    return msgspec.structs.replace(changed, hottest=shown)


def page(found: Document, width: int = 100) -> tuple[Page, io.StringIO]:
    text = io.StringIO()
    return Page(found, Console(file=text, width=width, highlight=False, markup=False)), text


@pytest.mark.parametrize("width", [80, 120, 200])
def test_operators_that_take_much_of_own_code_stand_below_it(width: int, tmp_path: Path) -> None:
    shown, text = page(document(tmp_path, OPERATORS), width)
    layers.show(shown)
    lines = text.getvalue().splitlines()
    row = next(number for number, line in enumerate(lines) if line.startswith("model.1.attn"))
    below = [line.split()[:2] for line in lines[row + 1 : row + 4]]
    assert [words[0] for words in below] == ["62%", "20%", "10%"]
    assert below[0][1].endswith("attention") and below[1][1] == "outside" and below[2][1] == "add"
    assert all(line.startswith("  ") for line in lines[row + 1 : row + 4])
    assert lines[row + 4].startswith("model.")
    assert "(3 of 5)" in next(line for line in lines if line.startswith("Hottest layers"))


def test_calls_of_operators_stand_in_their_column(tmp_path: Path) -> None:
    shown, _ = page(document(tmp_path, OPERATORS))
    rows = layer_rows.hottest(shown)
    assert [row.calls for row in rows if row.operator] == ["2", "", "1"]
    assert [row.share for row in rows if row.operator] == [None] * 3


@pytest.mark.parametrize("operators", [[], [(None, None, 1.0)]])
def test_where_no_operator_is_known_of_it_nothing_stands_below(
    operators: list[tuple[str | None, float | None, float]], tmp_path: Path
) -> None:
    shown, text = page(document(tmp_path, operators))
    layers.show(shown)
    assert len(layer_rows.hottest(shown)) == 3
    assert "(own): " in text.getvalue() and "operators" not in text.getvalue()


def test_leaves_have_no_rows_below_them(tmp_path: Path) -> None:
    built = builder.build(build(tmp_path), 3)
    shown, _ = page(built)
    assert part(built, Operators).by_layer  # the leaves' own
    assert not any(row.operator for row in layer_rows.hottest(shown))


def test_the_page_of_own_code_lists_them_all(tmp_path: Path) -> None:
    found = document(tmp_path, OPERATORS)
    shown, text = page(found)
    one_layer.show(one_layer_of(found, OWN), shown)
    lines = text.getvalue().splitlines()
    title = next(number for number, line in enumerate(lines) if line.startswith("Operators"))
    cells = [line.split() for line in lines[title + 3 : title + 8]]
    assert [row[0] for row in cells] == [
        "aten::scaled_dot_product_attention", "outside", "aten::add", "aten::cat", "aten::mul",
    ]  # fmt: skip
    assert cells[0][1:] == ["62.0%", "2", "0.620"]
    assert cells[1][3:] == ["20.0%", "0.200"]


def test_both_tables_are_files(tmp_path: Path) -> None:
    frames = csv_frames(document(tmp_path, OPERATORS))
    rows = frames["layer_operators.csv"].filter(layer=OWN)
    assert rows.select("operator", "calls", "share_of_layer_ratio").rows() == OPERATORS
    assert frames["operators.csv"]["share_of_operators_ratio"].sum() == pytest.approx(1)
