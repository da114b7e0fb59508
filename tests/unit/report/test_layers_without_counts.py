"""Layers of which something was not counted: which pass it is that lacks it."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hwprof.report.document import builder, one_layer
from hwprof.report.document import layers as document_layers
from hwprof.report.document.layers import Layers
from hwprof.report.text import layers
from hwprof.report.text import one_layer as text_of_one_layer
from hwprof.report.text.console import make_console
from hwprof.report.text.page import Page
from hwprof.run.directory import RunDirectory
from tests.support import synthetic_variants as runs
from tests.support.document_parts import part
from tests.support.synthetic_run import build


def page_of(run: RunDirectory, passes: int | None, monkeypatch: pytest.MonkeyPatch) -> Page:
    """Of a run whose first layer lacks counts, and was called by a thread without any."""
    of_figures = document_layers.of_figures

    def lacking(*figures: Any) -> Layers:
        found = of_figures(*figures)
        first = msgspec.structs.replace(found.rows[0], uncounted_ns=2e6, uncounted_caller_ns=3e6)
        return msgspec.structs.replace(found, rows=[first, *found.rows[1:]])

    monkeypatch.setattr(document_layers, "of_figures", lacking)
    document = builder.build(run, 8)
    document = msgspec.structs.replace(document, passes=document.passes[:passes])
    return Page(document, make_console(200, io.StringIO()))


def printed(page: Page) -> str:
    assert isinstance(page.console.file, io.StringIO)
    return page.console.file.getvalue()


@pytest.mark.parametrize(
    ("of", "passes", "where", "of_callers"),
    [
        (build, None, " in pass measure", " in pass measure"),
        (build, 1, "", ""),
        (runs.sampled_without_pmu, None, " in pass instrumented", " in pass measure"),
    ],
)
def test_what_was_not_counted_is_told_with_its_pass_where_there_are_several(
    of: Callable[[Path], RunDirectory],
    passes: int | None,
    where: str,
    of_callers: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    page = page_of(of(tmp_path), passes, monkeypatch)
    path = part(page.document, Layers).rows[0].path
    text_of_one_layer.show(one_layer.one_layer(page.document, path), page)
    assert f"not available{where}: code that is not counted ran in it (2.00 ms" in printed(page)
    assert f"not available{of_callers}: called by a thread that was not counted yet (3.00 ms" in printed(page)
    layers.show(page)
    assert f"counts of {path}: code that is not counted ran there{where} (2.00 ms" in printed(page)
    assert f"counts of {path}: called by threads that were not counted yet{of_callers} (3.00 ms" in printed(page)


def test_where_nothing_was_left_uncounted_no_pass_is_named(tmp_path: Path) -> None:
    assert part(builder.build(build(tmp_path)), Layers).uncounted_in is None
