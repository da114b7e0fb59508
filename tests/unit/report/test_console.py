"""What reaches the terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hwprof.report.text.console import Lines, make_console

HOSTILE = "a\x1b]0;title\x07\x1b[2J\x9b31mb\nc"


def in_a_table(text: str) -> Table:
    grid = Table.grid()
    grid.add_column(min_width=40)
    grid.add_row(Text(text))
    return grid


def printed(shown: RenderableType) -> list[str]:
    out = io.StringIO()
    make_console(80, out).print(shown)
    return out.getvalue().splitlines()


@pytest.mark.parametrize("shown", [HOSTILE, Lines(HOSTILE), Padding(Lines(HOSTILE), (0, 0, 0, 2))])
def test_foreign_text_moves_no_cursor(shown: RenderableType) -> None:
    lines = printed(shown)
    assert [line.strip()[:1] for line in lines] == ["a", "c"]
    assert all(line.isprintable() for line in lines)


@pytest.mark.parametrize("shown", [Text(HOSTILE), Padding(Text(HOSTILE), (0, 0, 0, 2)), in_a_table(HOSTILE)])
def test_foreign_text_begins_no_line(shown: RenderableType) -> None:
    (line,) = printed(shown)
    assert line.strip().startswith("a?") and line.endswith("?c") and line.isprintable()
