"""FLOPs, counted and by arithmetic: marks and dashes are explained, and nothing is said twice."""

from __future__ import annotations

import io
import re
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from hwprof.report.document import builder, one_layer
from hwprof.report.document.document import Document
from hwprof.report.document.layers import Layers
from hwprof.report.text import flops, layers
from hwprof.report.text import one_layer as text_of_one_layer
from hwprof.report.text.page import Page
from tests.support.document_parts import layer_rows, part, replaced
from tests.support.synthetic_variants import zen

UNKNOWN = "no known reason: fewer than 2 x MACs"
SPECULATIVE = "the events count speculative operations, too"
CONV = "model.1.cv1.conv"


def with_reason(document: Document, reason: str) -> Document:
    """One layer's FLOPs differ for a reason that does not lie in the layer."""
    rows = [
        msgspec.structs.replace(row, flops=msgspec.structs.replace(row.flops, expected=False, reason=reason))
        if row.path == CONV and row.flops is not None
        else row
        for row in layer_rows(document)
    ]
    return replaced(document, msgspec.structs.replace(part(document, Layers), rows=rows))


def page_of(document: Document, width: int) -> tuple[Page, io.StringIO]:
    printed = io.StringIO()
    return Page(document, Console(file=printed, width=width, highlight=False, markup=False), None), printed


@pytest.mark.parametrize("width", [80, 160])
@pytest.mark.parametrize(("reason", "legends"), [(UNKNOWN, 0), (SPECULATIVE, 1)])
def test_a_mark_is_explained_once(tmp_path: Path, width: int, reason: str, legends: int) -> None:
    page, printed = page_of(with_reason(builder.build(zen(tmp_path)), reason), width)
    flops.show(page)
    text = printed.getvalue()
    assert text.count(reason) == 1 and text.count("no known reason") == 1 - legends
    marked = [line for line in text.splitlines() if line.startswith(CONV)]
    assert len(marked) == 1 and "!" in marked[0].replace(reason, "")
    assert sum(line.startswith("  ! ") for line in text.splitlines()) == legends


@pytest.mark.parametrize("width", [80, 160])
def test_layers_are_called_what_the_layers_page_is_asked_with(tmp_path: Path, width: int) -> None:
    """However long: a name without the component that all share is of no use."""
    document = with_reason(builder.build(zen(tmp_path)), UNKNOWN)
    rows = [msgspec.structs.replace(row, path=f"model.decoder.blocks.{row.path}") for row in layer_rows(document)]
    longer = replaced(document, msgspec.structs.replace(part(document, Layers), rows=rows))
    page, printed = page_of(longer, width)
    flops.show(page)
    named = [line.split()[0] for line in printed.getvalue().splitlines() if CONV in line and not line.startswith(" ")]
    assert named
    assert [one_layer.one_layer(longer, name).path for name in named] == named


def test_a_layers_page_says_the_reason_once(tmp_path: Path) -> None:
    document = with_reason(builder.build(zen(tmp_path)), UNKNOWN)
    page, printed = page_of(document, 120)
    text_of_one_layer.show(one_layer.one_layer(document, CONV), page)
    assert printed.getvalue().count("no known reason") == 1


def test_layers_that_have_no_macs_are_not_those_whose_are_not_known(tmp_path: Path) -> None:
    document = builder.build(zen(tmp_path))
    without = [row for row in layer_rows(document) if row.flops is not None and row.flops.ratio is None]
    assert len(without) == 2
    rows = [
        msgspec.structs.replace(row, macs=None) if row.path == without[0].path else row for row in layer_rows(document)
    ]
    for changed, numbers in (
        (layer_rows(document), {"without MACs": 2}),
        (rows, {"without MACs": 1, "MACs not known": 1}),
    ):
        page, printed = page_of(replaced(document, msgspec.structs.replace(part(document, Layers), rows=changed)), 160)
        flops.show(page)
        found = re.findall(r"  (without MACs|MACs not known): (\d+) layer", printed.getvalue())
        assert {words: int(number) for words, number in found} == numbers


def test_a_rate_that_is_not_known_of_the_whole_says_whose_products_are_missing(tmp_path: Path) -> None:
    document = builder.build(zen(tmp_path))
    found = part(document, Layers)
    rows = [msgspec.structs.replace(row, macs=None) if row.type == "Detect" else row for row in found.rows]
    assert found.whole is not None
    unknown = msgspec.structs.replace(found, rows=rows, whole=msgspec.structs.replace(found.whole, macs=None))
    note = "MACs not known of Detect, so neither of the inference"
    for changed, notes in ((unknown, 1), (found, 0)):
        page, printed = page_of(replaced(document, changed), 160)
        layers.show(page)
        assert printed.getvalue().count(note) == notes
